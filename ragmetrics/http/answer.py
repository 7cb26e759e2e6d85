"""An answer of a server: its status, headers and body, and what is said in them.

Secrets are taken out of it: some servers repeat the key that they were sent.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from ragmetrics.errors import HttpError
from ragmetrics.http.connection import BadBody, BodyReader, Dropped, TooLarge
from ragmetrics.text import shorten

_LEAST = 4
"""Characters of the shortest secret that is looked for in errors; a shorter one is a word."""
_LEAST_IN_BODY = 8
"""The same for answers that are stored: a shorter secret occurs in texts by chance."""
_SHOWN = "***"
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?)(_|$)")
_LOGIN = re.compile(r"://[^\s/@]{1,300}@")
"""User and password in an address. The repetition is bounded: the text is anybody's."""


def environment_redactor(environment: Mapping[str, str]) -> Redactor:
    """Takes out the values of environment variables that are named as secrets are.

    For errors of code that is not ours: it has its keys from there, and may say them.
    """
    named = {
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name.upper()) and len(value) >= _LEAST_IN_BODY
    }
    return Redactor(named)


class Redactor:
    """Replaces secrets, also as JSON and URLs escape them. Other disguises are not seen."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted((one for one in set(secrets) if one.strip()), key=len, reverse=True)
        self._plain = [secret.encode() for secret in self._secrets if len(secret) >= _LEAST_IN_BODY]
        self._escaped = [
            re.compile(_escaped(secret).encode())
            for secret in self._secrets
            if len(secret) >= _LEAST_IN_BODY and secret.isascii()
        ]

    def text(self, text: str) -> str:
        """A text for people, without secrets of four characters or more, and without logins in
        addresses.
        """
        for secret in self._secrets:
            if len(secret) >= _LEAST:
                for form in dict.fromkeys([secret, quote(secret, safe=""), quote_plus(secret)]):
                    text = text.replace(form, _SHOWN)
                text = re.sub(_escaped(secret), _SHOWN, text) if "\\" in text else text
        return _LOGIN.sub(f"://{_SHOWN}@", text)

    def body(self, body: bytes) -> bytes:
        """A body without secrets of eight characters or more."""
        for secret in self._plain:
            body = body.replace(secret, _SHOWN.encode())
        if b"\\" in body:
            for pattern in self._escaped:
                body = pattern.sub(_SHOWN.encode(), body)
        return body


def _escaped(secret: str) -> str:
    r"""A pattern of a secret in JSON, also in JSON inside JSON: `\u0073k`, `\/`.

    Its only repetition is bounded, and each position of a text is tried once.
    """
    return "".join(
        rf"(?:\\{{1,4}}u(?i:{ord(sign):04x})|\\{{0,4}}{re.escape(sign)})" for sign in secret
    )


if TYPE_CHECKING:
    from aiohttp import ClientResponse

Headers = Mapping[str, str]
_RETRYABLE = frozenset([408, 425, 429, *range(500, 600)])
_ALL_AT_ONCE = 1 << 20  # bytes; a longer body is read in pieces


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a server."""

    status: int
    headers: Headers
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """What the body says of an error, in one line: its `message`, or its first characters."""
        return shorten(_message(self.body) or self.text) or "no reason given"

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 is replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The JSON of the body; None if it is empty. Raises HttpError for anything else."""
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise HttpError(f"the answer is not JSON: {shorten(self.text)}", self.status) from None

    def error(self, redactor: Redactor) -> HttpError:
        """The error of a status other than 2xx."""
        if 300 <= self.status < 400:
            where = redactor.text(self.headers.get("Location", "an unnamed address"))
            return HttpError(
                f"answered {self.status}: it redirects to {shorten(where)}", self.status
            )
        return HttpError(
            f"answered {self.status}: {redactor.text(self.said)}",
            self.status,
            transient=self.status in _RETRYABLE,
            wait=retry_after(self.headers, datetime.now(UTC)),
        )


async def read_answer(response: ClientResponse, bodies: BodyReader) -> Answer:
    """Read and decompress an answer; of an error only the beginning.

    Raises TooLarge if the answer is larger than allowed, Dropped if it is damaged.
    """
    encoding = response.headers.get("Content-Encoding", "")
    length, success = response.content_length, 200 <= response.status < 300
    if success and not encoding and length is not None:
        if length > bodies.most:
            raise TooLarge(bodies.most)
        if length < _ALL_AT_ONCE:
            return Answer(response.status, response.headers, await response.read())
    pieces = response.content.iter_any()
    read = bodies.read if success else bodies.beginning
    try:
        return Answer(response.status, response.headers, await read(pieces, encoding))
    except BadBody as error:
        raise Dropped(f"the answer cannot be read: {error}") from error


def _message(body: bytes) -> str:
    """The message of an error, in the forms that APIs have for it; empty if there is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    known = content if isinstance(content, dict) else {}
    texts = (error_of(body).get("message"), known.get("message"), known.get("detail"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def error_of(body: bytes) -> dict[str, Any]:
    """The error object of an answer, with its `message`; empty if there is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    error = content.get("error", content if content.get("object") == "error" else None)
    if isinstance(error, dict):
        return {"message": "", **error}
    return {"message": error} if isinstance(error, str) else {}


def retry_after(headers: Headers, now: datetime) -> float:
    """Seconds that the server asks to wait before the next attempt; 0 by default."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value, now)
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    return 0.0


def _until(date: str, now: datetime) -> float:
    try:
        then = parsedate_to_datetime(date)
        return (then.replace(tzinfo=then.tzinfo or now.tzinfo) - now).total_seconds()
    except (ValueError, OverflowError, TypeError, IndexError):  # not a date, or out of range
        return 0.0
