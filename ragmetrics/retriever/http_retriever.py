"""A retriever behind HTTP: one request per question, made from the template in the settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from pydantic import JsonValue

from ragmetrics.config import RetrieverSettings, fill_headers
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.http import (
    Answer,
    Dropped,
    HttpClient,
    RetryableError,
    TooLarge,
    Unreachable,
    retry_after,
)
from ragmetrics.retriever.questions import UNREADABLE, NoAnswer, Question
from ragmetrics.retriever.templates import fill_body, fill_params, values_of
from ragmetrics.text import shorten

_MOST_FAILED_CONNECTS = 2  # where the server was never reached
_HOST_PART = re.compile(r"[A-Za-z0-9-]{1,63}")
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_PASSING = (408, 425, 429)
_ELSEWHERE = (404, 405, 410)


class HttpRetriever:
    """A retriever behind a URL. It belongs to the event loop of its first request."""

    def __init__(
        self, settings: RetrieverSettings, build: str, environment: Mapping[str, str]
    ) -> None:
        self._settings, self._build = settings, build
        self._url = _url(settings.url or "", build)
        headers, secrets = headers_of(settings, environment)
        present = {name.lower() for name in headers}
        headers |= {name: value for name, value in _HEADERS.items() if name.lower() not in present}
        self._client = HttpClient(
            self._url, headers, secrets=secrets, most_bytes=settings.max_answer_bytes
        )
        self._proven = False
        """Whether the server has answered a question."""
        self._failed_connects = 0

    async def ask(
        self, question: Question, parameters: Mapping[str, JsonValue] | None = None
    ) -> Any:
        """The JSON of the answer; `parameters` replace those of the settings.

        Raises RetryableError, NoAnswer or RetrieverRefused.
        """
        named = {**self._settings.parameters, **(parameters or {})}
        values = values_of(question, self._build, named)
        try:
            answer = await self._send(values)
        except Unreachable as error:
            self._failed_connects += 1
            message = f"no connection to {self._url}: {self._shown(str(error))}"
            may_recover = not error.permanent and self._failed_connects < _MOST_FAILED_CONNECTS
            if self._client.reached or may_recover:
                raise RetryableError("dropped", message) from error
            raise RetrieverRefused(message) from error
        except Dropped as error:
            message = f"the connection to the retriever broke: {self._shown(str(error))}"
            raise RetryableError("dropped", message) from error
        except TooLarge as error:
            raise NoAnswer(
                "too_large",
                "an answer is larger than `retriever: max_answer_bytes:`, "
                f"{error.most:,}: ask for less, or raise it",
            ) from None
        if not 200 <= answer.status < 300:
            raise self._problem(answer)
        self._proven = True
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise NoAnswer(
                UNREADABLE, f"the retriever's answer is not JSON: {self._said(answer)}"
            ) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send(self, values: Mapping[str, JsonValue]) -> Answer:
        return await self._client.send(
            self._settings.method,
            params=fill_params(self._settings.params, values),
            body=fill_body(self._settings.sent, values),
        )

    def _problem(self, answer: Answer) -> Exception:
        """The error of a status other than 2xx."""
        status, text = answer.status, self._said(answer)
        if 300 <= status < 400:
            where = self._shown(answer.headers.get("Location", "an unnamed address"))
            return RetrieverRefused(f"{self._url} redirects to {where}: is `url` right?")
        if status in (401, 407) or (status == 403 and not self._proven):
            return RetrieverRefused(
                f"the retriever refused the access with {status}: are `headers_env` and its "
                f"variables right? {text}"
            )
        if status in _ELSEWHERE and not self._proven:
            return RetrieverRefused(
                f"{self._url} answered {status}: are `url` and `method` right, and is there a "
                f"build {self._build}? {text}"
            )
        message = f"the retriever answered {status}: {text}"
        if status not in _PASSING and status < 500:
            return NoAnswer("rejected", message)
        kind = {429: "rate_limited", 408: "timeout"}.get(status, "server_error")
        return RetryableError(kind, message, wait=retry_after(answer.headers, datetime.now(UTC)))

    def _said(self, answer: Answer) -> str:
        """The server's error text, without the key that it may repeat."""
        return self._shown(answer.said)

    def _shown(self, text: str) -> str:
        return shorten(self._client.shown(text))


def _url(template: str, build: str) -> str:
    """The URL of a build. The build may be one label of the host's name, not several."""
    if "{build}" in urlsplit(template).netloc and not _HOST_PART.fullmatch(build):
        raise InputError(
            f"build {build}: cannot be part of the host in `retriever: url:`, where only letters, "
            "digits and dashes may stand"
        )
    return template.replace("{build}", build)


def headers_of(
    settings: RetrieverSettings, environment: Mapping[str, str]
) -> tuple[dict[str, str], set[str]]:
    """The headers of the settings, and the secret values in them. Raises RetrieverRefused."""
    try:
        named, secrets = fill_headers(settings.headers_env, environment)
    except ValueError as error:
        raise RetrieverRefused(f"the retriever's {error}") from None
    return {**settings.headers, **named}, secrets
