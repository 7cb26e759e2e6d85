"""The two kinds of retriever: behind HTTP, and a Python function.

HTTP: one request per question, made from the template in the settings. The template is JSON whose
texts may contain `{user_input}`, `{build}`, `{id}` and `{language}`. Each is filled in once, in the
JSON values and never in JSON source text, so braces and quotes in a question stay as they are.

Python: `function(user_input, build)`, in threads or on the event loop.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic import JsonValue

from ragmetrics.comparison.replay.questions import UNREADABLE, GoldenQuestion, NoAnswer
from ragmetrics.config import PLACEHOLDER, Param, RetrieverSettings, fill_headers
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.judges import (
    CONNECT_SECONDS,
    ENCODINGS,
    Answer,
    BodyReader,
    Dropped,
    RetryableError,
    TooLarge,
    Unreachable,
    certificates,
    error_of,
    proxy_of,
    read_answer,
    retry_after,
    translate_connection_errors,
)
from ragmetrics.text import shorten
from ragmetrics.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession

_IDLE_SECONDS = 4.0  # servers close idle connections after 5 or more
_LEAST_SECRET = 8  # characters: shorter secrets appear in texts by chance
_MOST_FAILED_CONNECTS = 2  # where the server was never reached
_HOST_PART = re.compile(r"[A-Za-z0-9-]+")
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": ENCODINGS,
    "User-Agent": f"ragmetrics/{__version__}",
}
_PASSING = (408, 425, 429)
_ELSEWHERE = (404, 405, 410)
_Outcome = tuple[Any, BaseException | None]


class HttpRetriever:
    """A retriever behind a URL. It belongs to the event loop of its first request."""

    def __init__(
        self, settings: RetrieverSettings, build: str, environment: Mapping[str, str]
    ) -> None:
        self._settings, self._build = settings, build
        self._url = _url(settings.url or "", build)
        self._secrets, self._headers = _headers(settings, environment)
        self._session: ClientSession | None = None
        self._bodies = BodyReader(settings.max_answer_bytes)
        self._opening = asyncio.Lock()
        self._reached = self._proven = False
        """Whether the server was reached, and whether it has answered a question."""
        self._failed_connects = 0

    async def ask(self, question: GoldenQuestion) -> Any:
        """The JSON of the answer. Raises RetryableError, NoAnswer or RetrieverRefused."""
        values = {
            "user_input": question.user_input,
            "build": self._build,
            "id": question.id,
            "language": question.language,
        }
        try:
            answer = await self._send(values)
        except Unreachable as error:
            self._failed_connects += 1
            message = f"no connection to {self._url}: {self._shown(str(error))}"
            may_recover = not error.permanent and self._failed_connects < _MOST_FAILED_CONNECTS
            if self._reached or may_recover:
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
        if self._session:
            await self._session.close()
            self._session = None

    async def _send(self, values: Mapping[str, str]) -> Answer:
        session = self._session or await self._open()
        with translate_connection_errors():
            # A redirect might send questions and keys to another party.
            async with session.request(
                self._settings.method,
                self._url,
                params=fill_params(self._settings.params, values),
                data=fill_body(self._settings.sent, values),
                allow_redirects=False,
            ) as response:
                self._reached = True
                return await read_answer(response, self._bodies)

    def _problem(self, answer: Answer) -> Exception:
        """The error of a status other than 2xx."""
        status, said = answer.status, self._said(answer)
        if 300 <= status < 400:
            where = self._shown(answer.headers.get("Location", "an unnamed address"))
            return RetrieverRefused(f"{self._url} redirects to {where}: is `url` right?")
        if status in (401, 407) or (status == 403 and not self._proven):
            return RetrieverRefused(
                f"the retriever refused the access with {status}: are `headers_env` and its "
                f"variables right? {said}"
            )
        if status in _ELSEWHERE and not self._proven:
            return RetrieverRefused(
                f"{self._url} answered {status}: are `url` and `method` right, and is there a "
                f"build {self._build}? {said}"
            )
        message = f"the retriever answered {status}: {said}"
        if status not in _PASSING and status < 500:
            return NoAnswer("rejected", message)
        kind = {429: "rate_limited", 408: "timeout"}.get(status, "server_error")
        return RetryableError(kind, message, wait=retry_after(answer.headers, datetime.now(UTC)))

    def _said(self, answer: Answer) -> str:
        """The server's error text, without the key that it may repeat."""
        text = error_of(answer.body).get("message") or answer.body.decode("utf-8", "replace")
        return self._shown(str(text)) or "no error text"

    def _shown(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return shorten(text)

    async def _open(self) -> ClientSession:
        async with self._opening:
            if self._session is None:
                # Importing aiohttp and reading certificates would block the loop for too long.
                self._session = self._make(await asyncio.to_thread(certificates, self._url))
            return self._session

    def _make(self, context: Any) -> ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=context, keepalive_timeout=_IDLE_SECONDS, ttl_dns_cache=300
            ),
            headers=self._headers,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_of(self._url),
        )


def _url(template: str, build: str) -> str:
    """The URL of a build. The build may be one label of the host's name, not several."""
    if "{build}" in urlsplit(template).netloc and not _HOST_PART.fullmatch(build):
        raise InputError(
            f"build {build}: cannot be part of the host in `retriever: url:`, where only letters, "
            "digits and dashes may stand"
        )
    return template.replace("{build}", build)


def _headers(
    settings: RetrieverSettings, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The secret values, longest first, and all headers."""
    try:
        named, secrets = fill_headers(settings.headers_env, environment)
    except ValueError as error:
        raise RetrieverRefused(f"the retriever's {error}") from None
    headers = {**settings.headers, **named}
    present = {header.lower() for header in headers}
    headers |= {name: value for name, value in _HEADERS.items() if name.lower() not in present}
    long = [secret for secret in secrets if len(secret) >= _LEAST_SECRET]
    return sorted(long, key=len, reverse=True), headers


def fill(template: JsonValue, values: Mapping[str, str]) -> JsonValue:
    """The template with its texts filled in; keys, numbers and other braces stay as they are."""
    if isinstance(template, str):
        return PLACEHOLDER.sub(lambda hole: values[hole[1]], template)
    if isinstance(template, list):
        return [fill(item, values) for item in template]
    if isinstance(template, dict):
        return {key: fill(item, values) for key, item in template.items()}
    return template


def fill_body(template: JsonValue, values: Mapping[str, str]) -> bytes | None:
    """The body of a request, in ASCII; None where the template is."""
    return None if template is None else json.dumps(fill(template, values)).encode("ascii")


def fill_params(
    params: Mapping[str, Param | list[Param]], values: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The parameters of a URL, not yet encoded; a list gives one for each item."""
    return [
        (name, _text(item, values))
        for name, value in params.items()
        for item in (value if isinstance(value, list) else [value])
    ]


def _text(item: Param, values: Mapping[str, str]) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    return cast("str", fill(item, values)) if isinstance(item, str) else str(item)


class PythonRetriever:
    """A retriever that calls a Python function."""

    def __init__(self, settings: RetrieverSettings, build: str) -> None:
        self._entrypoint = settings.entrypoint or ""
        self._most_hung = settings.concurrency
        self._build = build
        self._function = _load(self._entrypoint)
        self._in_loop = _is_async(self._function)
        self._hung = 0
        """Number of threads that still run after a time-out; they cannot be stopped."""

    async def ask(self, question: GoldenQuestion) -> Any:
        """The result of the function. Raises RetryableError, NoAnswer or RetrieverRefused.

        OSErrors (also ConnectionError and TimeoutError) and errors with a true `transient` are
        temporary. PermissionError means that no question will be answered.
        """
        arguments = question.user_input, self._build
        found = await self._in_thread(*arguments) if not self._in_loop else None
        try:
            if self._in_loop:
                return await self._function(*arguments)
            return await found if inspect.isawaitable(found) else found
        except asyncio.CancelledError:
            raise
        except Exception as error:
            raise self._outcome(error) from error

    async def close(self) -> None:
        """Do nothing: the function manages its own resources."""

    def _outcome(self, error: BaseException) -> Exception:
        kind = type(error).__name__
        text = f"{self._entrypoint} raised {kind}: {shorten(error)}".removesuffix(": ")
        if isinstance(error, PermissionError):
            return RetrieverRefused(text)
        if isinstance(error, OSError):
            return RetryableError("timeout" if isinstance(error, TimeoutError) else "dropped", text)
        if getattr(error, "transient", False):
            return RetryableError(kind, text)
        return NoAnswer(kind, text)

    async def _in_thread(self, *arguments: str) -> Any:
        """Call the function in a separate thread, which ends with the process if it hangs."""
        if self._hung >= self._most_hung:
            raise RetrieverRefused(
                f"{self._entrypoint} hangs: {self._hung} calls are over `timeout_seconds` and "
                "cannot be stopped; give it a time-out of its own"
            )
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[_Outcome] = loop.create_future()

        def work() -> None:
            try:
                outcome: _Outcome = self._function(*arguments), None
            except BaseException as error:
                outcome = None, error
            loop.call_soon_threadsafe(deliver, outcome)

        def deliver(outcome: _Outcome) -> None:
            if waiter.done():
                self._hung -= 1
            else:
                waiter.set_result(outcome)

        threading.Thread(target=work, name="ragmetrics-replay", daemon=True).start()
        try:
            found, error = await waiter
        except asyncio.CancelledError:
            self._hung += waiter.cancelled()  # else the thread ended at the same moment
            raise
        if error is not None:
            raise self._outcome(error) from error
        return found


def _load(entrypoint: str) -> Callable[[str, str], Any]:
    """The function of `package.module:function`, also from the working directory.

    Raises InputError that says what is wrong with it.
    """
    module_name, _, name = entrypoint.partition(":")
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last: it hides nothing that is installed
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InputError(
                f"retriever: entrypoint: there is no module {error.name}, neither installed nor "
                f"in {here}"
            ) from None
        raise InputError(f"retriever: entrypoint: {module_name}: {shorten(error)}") from error
    except AttributeError as error:
        raise InputError(f"retriever: entrypoint: {module_name}: {shorten(error)}") from error
    except Exception as error:
        kind = type(error).__name__
        raise InputError(
            f"retriever: entrypoint: importing {module_name} raised {kind}: {shorten(error)}"
        ) from error
    _check(entrypoint, found)
    return found  # type: ignore[no-any-return]


def _check(entrypoint: str, found: Any) -> None:
    if not callable(found):
        raise InputError(f"retriever: entrypoint: {entrypoint} is not a function")
    try:
        inspect.signature(found).bind("user_input", "build")
    except TypeError as error:
        raise InputError(
            f"retriever: entrypoint: {entrypoint} is called as function(user_input, build), which "
            f"it does not take: {error}"
        ) from None
    except ValueError:
        return  # some functions written in C have no signature that can be read


def _is_async(function: Callable[..., Any]) -> bool:
    call: Callable[..., Awaitable[Any]] = getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
