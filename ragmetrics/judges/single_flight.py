"""Once: each distinct thing is asked for once, whoever asks, meanwhile or later."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from ragmetrics.errors import Unanswered
from ragmetrics.model import Answer

REMEMBERED = 4_096
"""Answers that are kept at hand; those on their way are bounded by who asks."""

Find = Callable[[], Awaitable[Answer]]


class SingleFlight:
    """Answers on their way, and the latest that came; shared by all who ask one judge.

    What failed is forgotten, so that a later try may do better.
    """

    def __init__(self) -> None:
        self._coming: dict[str, asyncio.Future[Answer]] = {}
        self._there: OrderedDict[str, asyncio.Future[Answer]] = OrderedDict()
        self.has_answered = False
        """Whether any answer came."""

    def find(self, key: str) -> asyncio.Future[Answer] | None:
        """The answer that somebody asked for already, on its way or there."""
        if key in self._there:
            self._there.move_to_end(key)
            return self._there[key]
        return self._coming.get(key)

    def put(self, key: str, future: asyncio.Future[Answer]) -> None:
        """Let whoever asks for a key wait for this."""
        self._coming[key] = future
        future.add_done_callback(lambda done: self._settle(key, done))

    def _settle(self, key: str, done: asyncio.Future[Answer]) -> None:
        if self._coming.get(key) is done:
            del self._coming[key]
        # Reading the exception: a refusal ends the run through the first row that meets it.
        if done.cancelled() or done.exception() or isinstance(done.result(), Unanswered):
            return
        self._there[key] = done
        self.has_answered = True
        if len(self._there) > REMEMBERED:
            self._there.popitem(last=False)


class SingleFlightScope:
    """One of those who share a Once; when it stops, it gives up only what it began itself."""

    def __init__(self, once: SingleFlight | None = None) -> None:
        self._once = once or SingleFlight()
        self._mine: set[asyncio.Future[Answer]] = set()

    def ask(self, key: str, find: Find) -> Awaitable[Answer]:
        """What is returned waits for the answer, which is on its way at once; `find` is called
        where nobody asked for it before.
        """

        def begin() -> asyncio.Future[Answer]:
            future = self._once.find(key)
            if future is None:
                future = asyncio.ensure_future(find())
                self.put(key, future)
            return future

        return _Waiting(begin(), begin)

    def is_asked(self, key: str) -> bool:
        """Whether somebody asked for it already."""
        return self._once.find(key) is not None

    @property
    def has_answered(self) -> bool:
        """Whether any answer came, to this asker or to another."""
        return self._once.has_answered

    def put(self, key: str, future: asyncio.Future[Answer]) -> None:
        """Answer a key by this future, which goes when this asker stops."""
        self._once.put(key, future)
        self._mine.add(future)
        future.add_done_callback(self._mine.discard)

    async def stop(self) -> None:
        """Give up what was begun here and has no answer; others who wait for it ask anew."""
        waiting = [future for future in self._mine if not future.done()]
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class _Waiting:
    """Waits for an answer; where the one who asked is stopped, asks in its place."""

    def __init__(
        self, future: asyncio.Future[Answer], again: Callable[[], asyncio.Future[Answer]]
    ) -> None:
        self._future, self._again = future, again

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def _wait(self) -> Answer:
        while True:
            try:
                return await asyncio.shield(self._future)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not self._future.cancelled() or (task and task.cancelling()):
                    raise
                self._future = self._again()
