"""An answer of a server: its status, headers and body, and what is said in them.

A server may send 200 kB that decompress to gigabytes, or an endless body. So the HTTP client does
not decompress; this module does, at most `_PIECE` bytes at a time and up to a size limit. Secrets
are taken out of the answer: some servers repeat the key that they were sent.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from ragmetrics.errors import HttpError
from ragmetrics.text import shorten

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


def _message(body: bytes) -> str:
    """The message of an error, in the forms that APIs have for it; empty if there is none."""
    known = _object(body)
    texts = (error_of(body).get("message"), known.get("message"), known.get("detail"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def _object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; empty if there is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def error_of(body: bytes) -> dict[str, Any]:
    """The error object of an answer, with its `message`; empty if there is none."""
    content = _object(body)
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


class Dropped(Exception):
    """The connection broke before the answer was complete."""


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
                text = re.sub(_escaped(secret), _SHOWN, text) if "\\" in text else text
                for form in dict.fromkeys([secret, quote(secret, safe=""), quote_plus(secret)]):
                    text = text.replace(form, _SHOWN)
        return _LOGIN.sub(f"://{_SHOWN}@", text)

    def body(self, body: bytes) -> bytes:
        """A body without secrets of eight characters or more."""
        if b"\\" in body:  # first: a secret of digits is also in `\u0030` and the digits after it
            for pattern in self._escaped:
                body = pattern.sub(_SHOWN.encode(), body)
        for secret in self._plain:
            body = body.replace(secret, _SHOWN.encode())
        return body


def _escaped(secret: str) -> str:
    r"""A pattern of a secret in JSON, also in JSON inside JSON: `\u0073k`, `\/`.

    Its only repetition is bounded, and each position of a text is tried once.
    """
    return "".join(
        rf"(?:\\{{1,4}}u(?i:{ord(sign):04x})|\\{{0,4}}{re.escape(sign)})" for sign in secret
    )
