"""Files of cached replies: names, reading and writing.

    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.parquet     sorted by key
    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.jsonl       write-ahead log

Files never change, except the log of an active writer. A file is removed only after its replies
are in another one. So a reader that has read all listed files has read all replies.
"""

from __future__ import annotations

import io
import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.errors import StoreError
from ragmetrics.judges.cache.reply_index import SCHEMA, ReplyIndex, WantedReply
from ragmetrics.judges.cache.write_ahead_log import new_name, read_lines
from ragmetrics.storage import FileInfo, Files, temporary_file

log = logging.getLogger(__name__)

FULL = 64 << 20
"""Bytes from which a file is merged only to drop expired replies."""
_AT_ONCE = 16
_NAME = re.compile(r"(.+/prompt=[^/]+)/([0-9a-f]{8})-([0-9a-f]{8})\.[0-9a-f]+\.(parquet|jsonl)")
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, EOFError)


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """One file of replies, as its name describes it."""

    path: str
    size: int
    folder: str
    low: str
    high: str
    kind: str

    @property
    def is_log(self) -> bool:
        """Whether it is a write-ahead log, not Parquet."""
        return self.kind == "jsonl"


@dataclass
class ScanReport:
    """Problems found while the files of a range were read."""

    damaged: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    """Files with more than half of their replies expired."""


def listed(
    files: Files, folders: Sequence[str], low: str, high: str, report: ScanReport
) -> list[ReplyFile]:
    """The files whose range overlaps this one; other files are ignored with a warning."""
    found = []
    for info in (info for folder in folders for info in files.below(folder)):
        if not info.size and not files.local:  # an empty object is a removed one
            continue
        if reply_files := _named(info):
            if reply_files.low <= high and low <= reply_files.high:
                found.append(reply_files)
        elif info.path not in report.foreign:
            report.foreign.add(info.path)
            log.warning("%s is ignored: it is not a file of replies", files.uri(info.path))
    return found


def _named(info: FileInfo) -> ReplyFile | None:
    parts = _NAME.fullmatch(info.path)
    return ReplyFile(info.path, info.size, *parts.groups()) if parts else None


def read_all(
    files: Files, reply_files: Sequence[ReplyFile], into: ReplyIndex, report: ScanReport
) -> list[str]:
    """Read the files into an index; return the paths of those that were read completely.

    Removed files are skipped, and damaged ones with a warning. Raises StoreError.
    """
    complete = []
    for one, tables in _open_all(files, reply_files, into.wanted):
        try:
            expired = rows = 0
            for table in tables:
                expired, rows = expired + into.add(table), rows + len(table)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue
            raise
        except _UNREADABLE as error:
            report.damaged.add(one.path)
            text = "%s is damaged (%s): it is ignored, and lost replies are requested again"
            log.warning(text, files.uri(one.path), error)
            continue
        complete.append(one.path)
        if 2 * expired > rows:
            report.expired.add(one.path)
    return complete


def _open_all(
    files: Files, reply_files: Sequence[ReplyFile], wanted: WantedReply
) -> Iterator[tuple[ReplyFile, Iterator[pa.Table]]]:
    """Each file with its tables; logs in a bucket are small objects and read in parallel.

    Logs come first: the replies of a removed log are in a file of the next listing.
    """
    logs = [one for one in reply_files if one.is_log]
    if files.local:
        yield from ((one, _read_log(files, one)) for one in logs)
    else:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(0, len(logs), 4 * _AT_ONCE):
                some = logs[start : start + 4 * _AT_ONCE]
                reads = [pool.submit(files.read, one.path) for one in some]
                yield from (
                    (one, _read_object(read)) for one, read in zip(some, reads, strict=True)
                )
    yield from ((one, _parquet(files, one, wanted)) for one in reply_files if not one.is_log)


def _read_log(files: Files, one: ReplyFile) -> Iterator[pa.Table]:
    with files.open(one.path) as file:
        yield from read_lines(file)


def _read_object(read: Future[bytes]) -> Iterator[pa.Table]:
    yield from read_lines(io.BytesIO(read.result()))


def _parquet(files: Files, one: ReplyFile, wanted: WantedReply) -> Iterator[pa.Table]:
    with files.open(one.path) as file:
        source = _Source(file, files.uri(one.path))
        parquet = pq.ParquetFile(source, page_checksum_verification=True)
        for number in range(parquet.num_row_groups):
            if _meets(parquet.metadata.row_group(number), wanted):
                yield parquet.read_row_group(number, columns=SCHEMA.names).cast(SCHEMA)


def _meets(group: pq.RowGroupMetaData, wanted: WantedReply) -> bool:
    """Whether a row group may hold wanted keys, by its statistics."""
    keys = group.column(0)
    statistics = keys.statistics if keys.path_in_schema == "key" else None
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = bytes.fromhex(wanted.low), bytes.fromhex(wanted.high)
    return bool(statistics.min[:4] <= high and low <= statistics.max[:4])


class _Source(io.RawIOBase):
    """A file whose read errors are StoreErrors, unlike errors of Arrow in its content."""

    def __init__(self, file: BinaryIO, uri: str) -> None:
        self._file, self._uri = file, uri

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As in any file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As in any file."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """As in any file. Raises StoreError."""
        try:
            return self._file.read(size)
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"reading {self._uri}: {error}", transient=True) from error


def write(files: Files, folder: str, index: ReplyIndex, low: str, high: str) -> None:
    """Write the index as sorted files; a file ends when it is full and at the range's bounds.

    Raises StoreError.
    """
    cuts = [low] if high == "f" * 8 else [low, f"{int(high, 16) + 1:08x}"]
    tables = index.batches(cuts)
    table = next(tables, None)
    with temporary_file(), tempfile.TemporaryDirectory(prefix="ragmetrics-") as local:
        made = Path(local) / "made.parquet"
        while table is not None:
            first = _question(table, 0)
            side = first < low, first > high
            with made.open("wb") as sink, _writer(sink) as writer:
                while True:
                    writer.write_table(table)
                    last = _question(table, -1)
                    table = next(tables, None)
                    if table is None or sink.tell() >= FULL:
                        break
                    begins = _question(table, 0)
                    if (begins < low, begins > high) != side:
                        break
            # Named by its keys: a killed run may have had another range.
            files.put(made, new_name(folder, first, last, "parquet"))


def _writer(sink: BinaryIO) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        sink,
        SCHEMA,
        compression="zstd",
        use_dictionary=["reply"],
        write_statistics=["key"],
        write_page_checksum=True,
    )


def _question(table: pa.Table, place: int) -> str:
    return str(table["key"][place].as_py()[:4].hex())
