"""Scores rows in their order by a panel.

Rows are returned in input order. The number of rows in progress is bounded. Finished rows wait for
slower rows before them; their number is bounded too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any

from ragmetrics.metrics import Metric
from ragmetrics.records import LogRow
from ragmetrics.scoring.panel import Panel
from ragmetrics.storage import ScoredRow

_WAITING = 4
"""Rows that may be started and not yet returned, as a multiple of the rows in progress."""
Rows = Iterable[LogRow] | AsyncIterable[LogRow]


async def drive(
    rows: Rows, metrics: Sequence[Metric], panel: Panel
) -> AsyncGenerator[ScoredRow, None]:
    """Score rows by metrics, in order. Raises JudgeRefused when no request can succeed."""
    queue = _OrderedTaskQueue(metrics, panel)
    try:
        async for row in _each(rows):
            await queue.put(row)
            for scored in queue.finished():
                yield scored
        for scored in await queue.wait_for_all():
            yield scored
    finally:
        await queue.stop()


class _OrderedTaskQueue:
    """The rows in progress, in input order."""

    def __init__(self, metrics: Sequence[Metric], panel: Panel) -> None:
        self._metrics, self._panel = metrics, panel
        self._running: deque[asyncio.Task[ScoredRow]] = deque()
        self._free = asyncio.Semaphore(panel.rows_in_play)
        self._most = _WAITING * panel.rows_in_play
        self._error: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def put(self, row: LogRow) -> None:
        """Start a row as soon as there is room for it. Raises the first error of another row."""
        await self._free.acquire()
        if len(self._running) >= self._most:
            first: list[asyncio.Future[Any]] = [self._running[0], self._error]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        self._raise()
        task = asyncio.create_task(self._score(row))
        task.add_done_callback(self._done)
        self._running.append(task)

    def finished(self) -> list[ScoredRow]:
        """The finished rows at the head of the queue."""
        done = []
        while self._running and self._running[0].done():
            done.append(self._running.popleft().result())
        return done

    async def wait_for_all(self) -> list[ScoredRow]:
        """Wait for the remaining rows. Raises the first error of any of them at once."""
        if self._running:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_EXCEPTION)
        self._raise()
        return self.finished()

    async def stop(self) -> None:
        """Cancel the rows in progress."""
        for task in self._running:
            task.cancel()
        await self._panel.stop()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _done(self, task: asyncio.Task[ScoredRow]) -> None:
        self._free.release()
        error = None if task.cancelled() else task.exception()
        if error and not self._error.done():
            self._error.set_result(error)

    def _raise(self) -> None:
        if self._error.done():
            raise self._error.result()

    async def _score(self, row: LogRow) -> ScoredRow:
        return ScoredRow(row, await self._panel.score(self._metrics, row))


async def _each(rows: Rows) -> AsyncIterator[LogRow]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
