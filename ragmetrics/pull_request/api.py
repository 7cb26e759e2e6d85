"""JSON requests to the REST API of a code host, repeated where that can help."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ragmetrics.errors import RagmetricsError
from ragmetrics.text import shorten

if TYPE_CHECKING:
    import httpx

_TRIES = 4
_PAUSE = 1.0
_LIMITED_PAUSE = 60.0
"""GitHub asks for a minute after a rate limit that names no time."""
_LONGEST_PAUSE = 120.0
_TIMEOUT = 30.0


class HostError(RagmetricsError):
    """The code host refused a request, or could not be reached."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class HostApi:
    """A REST API at an address, with the headers that identify us."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address, self._headers, self._sleep = address.rstrip("/"), dict(headers), sleep

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        """The JSON of the answer. Server errors, lost connections and rate limits are repeated.

        A POST is repeated only after an answer, which says that nothing was made: an answer that
        was lost may have made a comment. Raises HostError.
        """
        import httpx

        for left in reversed(range(_TRIES)):
            try:
                answer = httpx.request(
                    method,
                    f"{self._address}{path}",
                    json=body,
                    params=params or None,
                    headers=self._headers,
                    timeout=_TIMEOUT,
                )
            except httpx.HTTPError as error:
                if not left or method == "POST":
                    raise HostError(f"{self._address}: {type(error).__name__}: {error}") from None
                self._sleep(_PAUSE)
                continue
            if answer.is_success:
                return answer.json() if answer.content else None
            wait = _wait(answer)
            if wait is None or not left:
                said = shorten(answer.text)
                text = f"{method} {self._address}{path}: {answer.status_code} {said}"
                raise HostError(text, answer.status_code)
            self._sleep(wait)
        raise AssertionError("the loop returns or raises")


def _wait(answer: httpx.Response) -> float | None:
    """Seconds until a request may be repeated; None where that does not help."""
    limited = answer.status_code == 429 or (
        answer.status_code == 403
        and ("retry-after" in answer.headers or "rate limit" in answer.text.lower())
    )
    if limited:
        asked = answer.headers.get("retry-after", "")
        wait = float(asked) if asked.isdecimal() else _LIMITED_PAUSE
        return wait if wait <= _LONGEST_PAUSE else None
    return _PAUSE if answer.status_code >= 500 else None
