"""Looks documents up by their ids in an index build, where the retriever offers that."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from ragmetrics.config import RetrieverSettings, fill_headers
from ragmetrics.errors import InputError, RetrieverRefused
from ragmetrics.judges import CONNECT_SECONDS, certificates, proxy_of
from ragmetrics.retriever.python_retriever import Threads, load_function
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from aiohttp import ClientSession

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
        try:
            named, _ = fill_headers(settings.headers_env, environment)
        except ValueError as error:
            raise RetrieverRefused(f"the retriever's {error}") from None
        self._url = (settings.lookup or "").replace("{build}", quote(build, safe=""))
        self._headers = {**settings.headers, **named}
        self._session: ClientSession | None = None

    async def find(self, name: str) -> bool | str:
        """Whether the index has the document."""
        import aiohttp
        from yarl import URL

        url = URL(self._url.replace("{id}", quote(name, safe="")), encoded=True)
        try:
            session = self._session or await self._open()
            async with session.get(url, allow_redirects=False) as response:
                if 200 <= response.status < 300:
                    return True
                if response.status in _ABSENT:
                    return False
                return f"the look-up answered {response.status}"
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return f"the look-up failed: {shorten(error)}"

    async def close(self) -> None:
        """Close the connections."""
        if self._session:
            await self._session.close()
            self._session = None

    async def _open(self) -> ClientSession:
        import aiohttp

        context = await asyncio.to_thread(certificates, self._url)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=proxy_of(self._url),
            )
        return self._session


class PythonLookUp:
    """A function that is called as function(id, build)."""

    def __init__(self, entrypoint: str, build: str, most_hung: int) -> None:
        self._function, self._build = load_function(entrypoint, (), "id"), build
        self._entrypoint = entrypoint
        self._threads = Threads(entrypoint, most_hung)

    async def find(self, name: str) -> bool | str:
        """Whether the function finds the document."""
        try:
            found, error = await self._threads.run(partial(self._function, name, self._build))
            if error is not None:
                return self._raised(error)
            return bool(await found if inspect.isawaitable(found) else found)
        except RetrieverRefused as error:
            return shorten(error)
        except Exception as error:
            return self._raised(error)

    def _raised(self, error: BaseException) -> str:
        return f"{self._entrypoint} raised {type(error).__name__}: {shorten(error)}"

    async def close(self) -> None:
        """Do nothing: the function manages its own resources."""
