"""`.json` files cut into items: an array, an API's envelope, or objects one after the other.

Only brackets and quotes are looked at here; each item is decoded by itself, as a line of JSONL is.
So memory does not grow with the file, and a bad item does not spoil the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic_core import from_json

ENVELOPES = ("data", "runs")
"""Where the APIs of Langfuse, Phoenix and LangSmith put their lists."""

_SIGN = re.compile(rb'["{}\[\],]')
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_LIST_KEY = re.compile(rb'(?<!\\)"(?:' + "|".join(ENVELOPES).encode() + rb')"\s*:\s*\Z')
_KEY_TAIL = 64
_BOM = b"\xef\xbb\xbf"


def is_lines(head: bytes) -> bool:
    """Whether a file that begins with this line is JSON lines: whole objects, one a line."""
    try:
        value = from_json(head.removeprefix(_BOM))
    except ValueError:
        return False
    lists = (isinstance(value, Mapping) and isinstance(value.get(name), list) for name in ENVELOPES)
    return isinstance(value, Mapping) and not any(lists)


def split(chunks: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, int]]:
    """The items of a document, each with its size; of one over the limit only the beginning.

    Raises EOFError where the document ends in the midst of an item or of a list.
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
        """How deep the list lies whose items are given out; 0 outside of one."""
        self._enveloped = False
        self._piece = bytearray()
        self._size = 0
        self._tail = b""
        """What was read last, where a list's key may stand before its bracket."""

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
        """Where the string that is open ends, or the end of the chunk."""
        if not self.in_string or not chunk:
            return position
        position += self._escaped
        match = _IN_STRING.match(chunk, position)
        position = match.end() if match else position
        self.in_string = chunk[position : position + 1] != b'"'
        self._escaped = self.in_string and position < len(chunk)  # a backslash is its last byte
        return position + 1

    def taken(self) -> Iterator[tuple[bytes, int]]:
        """The item at hand, unless it is blank."""
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
            yield from self.taken()  # what stands before a list at the top
            self.depth += 1
            self._list_depth = self.depth
        elif sign == b"]" and self._list_depth and self.depth == self._list_depth:
            yield from self.taken()
            self.depth -= 1
            self._list_depth = 0
        else:
            yield from self._inside(sign)

    def _opens_list(self) -> bool:
        """Whether this bracket opens the document's list: at the top, or as an envelope's list."""
        if self.depth == 1 and _LIST_KEY.search(self._tail):
            self._enveloped = True
            self._drop()  # the other keys of an envelope are no item
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
