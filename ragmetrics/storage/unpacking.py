"""Unpacking gzip and zstd as a stream, up to a bound: few bytes may unpack to terabytes."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import pyarrow as pa

MOST_TIMES = 500
"""Times its own size that a file may unpack to; logs come to a few dozen."""
FROM_BYTES = 16_000_000
"""Unpacked bytes from which on that is asked: what is less costs little in any case."""


class FileTooLarge(Exception):
    """A file takes more than is allowed once it is unpacked; what stands before that was read."""


def unpacked(file: BinaryIO, ending: str, limit: int) -> BinaryIO:
    """The content of a file of the ending `.gz` or `.zst`; of another, the file itself.

    Reading raises FileTooLarge beyond `limit` unpacked bytes, and where much is made of next to
    nothing; EOFError for an empty file.
    """
    if not ending:
        return file
    if not cast("io.BufferedReader", file).peek(1):
        raise EOFError(f"nothing in it, not even the head of a {ending} file")
    return cast("BinaryIO", _Bounded(_UNPACK[ending](file), file, limit))


class _Bounded(io.BufferedIOBase):
    """Counts what is read, and holds back nothing: a buffer would lose what stands before a cut."""

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
    ".gz": lambda file: cast("BinaryIO", gzip.GzipFile(fileobj=file)),
    ".zst": lambda file: cast("BinaryIO", io.BufferedReader(_Zstd(file), 1 << 16)),
}
