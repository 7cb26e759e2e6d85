"""JSON requests to the REST API of a code host, repeated where that can help."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ragmetrics.errors import HttpError, RagmetricsError
from ragmetrics.http import Backoff, HttpClient

_ATTEMPTS = 4
_LIMITED_PAUSE = 60.0
"""GitHub asks for a minute after a rate limit that names no time."""
_LONGEST_PAUSE = 120.0
_TIMEOUT = 30.0
_MOST_BYTES = 32 << 20
"""More than a page of a hundred comments of 65,536 characters has, at four bytes each."""


class HostError(RagmetricsError):
    """The code host refused a request, could not be reached, or answered what it does not say."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class HostApi:
    """A REST API at an address, with the headers that identify us, and the secrets in them."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        secrets: Collection[str] = (),
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        headers = {"Accept": "application/json", "Content-Type": "application/json", **headers}
        self._open = partial(
            HttpClient, address, headers, secrets=secrets, most_bytes=_MOST_BYTES, timeout=_TIMEOUT
        )
        self._sleep = sleep

    def request(self, method: str, path: str, body: Any = None, **params: object) -> Any:
        """The JSON of the answer. Server errors, lost connections and rate limits are repeated.

        A POST is repeated only after an answer, which says that nothing was made: an answer that
        was lost may have made a comment. Raises HostError.
        """
        backoff = Backoff(attempts=_ATTEMPTS, longest_wait=_LONGEST_PAUSE, sleep=self._sleep)
        data = None if body is None else json.dumps(body).encode()
        texts = {name: str(value) for name, value in params.items()}
        with self._open() as client:

            def attempt() -> Any:
                try:
                    return client.request(method, path, body=data, params=texts).json()
                except HttpError as error:
                    if error.status is None and error.sent and method == "POST":
                        error.transient = False
                    if _is_limit(error):
                        error.transient, error.wait = True, error.wait or _LIMITED_PAUSE
                    raise

            try:
                return backoff.call(attempt)
            except HttpError as error:
                text = f"{method} {client.address}{path}: {error}"
                raise HostError(client.shown(text), error.status) from None


def _is_limit(error: HttpError) -> bool:
    """Whether it is a rate limit; GitHub answers 403 too, and says so in a header or in words."""
    return error.status == 429 or (
        error.status == 403 and bool(error.wait or "rate limit" in str(error).lower())
    )
