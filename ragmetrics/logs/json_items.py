"""Splits `.json` files into items: an array, an API's envelope, or consecutive objects.

It looks only at brackets and quotes. Each item is decoded separately, like a line of JSONL. So
memory does not grow with the file, and a bad item does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic_core import from_json

ENVELOPES = ("data", "runs")
"""Keys of the lists in answers of the APIs of Langfuse, Phoenix and LangSmith."""

_SIGN = re.compile(rb'["{}\[\],]')
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_LIST_KEY = re.compile(rb'(?<!\\)"(?:' + "|".join(ENVELOPES).encode() + rb')"\s*:\s*\Z')
_KEY_TAIL = 64
_BOM = b"\xef\xbb\xbf"


def is_lines(head: bytes) -> bool:
    """True when the first line is a whole object, so that the file is JSON lines."""
    try:
        value = from_json(head.removeprefix(_BOM))
    except ValueError:
        return False
    lists = (isinstance(value, Mapping) and isinstance(value.get(name), list) for name in ENVELOPES)
    return isinstance(value, Mapping) and not any(lists)


def split(chunks: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, int]]:
    """The items of a document, each with its size. An item beyond the limit is truncated.

    Raises EOFError when the document ends inside an item or a list.
    """
    cutter = _Cutter(limit)
    for number, chunk in enumerate(chunks):
        yield from cutter.cut(chunk.removeprefix(_BOM) if number == 0 else chunk)
    if cutter.depth or cutter.in_string:
        raise EOFError("the JSON is not closed")
    yield from cutter.taken()


class _Cutter:
    """Follows the brackets of a document, chunk by chunk."""

    def __init__(self, limit: int) -> None:
        self.depth = 0
        self.in_string = False
        self._limit = limit
        self._escaped = False
        self._list_depth = 0
        """Depth of the list whose items are returned; 0 outside of it."""
        self._enveloped = False
        self._piece = bytearray()
        self._size = 0
        self._tail = b""
        """The last bytes read, which may contain the key of a list."""

    def cut(self, chunk: bytes) -> Iterator[tuple[bytes, int]]:
        """The items that end in this chunk."""
        start, position = 0, self._skip_string(chunk, 0)
        while match := _SIGN.search(chunk, position):
            sign, position = match[0], match.end()
            if sign == b'"':
                self.in_string = True
                position = self._skip_string(chunk, position)
            else:
                self._take(chunk[start : match.start()])
                start = position
                yield from self._bracket(sign)
        self._take(chunk[start:])

    def _skip_string(self, chunk: bytes, position: int) -> int:
        """The end of the open string, or the end of the chunk."""
        if not self.in_string or not chunk:
            return position
        position += self._escaped
        match = _IN_STRING.match(chunk, position)
        position = match.end() if match else position
        self.in_string = chunk[position : position + 1] != b'"'
        self._escaped = self.in_string and position < len(chunk)  # the last byte is a backslash
        return position + 1

    def taken(self) -> Iterator[tuple[bytes, int]]:
        """The current item, unless it is blank."""
        if self._piece.strip():
            yield bytes(self._piece), self._size
        self._drop()

    def _drop(self) -> None:
        self._piece, self._size = bytearray(), 0

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self.depth == 1:
            self._tail = (self._tail + data)[-_KEY_TAIL:]
        if len(self._piece) <= self._limit:
            self._piece += data

    def _bracket(self, sign: bytes) -> Iterator[tuple[bytes, int]]:
        if sign == b"," and self._list_depth and self.depth == self._list_depth:
            yield from self.taken()
        elif sign == b"[" and not self._list_depth and self._opens_list():
            yield from self.taken()  # an item before a top-level list
            self.depth += 1
            self._list_depth = self.depth
        elif sign == b"]" and self._list_depth and self.depth == self._list_depth:
            yield from self.taken()
            self.depth -= 1
            self._list_depth = 0
        else:
            yield from self._inside(sign)

    def _opens_list(self) -> bool:
        """True when this bracket opens the list of items: at the top level, or in an envelope."""
        if self.depth == 1 and _LIST_KEY.search(self._tail):
            self._enveloped = True
            self._drop()  # the other keys of an envelope are not an item
            return True
        return self.depth == 0

    def _inside(self, sign: bytes) -> Iterator[tuple[bytes, int]]:
        self._take(sign)
        if sign in b"{[":
            self.depth += 1
        elif sign in b"}]" and self.depth:
            self.depth -= 1
            if not self.depth:
                if self._enveloped:
                    self._drop()
                    self._enveloped = False
                yield from self.taken()
