"""Asks the retriever of the settings some questions, outside a replay: nothing is stored.

Where it offers that, documents are looked up by their ids.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from ragmetrics.config import RetrieverSettings, Settings
from ragmetrics.errors import InputError, RagmetricsError, RetrieverRefused
from ragmetrics.http import Dropped, HttpClient, TooLarge, Unreachable, run_coroutine
from ragmetrics.records import LogRow
from ragmetrics.retriever.http_retriever import headers_of
from ragmetrics.retriever.python_retriever import Threads, load_function, said_by
from ragmetrics.retriever.questions import NoAnswer, Question, read_answer
from ragmetrics.retriever.retriever_client import Rate, Retriever, RetrieverClient, together
from ragmetrics.text import shorten

Item = TypeVar("Item")
Found = TypeVar("Found")
_NO_TIME = "no time left"
_ABSENT = (404, 410)


@dataclass(frozen=True, slots=True)
class Ask:
    """A question, and parameters that replace those of the settings."""

    question: Question
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Answered:
    """The answers to some asks, in their order."""

    rows: list[LogRow | str]
    """The row of an answer, or the reason why there is none."""
    requests: int
    """Asks that were begun; some may have had no time for an answer."""


def ask_retriever(
    settings: Settings, build: str, asks: Sequence[Ask], *, seconds: float | None = None
) -> Answered:
    """Ask the retriever of the settings against an index build, within its limits.

    After `seconds`, asks without an answer get a reason. Raises RetrieverRefused where no question
    can be answered, and InputError where there is no retriever, or its settings are wrong.
    """
    retriever = _settings_of(settings)
    client = RetrieverClient(open_retriever(retriever, build), retriever)
    begun = 0

    async def answer(ask: Ask) -> LogRow | str:
        nonlocal begun
        begun += 1
        try:
            returned = await client.ask(ask.question, ask.parameters)
            return read_answer(retriever, ask.question, build, returned, datetime.now(UTC))
        except NoAnswer as error:
            return shorten(error)
        except RagmetricsError:
            raise
        except Exception as error:  # an answer of a function may be any object
            return f"the answer cannot be read: {type(error).__name__}: {said_by(error)}"

    work = _all(answer, asks, retriever.concurrency, seconds, client.close)
    rows: list[LogRow | str | None] = run_coroutine(work)
    return Answered([_NO_TIME if row is None else row for row in rows], begun)


def look_up(
    settings: Settings, build: str, ids: Sequence[str], *, seconds: float | None = None
) -> list[bool | str]:
    """Whether documents are in an index build, by `retriever: lookup:`; a text says why that is not
    known. Raises as `ask_retriever`.
    """
    retriever = _settings_of(settings)
    lookup = open_look_up(retriever, build)
    rate = Rate(retriever.requests_per_second)

    async def find(name: str) -> bool | str:
        await rate.turn()
        try:
            async with asyncio.timeout(retriever.timeout_seconds):
                return await lookup.find(name)
        except TimeoutError:
            return f"no answer within {retriever.timeout_seconds:g} s"

    work = _all(find, ids, retriever.concurrency, seconds, lookup.close)
    results: list[bool | str | None] = run_coroutine(work)
    return [_NO_TIME if one is None else one for one in results]


def open_retriever(settings: RetrieverSettings, build: str) -> Retriever:
    """The retriever of the settings."""
    from ragmetrics.retriever.http_retriever import HttpRetriever
    from ragmetrics.retriever.python_retriever import PythonRetriever

    if settings.url:
        return HttpRetriever(settings, build, os.environ)
    return PythonRetriever(settings, build)


def _settings_of(settings: Settings) -> RetrieverSettings:
    if settings.retriever is None:
        raise InputError("there is no retriever to ask: set `retriever:` in the settings")
    return settings.retriever


async def _all(
    work: Callable[[Item], Awaitable[Found]],
    items: Sequence[Item],
    concurrency: int,
    seconds: float | None,
    close: Callable[[], Awaitable[None]],
) -> list[Found | None]:
    """The results of all items, the first alone; None for those that had no time."""
    results: list[Found | None] = [None] * len(items)
    places = iter(range(len(items)))

    async def one_by_one(most: int | None = None) -> None:
        for done, place in enumerate(places, 1):
            results[place] = await work(items[place])
            if done == most:
                return

    try:
        async with asyncio.timeout(seconds):
            # The first alone: one request is enough to find a wrong configuration.
            await one_by_one(1)
            await together([one_by_one() for _ in range(min(concurrency, len(items)))])
    except TimeoutError:
        pass  # the items without a result say so
    finally:
        await close()
    return results


class LookUp(Protocol):
    """Finds documents by their ids."""

    async def find(self, name: str) -> bool | str:
        """Whether the index has the document; a text says why that is not known."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


def open_look_up(settings: RetrieverSettings, build: str) -> LookUp:
    """The look-up of the settings. Raises InputError where there is none."""
    if settings.lookup is None:
        raise InputError("the retriever has no look-up: set `retriever: lookup:` in the settings")
    if settings.url:
        return HttpLookUp(settings, build, os.environ)
    return PythonLookUp(settings.lookup, build, settings.concurrency)


class HttpLookUp:
    """A URL with the id in it: 2xx means that the index has the document, 404 that it has not."""

    def __init__(
        self, settings: RetrieverSettings, build: str, environment: Mapping[str, str]
    ) -> None:
        headers, secrets = headers_of(settings, environment)
        template = (settings.lookup or "").replace("{build}", quote(build, safe=""))
        parts = urlsplit(template)
        origin = f"{parts.scheme}://{parts.netloc}"
        self._path = template.removeprefix(origin)
        self._client = HttpClient(origin, headers, secrets=secrets)

    async def find(self, name: str) -> bool | str:
        """Whether the index has the document."""
        path = self._path.replace("{id}", quote(name, safe=""))
        try:
            answer = await self._client.send("GET", path, encoded=True)
        except TooLarge:
            return True  # only of an answer with status 2xx is the whole body read
        except (Unreachable, Dropped) as error:
            return f"the look-up failed: {shorten(self._client.shown(str(error)))}"
        if answer.is_success:
            return True
        if answer.status in _ABSENT:
            return False
        return f"the look-up answered {answer.status}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class PythonLookUp:
    """A function that is called as function(id, build)."""

    def __init__(self, entrypoint: str, build: str, most_hung: int) -> None:
        self._function, self._build = load_function(entrypoint, (), "id"), build
        self._entrypoint = entrypoint
        self._threads = Threads(entrypoint, most_hung)

    async def find(self, name: str) -> bool | str:
        """Whether the function finds the document."""
        try:
            result, error = await self._threads.run(partial(self._function, name, self._build))
            if error is not None:
                return self._raised(error)
            return bool(await result if inspect.isawaitable(result) else result)
        except RetrieverRefused as error:
            return shorten(error)
        except Exception as error:
            return self._raised(error)

    def _raised(self, error: BaseException) -> str:
        return f"{self._entrypoint} raised {type(error).__name__}: {said_by(error)}"

    async def close(self) -> None:
        """Do nothing: the function manages its own resources."""
