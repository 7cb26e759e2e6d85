"""Reads the body of an answer, unpacked, and never more of it than is allowed.

A server may send 200 kB that unpack to gigabytes, or bytes without an end. So the client does not
unpack by itself: pieces are unpacked here, at most `_PIECE` bytes at a time.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

ENCODINGS = "gzip, deflate"
"""What requests offer as Accept-Encoding: nothing else is unpacked here."""
_PIECE = 1 << 16
_LARGE = 1 << 20
_HEAD = 2  # bytes that tell one packing from the others
_LARGE_AT_ONCE = 8
_EITHER = 32 + zlib.MAX_WBITS  # gzip or zlib, by their first bytes
_RAW = -zlib.MAX_WBITS  # deflate without a header, as some servers send it


class BadBody(Exception):
    """The body is damaged, or packed in a way that was not offered."""


class TooLarge(Exception):
    """The body is larger than it may be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it is larger than {most:,} bytes")
        self.most = most


class Unpacker:
    """Unpacks one body. Raises BadBody."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadBody(f"it is packed as {name[:40]!r}, which was not asked for")
        self._packed = name not in ("", "identity")
        self._head = b""
        self._member: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What a piece of the body unpacks to, in pieces of bounded size."""
        if not self._packed:
            yield data
            return
        full = False  # the piece before may not have been all that was there
        while data or full:
            if self._member is None or self._member.eof:  # several members may follow each other
                self._head += data
                if len(self._head) < _HEAD:
                    return
                data, self._head = self._head, b""
                self._member = zlib.decompressobj(_window(data))
            try:
                unpacked = self._member.decompress(data, _PIECE)
            except zlib.error as error:
                raise BadBody(f"it cannot be unpacked: {error}") from None
            ended = self._member.eof
            data = self._member.unused_data if ended else self._member.unconsumed_tail
            full = len(unpacked) == _PIECE and not ended
            if unpacked:
                yield unpacked

    def finish(self) -> None:
        """See that nothing is missing at the end."""
        if self._head or (self._member and not self._member.eof):
            raise BadBody("it is packed, and its end is missing")


def _window(head: bytes) -> int:
    """What zlib is told of packed data that begins so."""
    zlib_header = head[0] & 15 == zlib.DEFLATED and int.from_bytes(head[:_HEAD], "big") % 31 == 0
    return _EITHER if zlib_header or head.startswith(b"\x1f\x8b") else _RAW


class BodyReader:
    """Reads bodies of at most `most` bytes; only a few large ones at once.

    Many connections that all send without an end then take `_LARGE` bytes each, and not `most`.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)

    async def read(self, pieces: AsyncIterator[bytes], encoding: str) -> bytes:
        """The whole body. Raises TooLarge and BadBody."""
        body, unpacker = bytearray(), Unpacker(encoding)
        async with AsyncExitStack() as held:
            async for piece in pieces:
                for unpacked in unpacker.feed(piece):
                    if len(body) <= _LARGE < len(body) + len(unpacked):
                        await held.enter_async_context(self._large)
                    body += unpacked
                    if len(body) > self.most:
                        raise TooLarge(self.most)
            unpacker.finish()
            return bytes(body)

    async def beginning(self, pieces: AsyncIterator[bytes], encoding: str) -> bytes:
        """As much of the body as an error message needs; what is damaged ends it."""
        body = bytearray()
        try:
            unpacker = Unpacker(encoding)
            async for piece in pieces:
                for unpacked in unpacker.feed(piece):
                    body += unpacked
                    if len(body) > _LARGE:
                        return bytes(body[:_LARGE])
        except BadBody as error:
            return bytes(body) or str(error).encode()
        return bytes(body)
