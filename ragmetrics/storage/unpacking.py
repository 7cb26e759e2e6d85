"""Unpacks gzip and zstd as a stream with a size limit: few bytes may unpack to terabytes."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import pyarrow as pa

MOST_TIMES = 500
"""Largest compression ratio of a file. Logs have a ratio of a few dozen."""
FROM_BYTES = 16_000_000
"""The ratio is checked from this number of unpacked bytes on. Less does no harm."""


class FileTooLarge(Exception):
    """A file exceeds the limit when it is unpacked. The content before the limit was read."""


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
