"""Connections: certificates, proxies, their errors, and bodies within bounds of memory.

A server may send 200 kB that decompress to gigabytes, or an endless body. So the HTTP client does
not decompress; this module does, at most `_PIECE` bytes at a time and up to a size limit.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

ENCODINGS = "gzip, deflate"
"""Accept-Encoding of requests: the encodings that are decompressed here."""
MOST_OF_ERROR = 64 << 10
"""Most bytes of the body of an error: people read its first lines, and code its first objects."""
_PIECE = 1 << 16
_LARGE = 1 << 20
_HEAD = 2  # bytes that identify the encoding
_LARGE_AT_ONCE = 8
_EITHER = 32 + zlib.MAX_WBITS  # gzip or zlib, by their first bytes
_RAW = -zlib.MAX_WBITS  # deflate without a header, as some servers send it


class BadBody(Exception):
    """The body is damaged, or has an encoding that was not offered."""


class TooLarge(Exception):
    """The body is larger than allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it is larger than {most:,} bytes")
        self.most = most


class BodyReader:
    """Reads bodies of at most `most` bytes, and only a few large ones at once.

    So many connections with endless bodies take `_LARGE` bytes each, not `most`.
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
        """The first 64 kB of the body, for an error message; it ends at damaged data."""
        body = bytearray()
        try:
            unpacker = Unpacker(encoding)
            async for piece in pieces:
                for unpacked in unpacker.feed(piece):
                    body += unpacked[: MOST_OF_ERROR - len(body)]
                    if len(body) >= MOST_OF_ERROR:
                        return bytes(body)
        except BadBody as error:
            return bytes(body) or str(error).encode()
        return bytes(body)


class Unpacker:
    """Decompresses one body. Raises BadBody."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadBody(f"it has the encoding {name[:40]!r}, which was not offered")
        self._packed = name not in ("", "identity")
        self._head = b""
        self._member: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress a piece of the body into pieces of bounded size."""
        if not self._packed:
            yield data
            return
        full = False  # the last piece may not have been complete
        while data or full:
            if self._member is None or self._member.eof:  # a body may have several members
                self._head += data
                if len(self._head) < _HEAD:
                    return
                data, self._head = self._head, b""
                self._member = zlib.decompressobj(_window(data))
            try:
                unpacked = self._member.decompress(data, _PIECE)
            except zlib.error as error:
                raise BadBody(f"it cannot be decompressed: {error}") from None
            ended = self._member.eof
            data = self._member.unused_data if ended else self._member.unconsumed_tail
            full = len(unpacked) == _PIECE and not ended
            if unpacked:
                yield unpacked

    def finish(self) -> None:
        """Check that the body is complete."""
        if self._head or (self._member and not self._member.eof):
            raise BadBody("it is compressed, and its end is missing")


def _window(head: bytes) -> int:
    """The `wbits` of zlib for data that begins so."""
    zlib_header = head[0] & 15 == zlib.DEFLATED and int.from_bytes(head[:_HEAD], "big") % 31 == 0
    return _EITHER if zlib_header or head.startswith(b"\x1f\x8b") else _RAW


if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 3.0
_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more


class Unreachable(Exception):
    """No connection: unknown host, closed port, timeout or invalid certificate."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent
        """Whether an immediate retry would fail too."""


class Dropped(Exception):
    """The connection broke before the answer was complete."""


def open_session(
    address: str, headers: Mapping[str, str], known: ssl.SSLContext | bool
) -> ClientSession:
    """Connections to an address, without a limit on their number: callers have one."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, ssl=known, keepalive_timeout=_IDLE_SECONDS, ttl_dns_cache=300
        ),
        headers=headers,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        # aiohttp's own `trust_env` would use a thread per request.
        proxy=proxy_of(address),
    )


def certificates(address: str) -> ssl.SSLContext | bool:
    """Certificates of SSL_CERT_FILE and SSL_CERT_DIR, or those of the system and of certifi."""
    import aiohttp  # noqa: F401 - in the thread that this runs in

    if not address.lower().startswith("https:"):
        return True  # no certificate is needed
    return _context(os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"))


@cache
def _context(named: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not named and find_spec("certifi"):
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def proxy_of(address: str) -> str | None:
    """The proxy that the environment names for an address, if any."""
    try:
        url = urlsplit(address)
    except ValueError:  # the request itself says so
        return None
    if not url.hostname or proxy_bypass(url.hostname):
        return None
    proxies = getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Translate errors of aiohttp to Unreachable or Dropped."""
    import aiohttp

    try:
        yield
    except (
        aiohttp.ConnectionTimeoutError,
        aiohttp.InvalidURL,
        aiohttp.NonHttpUrlClientError,
        UnicodeError,  # a host name that cannot be encoded
    ) as error:
        raise Unreachable(str(error), permanent=True) from error
    except aiohttp.ClientConnectorError as error:
        certificate = isinstance(error, aiohttp.ClientSSLError)
        raise Unreachable(str(error.os_error), permanent=certificate) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Dropped(str(error) or type(error).__name__) from error
