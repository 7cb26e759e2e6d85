"""The driver: plays metrics over rows against a panel of judges.

Rows come out in the order they went in. A bounded number of them is in play; those that are done
wait for slower ones before them, a bounded number too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any

from ragmetrics.metrics import Metric
from ragmetrics.model import LogRow
from ragmetrics.scoring.panel import Panel
from ragmetrics.storage import ScoredRow

_WAITING = 4
"""Times as many rows may wait to come out as may be in play."""

Rows = Iterable[LogRow] | AsyncIterable[LogRow]


async def drive(
    rows: Rows, metrics: Sequence[Metric], panel: Panel
) -> AsyncGenerator[ScoredRow, None]:
    """Score rows by metrics, in order. Raises JudgeRefused where no request can succeed."""
    race = _OrderedTaskQueue(metrics, panel)
    try:
        async for row in _each(rows):
            await race.enter(row)
            for scored in race.finished():
                yield scored
        for scored in await race.rest():
            yield scored
    finally:
        await race.stop()


class _OrderedTaskQueue:
    """The rows on their way, in order."""

    def __init__(self, metrics: Sequence[Metric], panel: Panel) -> None:
        self._metrics, self._panel = metrics, panel
        self._running: deque[asyncio.Task[ScoredRow]] = deque()
        self._free = asyncio.Semaphore(panel.rows_in_play)
        self._most = _WAITING * panel.rows_in_play
        self._broken: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def enter(self, row: LogRow) -> None:
        """Begin a row as soon as there is room for it; raise what broke another one."""
        await self._free.acquire()
        if len(self._running) >= self._most:
            first: list[asyncio.Future[Any]] = [self._running[0], self._broken]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        self._raise()
        task = asyncio.create_task(self._score(row))
        task.add_done_callback(self._done)
        self._running.append(task)

    def finished(self) -> list[ScoredRow]:
        """The rows that are done and have none before them."""
        done = []
        while self._running and self._running[0].done():
            done.append(self._running.popleft().result())
        return done

    async def rest(self) -> list[ScoredRow]:
        """The rows that are left; raises at once what breaks any of them."""
        if self._running:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_EXCEPTION)
        self._raise()
        return self.finished()

    async def stop(self) -> None:
        """Give up what is on its way."""
        for task in self._running:
            task.cancel()
        await self._panel.stop()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _done(self, task: asyncio.Task[ScoredRow]) -> None:
        self._free.release()
        error = None if task.cancelled() else task.exception()
        if error and not self._broken.done():
            self._broken.set_result(error)

    def _raise(self) -> None:
        if self._broken.done():
            raise self._broken.result()

    async def _score(self, row: LogRow) -> ScoredRow:
        return ScoredRow(row, await self._panel.score(self._metrics, row))


async def _each(rows: Rows) -> AsyncIterator[LogRow]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
