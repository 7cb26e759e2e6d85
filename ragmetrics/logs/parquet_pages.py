"""Reads the unpacked size of a Parquet column from the headers of its pages.

The footer states a size too, but it may be wrong. The reader uses the page headers, so only these
are read here (Thrift's compact protocol) and no data.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, BinaryIO

_HEADER = 512
_TAIL = 8
"""Bytes after the footer: its length, and the letters of the format."""
_LONGEST_HEADER = 1 << 20  # it contains statistics, which may be long texts
_DICTIONARY, _INDEX = 2, 1
_PREFIX_ENCODING = 7  # DELTA_BYTE_ARRAY: a value may repeat the beginning of the one before it
_DEEPEST = 16

_TRUE, _FALSE, _BYTE, _I64 = 1, 2, 3, 6
_DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 7, 8, 9, 10, 12


@dataclass(frozen=True)
class Pages:
    """The pages of one column in one row group."""

    bytes: int = 0
    """Unpacked size of all pages."""
    largest: int = 0
    values: int = 0
    dictionary: int = 0
    """Size of the dictionary in bytes; 0 without one."""
    prefixes: bool = False
    """True when values are stored as differences from the value before."""


def read_pages(file: BinaryIO, start: int, end: int, values: int) -> Pages:
    """Read the page headers between two offsets of a file, until there are enough `values`.

    Raises ValueError for a missing or invalid page header.
    """
    total = largest = seen = dictionary = 0
    prefixes = False
    while start < end and seen < values:
        header, length = _header_at(file, start)
        size, packed = _number(header, 2), _number(header, 3)
        start += length + packed
        total, largest = total + size, max(largest, size)
        if header.get(1) == _DICTIONARY:
            dictionary = max(dictionary, size)
        elif header.get(1) != _INDEX:
            page = header.get(8) or header.get(5)
            if not isinstance(page, dict):
                raise ValueError("a page has no header of its kind")
            seen += _number(page, 1)
            prefixes |= page.get(4 if 8 in header else 2) == _PREFIX_ENCODING
    return Pages(total, largest, seen, dictionary, prefixes)


def footer_size(file: BinaryIO) -> tuple[int, int]:
    """The number of columns of a Parquet file, groups of columns included, and the bytes of its
    footer.

    Only the head of the schema is read, which says how many follow. 0 for what cannot be read:
    Arrow says what is wrong with the file.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - _TAIL))
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < _TAIL or length > end - _TAIL:
        return 0, 0
    file.seek(end - _TAIL - length)
    reader = _Compact(file.read(min(length, _HEADER)))
    try:
        return reader.second_list(), length
    except (IndexError, ValueError):
        return 0, length


def _number(struct: dict[int, Any], name: int) -> int:
    value = struct.get(name)
    if not isinstance(value, int) or value < 0:
        raise ValueError("a page header is invalid")
    return value


def _header_at(file: BinaryIO, place: int) -> tuple[dict[int, Any], int]:
    """The page header at an offset, and its length."""
    size = _HEADER
    while True:
        file.seek(place)
        data = file.read(size)
        reader = _Compact(data)
        try:
            return reader.struct(), reader.place
        except IndexError:
            if len(data) < size or size >= _LONGEST_HEADER:
                raise ValueError("a page header is cut short") from None
            size *= 16


class _Compact:
    """The part of Thrift's compact protocol that page headers use. IndexError: the data ends."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Fields by number. The content of texts, lists and maps is skipped."""
        found: dict[int, Any] = {}
        name = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            name = name + step if step else self._signed()
            found[name] = self._value(kind, depth)
        return found

    def second_list(self) -> int:
        """The length of the list that is the second field, after a number; 0 for other fields."""
        version, _, schema = self._byte(), self._signed(), self._byte()
        if version >> 4 != 1 or schema != 1 << 4 | _LIST:
            return 0
        head = self._byte()
        return head >> 4 if head >> 4 < 15 else self._varint()

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a page header is invalid")

    def _signed(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _skip(self, size: int) -> None:
        self.place += size
        if self.place > len(self._data):
            raise IndexError

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("a page header is nested too deeply")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if _BYTE < kind <= _I64:
            return self._signed()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._items(depth)
        if kind not in (_BYTE, _DOUBLE, _BINARY):
            raise ValueError("a page header is invalid")  # it has no maps
        self._skip(self._varint() if kind == _BINARY else 8 if kind == _DOUBLE else 1)
        return None

    def _items(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        for _ in range(count):
            if head & 15 in (_TRUE, _FALSE):
                self._byte()
            else:
                self._value(head & 15, depth + 1)
