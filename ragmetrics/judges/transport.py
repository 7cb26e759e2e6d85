"""Sends requests to an endpoint with aiohttp.

The SDK needs several times the CPU; see docs/decisions/0014-aiohttp-carries-requests.md.
"""

from __future__ import annotations

import asyncio
import io
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ragmetrics.judges.response_body import ENCODINGS, BadBody, BodyReader

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

    from ragmetrics.judges.endpoint_config import Access

CONNECT_SECONDS = 3.0
_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more
_LEAST_KEY = 8  # characters; a shorter key occurs in texts by chance
_STREAMED = 1 << 20  # bytes that are sent in pieces


class Unreachable(Exception):
    """No connection: unknown host, closed port, timeout or invalid certificate."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent
        """Whether an immediate retry would fail too."""


class Dropped(Exception):
    """The connection broke before the answer was complete."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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


async def read_answer(response: ClientResponse, bodies: BodyReader) -> Answer:
    """Read and decompress an answer; of an error only the beginning.

    Raises TooLarge if the answer is larger than allowed, Dropped if it is damaged.
    """
    pieces = response.content.iter_any()
    encoding = response.headers.get("Content-Encoding", "")
    read = bodies.read if 200 <= response.status < 300 else bodies.beginning
    try:
        return Answer(response.status, response.headers, await read(pieces, encoding))
    except BadBody as error:
        raise Dropped(f"the answer cannot be read: {error}") from error


class Transport:
    """Connections to one endpoint, opened by the first request on its event loop."""

    def __init__(self, access: Access, most_bytes: int) -> None:
        self.address = access.address.rstrip("/")
        self._access = access
        self._bodies = BodyReader(most_bytes)
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()

    async def post(self, path: str, body: bytes) -> Answer:
        """Send JSON and read the answer, of any status, without a timeout.

        Raises Unreachable, Dropped, and TooLarge if the answer is larger than allowed.
        """
        session = self._session or await self._open()
        data = body if len(body) < _STREAMED else io.BytesIO(body)
        with translate_connection_errors():
            # A redirect could send the logs to another server.
            async with session.post(
                self.address + path, data=data, allow_redirects=False
            ) as response:
                return self._without_key(await read_answer(response, self._bodies))

    def _without_key(self, answer: Answer) -> Answer:
        # Some servers repeat the key in errors, which are printed and stored.
        secret = self._access.key.encode()
        if answer.status == 200 or len(secret) < _LEAST_KEY:
            return answer
        return replace(answer, body=answer.body.replace(secret, b"***"))

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def _open(self) -> ClientSession:
        async with self._opening:
            if self._session is None:
                # In a thread: the import and the certificates would block the event loop.
                self._session = self._make(await asyncio.to_thread(certificates, self.address))
            return self._session

    def _make(self, certificates: ssl.SSLContext | bool) -> ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            # The limiter bounds the number of connections.
            connector=aiohttp.TCPConnector(
                limit=0, ssl=certificates, keepalive_timeout=_IDLE_SECONDS, ttl_dns_cache=300
            ),
            headers={**self._access.headers, "Accept-Encoding": ENCODINGS},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            # aiohttp's own `trust_env` would use a thread per request.
            proxy=proxy_of(self.address),
        )


def certificates(address: str) -> ssl.SSLContext | bool:
    """Certificates of SSL_CERT_FILE and SSL_CERT_DIR, or those of the system and of certifi."""
    import aiohttp  # noqa: F401 - in the thread that this runs in

    if not address.startswith("https:"):
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
    url = urlsplit(address)
    if not url.hostname or proxy_bypass(url.hostname):
        return None
    proxies = getproxies()
    return proxies.get(url.scheme) or proxies.get("all")
