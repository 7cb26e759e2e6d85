"""The client: requests to one address, whose answers are bounded and hold no secret. What fails for
the moment is repeated after pauses that grow, or as long as the server asks (`Backoff`).

aiohttp sends the requests, for a fraction of the CPU time of the openai SDK and of httpx; see
docs/decisions/0071-one-http-client.md.
"""

from __future__ import annotations

import asyncio
import io
import math
import os
import random
import ssl
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ragmetrics.errors import HttpError, InputError, RagmetricsError
from ragmetrics.http.answer import (
    ENCODINGS,
    Answer,
    BodyReader,
    Dropped,
    Redactor,
    TooLarge,
    read_answer,
)
from ragmetrics.http.event_loop import run_coroutine
from ragmetrics.text import shorten
from ragmetrics.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from yarl import URL

T = TypeVar("T")
Params = Mapping[str, str] | Sequence[tuple[str, str]] | None
CONNECT_SECONDS = 3.0
_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more
_STREAMED = 1 << 20  # bytes that are sent in pieces
_MOST_BYTES = 1 << 20
_HEADERS = {"Accept-Encoding": ENCODINGS, "User-Agent": f"ragmetrics/{__version__}"}


class HttpClient:
    """Requests to one address. Connections are opened by the first one, on its event loop.

    No redirect is followed: it could send keys and questions to another server. `secrets` are taken
    out of every answer and error; `timeout` (seconds) limits `request` alone.
    """

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str] | None = None,
        *,
        secrets: Collection[str] = (),
        most_bytes: int = _MOST_BYTES,
        timeout: float = 30.0,
    ) -> None:
        self.address = address.rstrip("/")
        self.reached = False
        """Whether the server has ever begun an answer."""
        self._as_given = address
        self._headers = dict(headers or {})
        named = {name.lower() for name in self._headers}
        for name, value in _HEADERS.items():
            if name.lower() not in named:
                self._headers[name] = value
        for name, value in self._headers.items():
            if not (value.isascii() and value.isprintable()):
                raise InputError(f"the header {name} holds characters that no header can hold")
        self._timeout = timeout
        self._redactor = Redactor(secrets)
        self._bodies = BodyReader(most_bytes)
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def send(
        self,
        method: str,
        path: str = "",
        *,
        body: bytes | None = None,
        params: Params = None,
        encoded: bool = False,
    ) -> Answer:
        """Send a request and read the answer, of any status, without a timeout.

        `encoded`: the path is encoded as it is to be sent. Raises Unreachable, also after `close`,
        Dropped, and TooLarge if the answer is larger than allowed.
        """
        session = self._session or await self._open()
        url = _url(self.address + path if path else self._as_given, encoded=encoded)
        data = body if body is None or len(body) < _STREAMED else io.BytesIO(body)
        with translate_connection_errors():
            async with session.request(
                method, url, data=data, params=params, allow_redirects=False
            ) as response:
                self.reached = True
                answer = await read_answer(response, self._bodies)
        return replace(answer, body=self._redactor.body(answer.body))

    def request(
        self,
        method: str,
        path: str = "",
        *,
        body: bytes | None = None,
        params: Params = None,
        passing: Collection[int] = (),
    ) -> Answer:
        """The answer, if its status is 2xx or one of `passing`; from any thread but the loop's.

        Raises HttpError for every other answer, and for none.
        """
        try:
            answer = run_coroutine(self._in_time(method, path, body, params))
        except Unreachable as error:
            # Nothing was sent. A wrong address may be the name server's fault, for a moment.
            raise self._failed(f"no connection: {error}", sent=False) from None
        except Dropped as error:
            raise self._failed(f"the connection broke: {error}") from None
        except TimeoutError:
            raise self._failed(f"no answer within {self._timeout:g} s", timed_out=True) from None
        except TooLarge as error:
            reason = f"the answer is larger than {error.most:,} bytes"
            raise self._failed(reason, transient=False) from None
        if answer.is_success or answer.status in passing:
            return answer
        raise answer.error(self._redactor)

    def shown(self, text: str) -> str:
        """A text without secrets."""
        return self._redactor.text(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def aclose(self) -> None:
        """Close the connections, for good: a late request must not open one that nobody closes."""
        self._closed = True
        if self._session:
            await self._session.close()
            self._session = None

    def close(self) -> None:
        """`aclose` from any thread but the loop's."""
        if self._session:
            run_coroutine(self.aclose())
        self._closed = True

    async def _in_time(self, method: str, path: str, body: bytes | None, params: Params) -> Answer:
        async with asyncio.timeout(self._timeout):  # outside: a TimeoutError is an OSError too
            return await self.send(method, path, body=body, params=params)

    def _failed(
        self, reason: str, *, transient: bool = True, sent: bool = True, timed_out: bool = False
    ) -> HttpError:
        reason = shorten(self.shown(reason))
        return HttpError(reason, transient=transient, sent=sent, timed_out=timed_out)

    async def _open(self) -> ClientSession:
        async with self._opening:
            if self._session is None:
                # In a thread: the import and the certificates would block the event loop.
                known = await asyncio.to_thread(certificates, self.address)
                if self._closed:
                    raise Unreachable("the client is closed", permanent=True)
                self._session = open_session(self.address, self._headers, known)
            return self._session


def _url(text: str, *, encoded: bool) -> URL:
    from yarl import URL

    try:
        return URL(text, encoded=encoded)
    except ValueError as error:
        raise Unreachable(f"the address cannot be used: {error}", permanent=True) from None


class Unreachable(Exception):
    """No connection: unknown host, closed port, timeout or invalid certificate."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent
        """Whether an immediate retry would fail too."""


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


class RetryableError(Exception):
    """A failed attempt that may be repeated; `kind` is the name it is counted under."""

    def __init__(self, kind: str, message: str, *, wait: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.wait = wait
        """Seconds that the endpoint asks to wait."""


@dataclass
class Backoff:
    """Pauses before further attempts, all in one place, and their limits.

        pause = max(chance * min(first * 2^failures, longest), asked),   chance in [0.5, 1]

    An error is repeated if it is `transient`. Its `wait` are the seconds that a server asks for.
    """

    first: float = 1.0
    """First pause in seconds."""
    longest: float = 32.0
    """Longest pause in seconds, unless a server asks for more."""
    attempts: float = math.inf
    """Most attempts of one call."""
    seconds: float = math.inf
    """Most seconds of all pauses and failed attempts together, of all calls."""
    longest_wait: float = math.inf
    """A server that asks for more seconds than these is not asked again."""
    sleep: Callable[[float], None] = time.sleep
    waited: float = field(default=0.0, init=False)
    """Seconds of pauses and failed attempts so far."""
    _failures: int = field(default=0, init=False)

    def call(self, act: Callable[[], T]) -> T:
        """The result of `act`. Raises its last error if it is not transient, or out of attempts."""
        self._failures = 0
        while True:
            begun = time.monotonic()
            try:
                return act()
            except RagmetricsError as error:
                self.waited += time.monotonic() - begun
                if not error.transient:
                    raise
                self.pause(error)

    def pause(self, error: RagmetricsError) -> None:
        """Wait before the next attempt. Raises the error if there is none."""
        asked = getattr(error, "wait", None) or 0.0
        grown = min(self.first * 2.0 ** min(self._failures, 32), self.longest)
        self._failures += 1
        pause = max(grown * random.uniform(0.5, 1.0), asked)  # noqa: S311 - keeps no secret
        if (
            self._failures >= self.attempts
            or asked > self.longest_wait
            or self.waited + pause > self.seconds
        ):
            raise error
        self.sleep(pause)
        self.waited += pause
