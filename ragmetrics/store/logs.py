"""Reading logs: any of our formats, streamed, each bad row told apart and none of the good lost.

Formats by name: `.jsonl` and `.ndjson` (plain, `.gz`, `.zst`), `.csv` (the same), `.parquet`.
A place is a file, a folder, a glob, or a template with `{date}`; local or in a bucket.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from ragmetrics.errors import CutShort, InputError, StoreError
from ragmetrics.rows import BadRow, LogRow, Rejected, read_row
from ragmetrics.store.files import FileInfo, Files

_FORMATS = re.compile(r"\.(?P<format>jsonl|ndjson|csv|parquet)(?P<packed>\.gz|\.zst)?$", re.I)
_DATE = re.compile(r"\{date(?::([^}]+))?\}")
_MAGIC = frozenset("*?[")
_EXCERPT = 200
_PARQUET_ROWS = 256
# CSV has no lists: a cell of one of these fields holds a JSON array or object.
_STRUCTURED = frozenset(
    [
        "retrieved_contexts",
        "reference_contexts",
        "retrieved_context_ids",
        "reference_context_ids",
        "retrieved_context_scores",
        "tags",
    ]
)

Record = tuple[int, Any]
"""A line number and what stands there: a decoded row, or an error to be quarantined."""


@dataclass(frozen=True)
class LogSet:
    """The files of one place, and how their rows are read."""

    files: Files
    infos: tuple[FileInfo, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    row_bytes: int = 10_000_000
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a row that lacks a field is read with."""

    def read(self) -> Iterator[LogRow | Rejected]:
        """All rows in the order of file names and lines; bad ones as Rejected, with the reason.

        A file that is cut short or broken gives the rows before the break, then one Rejected
        with `whole_file`.
        """
        for info in self.infos:
            yield from self._read_file(info)

    def _read_file(self, info: FileInfo) -> Iterator[LogRow | Rejected]:
        number = 0
        try:
            with self.files.open(info.path) as file:
                for number, record in _records(info.path, file, self.row_bytes, self.columns):
                    yield self._row(info.path, number, record)
        except (CutShort, EOFError, OSError, zlib.error, pa.ArrowException) as error:
            reason = f"the file is cut short or broken after row {number}: {error}"
            yield Rejected(info.path, number + 1, reason, whole_file=True)
        except StoreError as error:
            yield Rejected(info.path, number + 1, str(error), whole_file=True)

    def _row(self, path: str, number: int, record: Any) -> LogRow | Rejected:
        try:
            if isinstance(record, BadRow):
                raise record
            data = map_columns(record, self.columns) if self.columns else record
            if self.defaults and isinstance(data, Mapping):
                data = {**self.defaults, **data}
            return read_row(data, f"{path}:{number}")
        except BadRow as error:
            excerpt = "" if isinstance(record, BadRow) else repr(record)[:_EXCERPT]
            return Rejected(path, number, str(error), error.excerpt or excerpt)


def find_logs(
    place: str, options: Mapping[str, Any] | None = None, *, day: date | None = None
) -> tuple[Files, tuple[FileInfo, ...]]:
    """The log files at a place, by name. Raises InputError, or StoreError for a bucket's refusal.

    `{date}` stands for the day as 2026-11-19, `{date:%Y/%m/%d}` for any other form of it.
    No file at all is an empty tuple: whether that is an error is for the caller to say.
    """
    if day is not None:
        place = of_day(place, day)
    if any(sign in place for sign in _MAGIC):
        fixed = re.split(r"[*?\[]", place, maxsplit=1)[0].rpartition("/")[0] or "."
        files = Files(fixed, options)
        pattern = place[len(fixed) :].lstrip("/") if fixed != "." else place
        found = files.glob(pattern)
    elif _FORMATS.search(place):
        head, _, name = place.rpartition("/")
        files = Files(head or ("/" if place.startswith("/") else "."), options)
        return files, tuple(info for info in files.below(name) if info.path == name)
    else:
        files = Files(place, options)
        found = files.below()
        if len(found) == 1 and found[0].path in ("", "."):
            raise InputError(f"{place}: not a log; names end in {_endings()}")
    return files, tuple(info for info in found if _is_log(info.path))


def of_day(place: str, day: date) -> str:
    """A place with the date filled in."""
    return _DATE.sub(lambda match: day.strftime(match[1] or "%Y-%m-%d"), place)


def map_columns(record: Any, columns: Mapping[str, str]) -> Any:
    """Lay a record out as our fields: `{our field: dotted path in the record}`.

    Fields that are not mapped keep their own name. `tags.NAME` fills one tag.
    """
    if not isinstance(record, Mapping):
        return record
    mapped: dict[str, Any] = dict(record)
    tags = dict(record["tags"]) if isinstance(record.get("tags"), Mapping) else {}
    for name, path in columns.items():
        value = _dig(record, path)
        if name.startswith("tags."):
            tags[name.removeprefix("tags.")] = value
        else:
            mapped[name] = value
    return {**mapped, "tags": tags} if tags else mapped


def _dig(record: Any, path: str) -> Any:
    """Follow a dotted path; a list on the way is followed item by item."""
    if isinstance(record, Mapping) and path in record:
        return record[path]
    value = record
    for i, part in enumerate(parts := path.split(".")):
        if isinstance(value, list) and not part.isdecimal():
            return [_dig(item, ".".join(parts[i:])) for item in value]
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _is_log(path: str) -> bool:
    # Spark and Hive hide what is unfinished or theirs: _SUCCESS, _temporary/, .part.crc.
    hidden = any(part.startswith(("_", ".")) for part in PurePosixPath(path).parts)
    return bool(_FORMATS.search(path)) and not hidden


def _endings() -> str:
    return ".jsonl, .csv (both also .gz, .zst) or .parquet"


def _records(path: str, file: BinaryIO, limit: int, columns: Mapping[str, str]) -> Iterator[Record]:
    match = _FORMATS.search(path)
    if match is None:
        raise InputError(f"{path}: not a log; names end in {_endings()}")
    form, packed = match["format"].lower(), (match["packed"] or "").lower()
    if form == "parquet":
        return _parquet(file, limit)
    stream = _UNPACK[packed](file)
    if form == "csv":
        return _csv(stream, limit, {columns.get(name, name) for name in _STRUCTURED})
    return _jsonl(stream, limit)


class _Zstd(io.RawIOBase):
    """Unpacks zstd, and where a frame is cut gives all that stands before the cut, then raises.

    pyarrow's reader raises there (the zstandard package's does not), but keeps back the piece it
    had in hand: that one is read once more, byte by byte.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._streams = [pa.CompressedInputStream(file, "zstd")]  # one let go closes the file
        self._given, self._piece = 0, 1 << 16

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count: int = self._streams[-1].readinto(memoryview(buffer)[: self._piece])
        except OSError:
            if self._piece == 1:
                raise
            self._begin_again()
            return self.readinto(buffer)
        self._given += count
        return count

    def _begin_again(self) -> None:
        self._file.seek(0)
        self._streams.append(pa.CompressedInputStream(self._file, "zstd"))
        self._piece, left = 1, self._given
        while left:
            left -= len(self._streams[-1].read(min(left, 1 << 16)))


# No buffer of ours around gzip's own: it would keep back what stands before a cut.
_UNPACK: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    "": lambda file: file,
    ".gz": lambda file: cast("BinaryIO", gzip.GzipFile(fileobj=file)),
    ".zst": lambda file: cast("BinaryIO", io.BufferedReader(_Zstd(file), 1 << 16)),
}


def _jsonl(stream: BinaryIO, limit: int) -> Iterator[Record]:
    for number, line in _lines(stream, limit):
        if isinstance(line, BadRow):
            yield number, line
        elif line.strip():
            yield number, _decoded(line)


def _decoded(line: bytes) -> Any:
    try:
        return from_json(line.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        kind = "not UTF-8" if not _is_utf8(line) else "not JSON"
        return _bad(f"{kind}: {error}" if kind == "not JSON" else kind, line)


def _lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | BadRow]]:
    """Lines by number; one over the limit is passed over without being held in memory."""
    for number in count(1):
        line = stream.readline(limit + 1)
        if not line:
            return
        if len(line) <= limit or line.endswith(b"\n"):
            yield number, line
            continue
        head, size = line[:_EXCERPT], len(line)
        while line and not line.endswith(b"\n"):
            line = stream.readline(1 << 20)
            size += len(line)
        yield number, _bad(f"too large: {size:,} bytes, {limit:,} allowed", head)


def _csv(stream: BinaryIO, limit: int, structured: Collection[str]) -> Iterator[Record]:
    csv.field_size_limit(limit)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.DictReader(text)
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            yield reader.reader.line_num, _bad(f"not CSV, or too large: {error}")
            continue
        if record is None:
            return
        yield reader.line_num, _from_cells(record, structured)


def _from_cells(record: Mapping[str | None, Any], structured: Collection[str]) -> Any:
    row: dict[str, Any] = {}
    if None in record:
        return _bad("more cells than columns")
    for name, cell in record.items():
        if name is None or cell is None or cell == "":
            continue
        if not _is_utf8(cell.encode("utf-8", "surrogateescape")):
            return _bad("not UTF-8")
        try:
            row[name] = from_json(cell) if name in structured else cell
        except ValueError:
            return _bad(f"{name}: the cell should hold JSON")
    return row


def _parquet(file: BinaryIO, limit: int) -> Iterator[Record]:
    number = 0
    for batch in pq.ParquetFile(file).iter_batches(batch_size=_PARQUET_ROWS):
        for record in _decoded_batch(batch):
            number += 1
            if isinstance(record, BadRow):
                yield number, record
                continue
            size = sum(len(value) for value in record.values() if isinstance(value, str | bytes))
            size += sum(
                len(item)
                for value in record.values()
                if isinstance(value, list)
                for item in value
                if isinstance(item, str)
            )
            if size > limit:
                yield number, _bad(f"too large: {size:,} characters, {limit:,} allowed")
            else:
                yield number, _without_nulls(record)


def _decoded_batch(batch: pa.RecordBatch) -> list[Any]:
    """The records of a batch; a text that is not UTF-8 spoils its own record only."""
    try:
        return cast("list[Any]", batch.to_pylist())
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            return [_bad("not UTF-8")]
        return [one for i in range(batch.num_rows) for one in _decoded_batch(batch.slice(i, 1))]


def _without_nulls(record: Mapping[str, Any]) -> dict[str, Any]:
    """A map column comes as a list of pairs; a null cell means the field is not there."""
    row = {name: value for name, value in record.items() if value is not None}
    tags = row.get("tags")
    if isinstance(tags, list) and all(isinstance(pair, tuple) for pair in tags):
        row["tags"] = dict(tags)
    return row


def _bad(reason: str, line: bytes = b"") -> BadRow:
    error = BadRow(reason)
    error.excerpt = line[:_EXCERPT].decode("utf-8", "backslashreplace")
    return error


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
