"""Sends requests to one target: with a timeout, without redirects, and without secrets in errors.

Which status means what is the same for all targets, except where a target says otherwise:

    408, 425, 429, 5xx, no connection   TargetError, transient
    401, 403, 404, 405, 407, 410, 3xx   TargetError: the key or the address is wrong
    other 4xx                           BatchRefused
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ragmetrics.delivery.write_back.target import BatchRefused, TargetError
from ragmetrics.errors import HttpError
from ragmetrics.http import Answer, HttpClient
from ragmetrics.text import clean

_MOST_BYTES = 4 << 20
"""More than the answer to a thousand scores."""
_LONGEST = 300
_CONFIGURED = (401, 403, 404, 405, 407, 410)


class TargetClient:
    """Sends to one address, from any thread but that of the event loop."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str],
        secrets: Collection[str],
        timeout: float,
        retryable: Collection[int] | None = None,
    ) -> None:
        self.address = address
        self._retryable = retryable
        self._client = HttpClient(
            address, headers, secrets=secrets, most_bytes=_MOST_BYTES, timeout=timeout
        )

    def post(self, path: str, body: bytes, passing: Collection[int] = ()) -> Answer:
        """Post a body and return the answer, as `request` does."""
        return self.request("POST", path, body, passing)

    def request(
        self, method: str, path: str, body: bytes | None = None, passing: Collection[int] = ()
    ) -> Answer:
        """The answer to a request, if its status is 2xx or one of `passing`.

        Raises TargetError or BatchRefused for every other answer, and for none.
        """
        try:
            return self._client.request(method, path, body=body, passing=passing)
        except HttpError as error:
            status, transient = error.status, error.transient
            if status is None:
                raise self._unconfirmed(str(error), transient=transient) from error
            if self._retryable is not None:
                transient = status in self._retryable
            reason = f"{path} {error}"
            if transient:
                raise self._unconfirmed(reason, transient=True, wait=error.wait) from error
            if not 400 <= status < 500 or status in _CONFIGURED:
                raise self._unconfirmed(reason, transient=False) from error
            raise BatchRefused(self.shown(reason)) from error

    def unlike(self, answer: Answer, tool: str) -> TargetError:
        """The error of an answer that is not in the form of the tool: nothing is confirmed.

        A login page and an exhausted quota come with status 200 too. The night waits, and is not
        tried again in this run: neither passes within minutes.
        """
        sentence = self.shown(answer.said)
        return self._unconfirmed(
            f"answered {answer.status}, and not as {tool} does: {sentence}", transient=False
        )

    def shown(self, text: str) -> str:
        """A text in one line, without secrets."""
        return clean(self._client.shown(text), _LONGEST)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _unconfirmed(
        self, reason: str, *, transient: bool, wait: float | None = None
    ) -> TargetError:
        return TargetError(f"{self.address}: {self.shown(reason)}", transient=transient, wait=wait)


def secret_of(variable: str, environment: Mapping[str, str]) -> str:
    """The value of a variable. Raises TargetError, without the value, if it is missing or cannot be
    a key.
    """
    value = environment.get(variable, "").strip()
    if not value:
        raise TargetError(f"the environment variable {variable} is not set", transient=False)
    if not (value.isascii() and value.isprintable()):
        raise TargetError(f"{variable} holds characters that no key has", transient=False)
    return value
