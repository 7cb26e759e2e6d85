"""Reads the records of a CSV file. Lines and records beyond a size limit are not held in memory."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO

from ragmetrics.records import bad_row

_DELIMITERS = ",;\t|"
_UTF16 = ("\udcff\udcfe", "\udcfe\udcff")
"""The first bytes of UTF-16, read as UTF-8."""


def csv_records(stream: BinaryIO, limit: int, wanted: Collection[str]) -> Iterator[tuple[int, Any]]:
    """The records below the header, each with its line number. All cells are texts.

    Only `wanted` columns are decoded. The delimiter is the one of `,;` tab and `|` with which the
    header has most wanted columns. Raises EOFError for a header that cannot be read.
    """
    csv.field_size_limit(limit)
    lines = _Lines(stream, limit)
    try:
        yield from _records(lines, wanted)
    finally:
        lines.release()


def _records(lines: _Lines, wanted: Collection[str]) -> Iterator[tuple[int, Any]]:
    try:
        first = next(lines, "")
        if first[:2] in _UTF16:
            raise EOFError("it is UTF-16: convert it with iconv -f UTF-16 -t UTF-8 FILE")
        delimiter = _delimiter(first, wanted)
        reader = csv.reader(chain([first], lines), delimiter=delimiter)
        header = next(reader, [])
    except (csv.Error, _TooLarge) as error:
        raise EOFError(f"its header is not CSV, or too large: {error}") from None
    columns = [name if name.partition(".")[0] in wanted else None for name in header]
    while True:
        before = lines.start_record()
        try:
            cells = next(reader, None)
        except (csv.Error, _TooLarge) as error:
            yield lines.number, bad_row(f"not CSV, or too large: {error}")
            continue
        if cells is None:
            _check_end(before, delimiter)
            return
        if cells:
            yield lines.number, _record(columns, cells)


def _check_end(lines: Sequence[str], delimiter: str) -> None:
    """Raise EOFError where the lines of the last record end inside quotes: the file is cut."""
    try:
        deque(csv.reader(lines, delimiter=delimiter, strict=True), maxlen=0)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            raise EOFError("its last row ends inside quotes") from None


def _delimiter(line: str, wanted: Collection[str]) -> str:
    def columns(delimiter: str) -> tuple[int, int]:
        names = next(csv.reader([line], delimiter=delimiter), [])
        return sum(name.partition(".")[0].strip() in wanted for name in names), len(names)

    return max(_DELIMITERS, key=columns)


class _TooLarge(Exception):
    """A line or a record exceeds the limit."""


class _Lines:
    """The lines of a file for the csv module. A line beyond the limit is skipped piece by piece."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._text = io.TextIOWrapper(
            stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
        )
        self._limit = limit
        self.number = 0
        """Number of the last line that was read."""
        self.size = 0
        """Number of characters of the current record."""
        self._record: list[str] = []

    def start_record(self) -> list[str]:
        """Begin a record; return the lines of the one before."""
        before, self._record, self.size = self._record, [], 0
        return before

    def release(self) -> None:
        """Let the caller close the file: a text wrapper that ends would close it with a warning."""
        if not self._text.closed:
            self._text.detach()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._limit + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.size += len(line)
        if self.size > self._limit and not (self.size == len(line) and _ends(line)):
            while line and not _ends(line):
                line = self._text.readline(1 << 20)
                self.size += len(line)
            raise _TooLarge(f"{self.size:,} characters, {self._limit:,} allowed")
        self._record.append(line)
        return line


def _ends(line: str) -> bool:
    return line.endswith(("\n", "\r"))


def _record(columns: list[str | None], cells: list[str]) -> Any:
    """The cells of the wanted columns by name, or a BadRow; an empty cell is left out."""
    if len(cells) > len(columns):
        return bad_row("more cells than columns")
    row: dict[str, Any] = {}
    for name, cell in zip(columns, cells, strict=False):
        if name is None or cell == "":
            continue
        try:
            cell.encode("utf-8")
        except UnicodeEncodeError:  # a surrogate: these bytes are not UTF-8
            row[name] = bad_row(f"{name}: not UTF-8")
        else:
            row[name] = cell
    return row
