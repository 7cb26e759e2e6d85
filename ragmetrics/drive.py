"""The driver: plays metrics over rows against a panel of judges.

Rows come out in the order they went in, with a bounded number of them in play.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence

from ragmetrics.panel import Panel
from ragmetrics.registry import Metric
from ragmetrics.rows import LogRow
from ragmetrics.store.parts import ScoredRow


async def drive(
    rows: Iterable[LogRow], metrics: Sequence[Metric], panel: Panel
) -> AsyncIterator[ScoredRow]:
    """Score rows by metrics, in order. Raises JudgeRefused where no request can succeed."""
    playing: deque[asyncio.Task[ScoredRow]] = deque()
    try:
        for row in rows:
            playing.append(asyncio.create_task(_score(row, metrics, panel)))
            if len(playing) >= panel.rows_in_play:
                yield await playing.popleft()
        while playing:
            yield await playing.popleft()
    finally:
        for task in playing:
            task.cancel()
        await panel.stop()
        await asyncio.gather(*playing, return_exceptions=True)


async def _score(row: LogRow, metrics: Sequence[Metric], panel: Panel) -> ScoredRow:
    scores = await asyncio.gather(*(panel.score(one, row) for one in metrics))
    return ScoredRow(row, {one.name: score for one, score in zip(metrics, scores, strict=True)})
