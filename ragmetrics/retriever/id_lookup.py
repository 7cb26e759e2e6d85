"""Looks documents up by their ids in an index build, where the retriever offers that."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from functools import partial
from typing import Protocol
from urllib.parse import quote, urlsplit

from ragmetrics.config import RetrieverSettings
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.http import Dropped, HttpClient, TooLarge, Unreachable
from ragmetrics.retriever.http_retriever import headers_of
from ragmetrics.retriever.python_retriever import Threads, load_function, said_by
from ragmetrics.text import shorten

_ABSENT = (404, 410)


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
