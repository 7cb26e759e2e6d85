"""Reads the records of a CSV file. Lines and records beyond a size limit are not held in memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

from pydantic_core import from_json

from ragmetrics.model import bad_row


def csv_records(
    stream: BinaryIO, limit: int, structured: Collection[str], wanted: Collection[str]
) -> Iterator[tuple[int, Any]]:
    """The records below the header, each with its line number.

    Only `wanted` columns are decoded; `structured` columns contain JSON. Raises EOFError for a
    header that cannot be read.
    """
    csv.field_size_limit(limit)
    lines = _Lines(stream, limit)
    try:
        yield from _records(lines, structured, wanted)
    finally:
        lines.release()


def _records(
    lines: _Lines, structured: Collection[str], wanted: Collection[str]
) -> Iterator[tuple[int, Any]]:
    reader = csv.reader(lines)
    try:
        header = next(reader, [])
    except (csv.Error, _TooLarge) as error:
        raise EOFError(f"its header is not CSV, or too large: {error}") from None
    columns = [name if name.partition(".")[0] in wanted else None for name in header]
    while True:
        lines.size = 0
        try:
            cells = next(reader, None)
        except (csv.Error, _TooLarge) as error:
            yield lines.number, bad_row(f"not CSV, or too large: {error}")
            continue
        if cells is None:
            return
        if cells:
            yield lines.number, _record(columns, cells, structured)


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
        return line


def _ends(line: str) -> bool:
    return line.endswith(("\n", "\r"))


def _record(columns: list[str | None], cells: list[str], structured: Collection[str]) -> Any:
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
            return bad_row("not UTF-8")
        try:
            row[name] = from_json(cell) if name in structured else cell
        except ValueError:
            return bad_row(f"{name}: the cell should hold JSON")
    return row
