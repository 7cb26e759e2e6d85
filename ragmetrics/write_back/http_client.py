"""Sends requests to one target: with a timeout, without redirects, and without secrets in errors.

Which status means what is the same for all targets, except where a target says otherwise:

    408, 425, 429, 5xx, no connection   TargetError, transient
    401, 403, 404, 405, 407, 410, 3xx   TargetError: the key or the address is wrong
    other 4xx                           BatchRefused
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ragmetrics import event_loop
from ragmetrics.judges import (
    CONNECT_SECONDS,
    ENCODINGS,
    Answer,
    BodyReader,
    Dropped,
    TooLarge,
    Unreachable,
    certificates,
    error_of,
    proxy_of,
    read_answer,
    retry_after,
    translate_connection_errors,
)
from ragmetrics.text import clean
from ragmetrics.version import __version__
from ragmetrics.write_back.target import BatchRefused, TargetError

if TYPE_CHECKING:
    from aiohttp import ClientSession

_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more
_LEAST_SECRET = 4  # characters: shorter ones appear in texts by chance
_MOST_BYTES = 16 << 20
_LONGEST = 300
_RETRYABLE = frozenset([408, 425, 429, *range(500, 600)])
_CONFIGURED = (401, 403, 404, 405, 407, 410)


class HttpClient:
    """Posts to one address, from any thread but that of the event loop."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        secrets: Collection[str],
        timeout: float,
        retryable: Collection[int] = _RETRYABLE,
    ) -> None:
        self.address = address
        self._retryable = retryable
        self._timeout = timeout
        self._secrets = sorted((one for one in secrets if len(one) >= _LEAST_SECRET), key=len)
        self._headers = {
            "Accept-Encoding": ENCODINGS,
            "User-Agent": f"ragmetrics/{__version__}",
            **headers,
        }
        self._session: ClientSession | None = None
        self._bodies = BodyReader(_MOST_BYTES)

    def post(self, path: str, body: bytes, passing: Collection[int] = ()) -> Answer:
        """Post a body and return the answer, if its status is 2xx or one of `passing`.

        Raises TargetError or BatchRefused for every other answer, and for none.
        """
        try:
            answer = event_loop.run(self._post(path, body))
        except Unreachable as error:
            raise self._unconfirmed(f"no connection: {error}", transient=True) from error
        except Dropped as error:
            raise self._unconfirmed(f"the connection broke: {error}", transient=True) from error
        except TimeoutError as error:
            reason = f"no answer within {self._timeout:g} s"
            raise self._unconfirmed(reason, transient=True) from error
        except TooLarge as error:
            raise self._unconfirmed(f"the answer: {error}", transient=False) from error
        if 200 <= answer.status < 300 or answer.status in passing:
            return answer
        reason = f"{path} answered {answer.status}: {self.said(answer)}"
        if answer.status in self._retryable:
            wait = retry_after(answer.headers, datetime.now(UTC))
            raise self._unconfirmed(reason, transient=True, wait=wait)
        if not 400 <= answer.status < 500 or answer.status in _CONFIGURED:
            raise self._unconfirmed(reason, transient=False)
        raise BatchRefused(self.shown(reason))

    def said(self, answer: Answer) -> str:
        """The error text of an answer, without secrets that it may repeat."""
        text = error_of(answer.body).get("message") or answer.body.decode("utf-8", "replace")
        return self.shown(str(text)) or "no error text"

    def shown(self, text: str) -> str:
        """A text in one line, without secrets."""
        for secret in reversed(self._secrets):
            text = text.replace(secret, "***")
        return clean(text, _LONGEST)

    def close(self) -> None:
        """Close the connections."""
        if self._session:
            event_loop.run(self._session.close())
            self._session = None

    def _unconfirmed(
        self, reason: str, *, transient: bool, wait: float | None = None
    ) -> TargetError:
        return TargetError(f"{self.address}: {self.shown(reason)}", transient=transient, wait=wait)

    async def _post(self, path: str, body: bytes) -> Answer:
        session = self._session or await self._open()
        async with asyncio.timeout(self._timeout):  # outside: a TimeoutError is an OSError too
            with translate_connection_errors():
                # A redirect could send the key to another server.
                async with session.post(
                    self.address + path, data=body, allow_redirects=False
                ) as response:
                    return await read_answer(response, self._bodies)

    async def _open(self) -> ClientSession:
        known = await asyncio.to_thread(certificates, self.address)
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=known, keepalive_timeout=_IDLE_SECONDS),
            headers=self._headers,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_of(self.address),
        )
        return self._session
