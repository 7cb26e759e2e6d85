"""Transport of requests: address and key of an OpenAI-compatible endpoint, and its connections.

Address and key come from the same environment variables as in the openai SDK. The SDK is not
imported, because that takes a second of CPU. aiohttp sends the requests, for a fraction of the
SDK's CPU time; see docs/decisions/0014-aiohttp-carries-requests.md.

A server may send 200 kB that decompress to gigabytes, or an endless body. So the HTTP client does
not decompress; this module does, at most `_PIECE` bytes at a time and up to a size limit.
"""

from __future__ import annotations

import asyncio
import io
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretStr

from ragmetrics.config import JudgeSettings, url_of_environment
from ragmetrics.errors import JudgeRefused
from ragmetrics.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

CONNECT_SECONDS = 3.0
_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more
_LEAST_KEY = 8  # characters; a shorter key occurs in texts by chance
_STREAMED = 1 << 20  # bytes that are sent in pieces
ENCODINGS = "gzip, deflate"
"""Accept-Encoding of requests: the encodings that are decompressed here."""
_PIECE = 1 << 16
_LARGE = 1 << 20
_HEAD = 2  # bytes that identify the encoding
_LARGE_AT_ONCE = 8
_EITHER = 32 + zlib.MAX_WBITS  # gzip or zlib, by their first bytes
_RAW = -zlib.MAX_WBITS  # deflate without a header, as some servers send it
_OPENAI = "https://api.openai.com/v1"
_NAMED = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}


@dataclass(frozen=True)
class Access:
    """Address and key of an endpoint; local servers need no key."""

    address: str
    key: str = field(repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of each request."""
        named = {header: value for name, header in _NAMED.items() if (value := os.getenv(name))}
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"ragmetrics/{__version__}",
            **named,
        }


def find_access(settings: JudgeSettings, base_url: str | None, key: SecretStr | None) -> Access:
    """The access according to settings and environment.

    Raises JudgeRefused for a key that is missing or malformed, SettingsError if OPENAI_BASE_URL is
    not a URL.
    """
    base_url = base_url or url_of_environment()
    if key is None and base_url is None:
        raise JudgeRefused(
            f"the judge openai needs a key: set {settings.api_key_env}, or `judge: base_url:` to a "
            "server that needs none"
        )
    secret = key.get_secret_value() if key else "none"
    if not (secret.isascii() and secret.isprintable()):
        raise JudgeRefused(f"the key in {settings.api_key_env} holds characters that no key has")
    return Access((base_url or _OPENAI).rstrip("/") + "/", secret)


class Unreachable(Exception):
    """No connection: unknown host, closed port, timeout or invalid certificate."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent
        """Whether an immediate retry would fail too."""


class Dropped(Exception):
    """The connection broke before the answer was complete."""


class BadBody(Exception):
    """The body is damaged, or has an encoding that was not offered."""


class TooLarge(Exception):
    """The body is larger than allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(f"it is larger than {most:,} bytes")
        self.most = most


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Connections to one endpoint, opened by the first request on its event loop."""

    def __init__(self, access: Access, most_bytes: int) -> None:
        self.address = access.address.rstrip("/")
        self._access = access
        self._bodies = BodyReader(most_bytes)
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def post(self, path: str, body: bytes) -> Answer:
        """Send JSON and read the answer, of any status, without a timeout.

        Raises Unreachable, also after `close`, Dropped, and TooLarge if the answer is larger than
        allowed.
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
        """Close the connections, for good: a late request must not open one that nobody closes."""
        self._closed = True
        if self._session:
            await self._session.close()
            self._session = None

    async def _open(self) -> ClientSession:
        async with self._opening:
            if self._session is None:
                # In a thread: the import and the certificates would block the event loop.
                known = await asyncio.to_thread(certificates, self.address)
                if self._closed:
                    raise Unreachable("the client is closed", permanent=True)
                self._session = self._make(known)
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
    encoding = response.headers.get("Content-Encoding", "")
    if not encoding and (response.content_length or _LARGE) < min(_LARGE, bodies.most):
        return Answer(response.status, response.headers, await response.read())
    pieces = response.content.iter_any()
    read = bodies.read if 200 <= response.status < 300 else bodies.beginning
    try:
        return Answer(response.status, response.headers, await read(pieces, encoding))
    except BadBody as error:
        raise Dropped(f"the answer cannot be read: {error}") from error


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
        """The beginning of the body, for an error message; it ends at damaged data."""
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
