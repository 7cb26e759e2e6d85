"""Bodies of answers: unpacked piece by piece, and never beyond their bound."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given, strategies as st

from ragmetrics.http import BadBody, TooLarge
from ragmetrics.http.answer import BodyReader


async def sent(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """As a connection brings them."""
    for piece in pieces:
        yield piece


def read(data: bytes, encoding: str = "", most: int = 1 << 20, size: int = 7) -> bytes:
    """A body that comes in small pieces."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return asyncio.run(BodyReader(most).read(sent(pieces), encoding))


def raw_deflate(data: bytes) -> bytes:
    """Deflate without a header, as some servers send it."""
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


PACKS = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    "deflate": zlib.compress,
    "DEFLATE ": raw_deflate,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", PACKS)
@given(data=st.binary(max_size=2_000), size=st.integers(1, 50))
def test_what_is_packed_is_unpacked(encoding: str, data: bytes, size: int) -> None:
    """In whatever pieces it comes, several packed members among them."""
    assert read(PACKS[encoding](data), encoding, size=size) == data  # type: ignore[operator]


@pytest.mark.parametrize("encoding", PACKS)
def test_a_body_beyond_the_bound_is_not_read_on(encoding: str) -> None:
    """One byte more than allowed is too much; as many as allowed are not."""
    packed = PACKS[encoding](b"x" * 200_000)  # type: ignore[operator]
    assert len(read(packed, encoding, most=200_000, size=4_096)) == 200_000
    with pytest.raises(TooLarge, match="199,999 bytes"):
        read(packed, encoding, most=199_999, size=4_096)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_cut_body_is_an_error(encoding: str) -> None:
    """A short answer must not pass for a whole one."""
    with pytest.raises(BadBody, match="its end is missing"):
        read(PACKS[encoding](b"x" * 2_000)[:-9], encoding)  # type: ignore[operator]


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "br", "zstd", "\x00"]))
def test_any_body_is_read_or_refused(data: bytes, encoding: str) -> None:
    """Whatever a server sends, nothing else is raised."""
    try:
        assert len(read(data, encoding, most=10_000)) <= 10_000
    except (BadBody, TooLarge) as error:
        assert str(error)


def test_of_an_error_the_beginning_is_enough() -> None:
    """An endless error page is cut, not refused: its first words say what is wrong."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    beginning = asyncio.run(BodyReader(10).beginning(endless(), ""))
    assert len(beginning) == 64 << 10
