"""The formats of logs: from the bytes of a file to its records, each with its line number."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import chain, count
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from ragmetrics.errors import InputError
from ragmetrics.rows import BadRow
from ragmetrics.store import json_items

FORMATS = re.compile(r"\.(?P<format>jsonl|ndjson|json|csv|parquet)(?P<packed>\.gz|\.zst)?$", re.I)
ENDINGS = ".jsonl, .csv, .json (all also .gz, .zst) or .parquet"
EXCERPT = 200
_PARQUET_ROWS = 256
# CSV has no lists: a cell of one of these fields holds a JSON array or object.
STRUCTURED = frozenset(
    [
        "retrieved_contexts",
        "reference_contexts",
        "retrieved_context_ids",
        "reference_context_ids",
        "retrieved_context_scores",
        "tags",
    ]
)

BROKEN = (EOFError, OSError, zlib.error, pa.ArrowException)
"""What reading a file raises that is cut short or cannot be unpacked."""

Record = tuple[int, Any]
"""A line number and what stands there: a decoded row, or an error to be quarantined.

In `.json` and `.parquet`, which have no lines, it is the number of the record.
"""


def read_records(
    path: str, file: BinaryIO, limit: int, structured: Collection[str]
) -> Iterator[Record]:
    """The records of a file in the format that its name says; `structured` are the CSV columns
    whose cells hold JSON.

    Raises InputError for a name that says none, and, while reading, one of BROKEN where the file
    is cut short or cannot be unpacked.
    """
    match = FORMATS.search(path)
    if match is None:
        raise InputError(f"{path}: not a log; names end in {ENDINGS}")
    form, packed = match["format"].lower(), (match["packed"] or "").lower()
    if form == "parquet":
        return _parquet(file, limit)
    if packed and not cast("io.BufferedReader", file).peek(1):
        raise EOFError(f"nothing in it, not even the head of a {packed} file")
    stream = _UNPACK[packed](file)
    if form == "csv":
        return _csv(stream, limit, structured)
    return _json(stream, limit) if form == "json" else _jsonl(stream, limit)


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


def _json(stream: BinaryIO, limit: int) -> Iterator[Record]:
    """An array, an API's envelope, objects one after the other, or JSON lines by another name."""
    number, head = 1, stream.readline(limit + 1)
    while head and not head.strip(b"\xef\xbb\xbf \t\r\n"):
        number, head = number + 1, stream.readline(limit + 1)
    if json_items.is_lines(head):
        yield number, _decoded(head)
        yield from _jsonl(stream, limit, number + 1)
        return
    chunks = chain([head], iter(partial(stream.readline, 1 << 16), b""))
    for number, (item, size) in enumerate(json_items.split(chunks, limit), 1):
        yield number, _decoded(item) if size <= limit else _too_large(size, limit, item)


def _jsonl(stream: BinaryIO, limit: int, start: int = 1) -> Iterator[Record]:
    for number, line in _lines(stream, limit, start):
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


def _lines(stream: BinaryIO, limit: int, start: int) -> Iterator[tuple[int, bytes | BadRow]]:
    """Lines by number; one over the limit is passed over without being held in memory."""
    for number in count(start):
        line = stream.readline(limit + 1)
        if not line:
            return
        if len(line) <= limit or line.endswith(b"\n"):
            yield number, line
            continue
        head, size = line[:EXCERPT], len(line)
        while line and not line.endswith(b"\n"):
            line = stream.readline(1 << 20)
            size += len(line)
        yield number, _too_large(size, limit, head)


def _too_large(size: int, limit: int, head: bytes) -> BadRow:
    return _bad(f"too large: {size:,} bytes, {limit:,} allowed", head)


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
    error.excerpt = line[:EXCERPT].decode("utf-8", "backslashreplace")
    return error


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
