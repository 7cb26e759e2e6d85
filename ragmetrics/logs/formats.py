"""The formats of logs: reads the records of a file, each with its line number.

gzip and zstd are unpacked as a stream with a size limit: few bytes may unpack to terabytes.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Any, BinaryIO, cast

import pyarrow as pa
from pydantic_core import from_json

from ragmetrics.errors import InputError
from ragmetrics.logs import json_items
from ragmetrics.logs.csv_records import csv_records
from ragmetrics.logs.parquet_records import FileTooLarge, parquet_records
from ragmetrics.records import EXCERPT, BadRow, bad_row

MOST_TIMES = 500
"""Largest compression ratio of a file. Logs have a ratio of a few dozen."""
FROM_BYTES = 16_000_000
"""The ratio is checked from this number of unpacked bytes on. Less does no harm."""


def unpacked(file: BinaryIO, ending: str, limit: int) -> BinaryIO:
    """The unpacked content of a file with the ending `.gz` or `.zst`; otherwise the file itself.

    Reading raises FileTooLarge beyond `limit` unpacked bytes, and when the compression ratio is too
    large. It raises EOFError for an empty file.
    """
    if not ending:
        return file
    if not cast("io.BufferedReader", file).peek(1):
        raise EOFError(f"the file is empty, without the header of a {ending} file")
    return cast("BinaryIO", _Bounded(_UNPACK[ending](file), file, limit))


class _Bounded(io.BufferedIOBase):
    """Counts the bytes read. It has no buffer, which would lose data before a truncation."""

    def __init__(self, stream: BinaryIO, packed: BinaryIO, limit: int) -> None:
        self._stream, self._packed = cast("io.BufferedReader", stream), packed
        self._limit, self._size, self._next = limit, 0, FROM_BYTES

    def readable(self) -> bool:
        return True

    def _counted(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > self._limit:
            raise FileTooLarge(
                f"it unpacks to more than {self._limit:,} bytes (limits: unpacked_bytes)"
            )
        if self._size > self._next:
            self._next += FROM_BYTES
            if self._size > MOST_TIMES * self._packed.tell():
                raise FileTooLarge(f"it unpacks to more than {MOST_TIMES} times its size")
        return data

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._counted(self._stream.readline(-1 if size is None else size))

    def read(self, size: int | None = -1, /) -> bytes:
        return self._counted(self._stream.read(size))

    def read1(self, size: int = -1, /) -> bytes:
        return self._counted(self._stream.read1(size))


class _Zstd(io.RawIOBase):
    """Unpacks zstd. For a truncated frame it returns all data before the end, then raises.

    pyarrow's reader raises there (the zstandard package's does not), but loses its current piece.
    That piece is read again, byte by byte.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        # All streams are kept: a stream that is garbage-collected closes the file.
        self._streams = [pa.CompressedInputStream(file, "zstd")]
        self._read, self._piece = 0, 1 << 16

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count: int = self._streams[-1].readinto(memoryview(buffer)[: self._piece])
        except OSError:
            if self._piece == 1:
                raise
            self._restart()
            return self.readinto(buffer)
        self._read += count
        return count

    def _restart(self) -> None:
        self._file.seek(0)
        self._streams.append(pa.CompressedInputStream(self._file, "zstd"))
        self._piece, left = 1, self._read
        while left:
            left -= len(self._streams[-1].read(min(left, 1 << 16)))


# gzip gets no further buffer, which would lose data before a truncation.
_UNPACK: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda file: cast("BinaryIO", gzip.GzipFile(fileobj=file)),
    ".zst": lambda file: cast("BinaryIO", io.BufferedReader(_Zstd(file), 1 << 16)),
}


FORMATS = re.compile(
    r"\.(?P<format>jsonl|ndjson|json|csv|tsv|parquet)(?P<packed>\.gz|\.zst)?$", re.I
)
ENDINGS = ".jsonl, .csv, .tsv, .json (all also .gz, .zst) or .parquet"
_HINTS = {
    ".txt": "if each line is a JSON object, rename it to .jsonl",
    ".log": "if each line is a JSON object, rename it to .jsonl",
    ".xlsx": "save it as CSV UTF-8",
    ".xls": "save it as CSV UTF-8",
    ".pkl": "write it with DataFrame.to_parquet",
    ".arrow": "write it with Dataset.to_parquet",
    ".zip": "unpack it",
}
ROW_BYTES = 10_000_000
UNPACKED_BYTES = 10_000_000_000
"""Defaults of the limits in the settings."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def not_a_log(path: str) -> str:
    """The error text for a name without a known format."""
    hint = next((text for end, text in _HINTS.items() if path.lower().endswith(end)), "")
    return f"{path}: not a log; names end in {ENDINGS}{f': {hint}' if hint else ''}"


BROKEN = (EOFError, OSError, zlib.error, pa.ArrowException)
"""Errors of reading a file that is truncated or cannot be unpacked."""


class _Everything(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING = _Everything()
"""For `wanted`: all columns."""

Record = tuple[int, Any]
"""A line number and a decoded row, or a line number and an error for the quarantine.

For `.json` and `.parquet`, which have no lines, it is the number of the record.
"""


@dataclass(frozen=True)
class Reading:
    """How the files of a log are read."""

    wanted: Collection[str]
    """Columns of CSV and Parquet to decode, by the first part of their dotted names."""
    row_bytes: int = ROW_BYTES
    unpacked_bytes: int = UNPACKED_BYTES
    """Largest unpacked size of a compressed file."""


def read_records(path: str, file: BinaryIO, reading: Reading) -> Iterator[Record]:
    """The records of a file, in the format of its file name.

    Raises InputError for a name without a known format. Reading raises one of BROKEN for a
    truncated or damaged file, and FileTooLarge for a file beyond the limits.
    """
    match = FORMATS.search(path)
    if match is None:
        raise InputError(not_a_log(path))
    form, packed = match["format"].lower(), (match["packed"] or "").lower()
    limit = reading.row_bytes
    if form == "parquet":
        return parquet_records(file, limit, reading.unpacked_bytes, reading.wanted)
    stream = unpacked(file, packed, reading.unpacked_bytes)
    if form in ("csv", "tsv"):
        return csv_records(stream, limit, reading.wanted)
    return _json(stream, limit) if form == "json" else _jsonl(stream, limit)


def _json(stream: BinaryIO, limit: int) -> Iterator[Record]:
    """An array, an API's envelope, consecutive objects, or JSON lines in a `.json` file."""
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
        if line.startswith(_UTF16):
            return bad_row("UTF-16: convert the file to UTF-8: iconv -f UTF-16 -t UTF-8 FILE", line)
        return bad_row(f"not JSON: {error}" if _is_utf8(line) else "not UTF-8", line)


def _lines(stream: BinaryIO, limit: int, start: int) -> Iterator[tuple[int, bytes | BadRow]]:
    """Lines by number. A line beyond the limit is skipped and never held in memory."""
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
    return bad_row(f"too large: {size:,} bytes, {limit:,} allowed", head)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
