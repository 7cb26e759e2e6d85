"""The files of judgements: their names, how they are read, and how many become one.

    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.parquet     sorted by key
    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.jsonl       a journal

Files never change, but for the journal of a writer at work. One is removed only after all that it
held stands in another; so a reader that has read all it finds listed has read everything.
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
"""Bytes of a file that is merged no more, but to get rid of what has expired."""
_AT_ONCE = 16
_NAME = re.compile(r"(.+/prompt=[^/]+)/([0-9a-f]{8})-([0-9a-f]{8})\.[0-9a-f]+\.(parquet|jsonl)")
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, EOFError)


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """One file of judgements, by its name."""

    path: str
    size: int
    folder: str
    low: str
    high: str
    kind: str

    @property
    def is_journal(self) -> bool:
        """Whether it waits to become Parquet."""
        return self.kind == "jsonl"


@dataclass
class ScanReport:
    """What reading the files of a range brought to light."""

    damaged: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    """Files of which more than half has expired."""


def listed(
    files: Files, folders: Sequence[str], low: str, high: str, seen: ScanReport
) -> list[ReplyFile]:
    """The files whose range meets this one, by path; what is no such file is left aside."""
    found = []
    for info in (info for folder in folders for info in files.below(folder)):
        if not info.size and not files.local:  # a bucket's journal is written whole: it is cleared
            continue
        if kept := _named(info):
            if kept.low <= high and low <= kept.high:
                found.append(kept)
        elif info.path not in seen.foreign:
            seen.foreign.add(info.path)
            log.warning("%s is left aside: it is no file of judgements", files.uri(info.path))
    return found


def _named(info: FileInfo) -> ReplyFile | None:
    parts = _NAME.fullmatch(info.path)
    return ReplyFile(info.path, info.size, *parts.groups()) if parts else None


def read_all(
    files: Files, kept: Sequence[ReplyFile], into: ReplyIndex, seen: ScanReport
) -> list[str]:
    """Gather what the files hold; the paths of those that were read whole.

    Damaged ones are left aside, with a warning, and those that are gone. Raises StoreError.
    """
    whole = []
    for one, tables in _opened(files, kept, into.wanted):
        try:
            expired = rows = 0
            for table in tables:
                expired, rows = expired + into.add(table), rows + len(table)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue
            raise
        except _UNREADABLE as error:
            seen.damaged.add(one.path)
            text = "%s is damaged (%s): it is left aside, and what was lost in it is asked anew"
            log.warning(text, files.uri(one.path), error)
            continue
        whole.append(one.path)
        if 2 * expired > rows:
            seen.expired.add(one.path)
    return whole


def _opened(
    files: Files, kept: Sequence[ReplyFile], wanted: WantedReply
) -> Iterator[tuple[ReplyFile, Iterator[pa.Table]]]:
    """Each file with what it holds; the small objects that journals are in a bucket, in parallel.

    Journals come first: what they held when they are gone is in a file that is listed anew.
    """
    journals = [one for one in kept if one.is_journal]
    if files.local:
        yield from ((one, _grown(files, one)) for one in journals)
    else:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(0, len(journals), 4 * _AT_ONCE):
                some = journals[start : start + 4 * _AT_ONCE]
                reads = [pool.submit(files.read, one.path) for one in some]
                yield from ((one, _put(read)) for one, read in zip(some, reads, strict=True))
    yield from ((one, _parquet(files, one, wanted)) for one in kept if not one.is_journal)


def _grown(files: Files, one: ReplyFile) -> Iterator[pa.Table]:
    with files.open(one.path) as file:
        yield from read_lines(file)


def _put(read: Future[bytes]) -> Iterator[pa.Table]:
    yield from read_lines(io.BytesIO(read.result()))


def _parquet(files: Files, one: ReplyFile, wanted: WantedReply) -> Iterator[pa.Table]:
    with files.open(one.path) as file:
        source = _Source(file, files.uri(one.path))
        parquet = pq.ParquetFile(source, page_checksum_verification=True)
        for number in range(parquet.num_row_groups):
            if _meets(parquet.metadata.row_group(number), wanted):
                yield parquet.read_row_group(number, columns=SCHEMA.names).cast(SCHEMA)


def _meets(group: pq.RowGroupMetaData, wanted: WantedReply) -> bool:
    """Whether the keys of a row group may be wanted, by its statistics."""
    keys = group.column(0)
    statistics = keys.statistics if keys.path_in_schema == "key" else None
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = bytes.fromhex(wanted.low), bytes.fromhex(wanted.high)
    return bool(statistics.min[:4] <= high and low <= statistics.max[:4])


class _Source(io.RawIOBase):
    """A file whose failures to be read are told apart from what Arrow finds wrong in it."""

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
        """As in any file, but for the errors: StoreError."""
        try:
            return self._file.read(size)
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"reading {self._uri}: {error}", transient=True) from error


def write(files: Files, folder: str, gathered: ReplyIndex, low: str, high: str) -> None:
    """Write what was gathered, sorted; a file ends where it is full, and at the range's bounds.

    Raises StoreError.
    """
    cuts = [low] if high == "f" * 8 else [low, f"{int(high, 16) + 1:08x}"]
    tables = gathered.batches(cuts)
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
            # Named by what it holds: a killed run may have had another range than this one.
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
