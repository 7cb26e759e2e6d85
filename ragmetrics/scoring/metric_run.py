"""A play: one metric at work on one row, from wave to wave of requests until its score."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

from ragmetrics.errors import RagmetricsError, Unanswered, UnreadableReply
from ragmetrics.metrics import Metric
from ragmetrics.model import Answer, Ask, LogRow, Request, Score, Status
from ragmetrics.text import shorten, weight

log = logging.getLogger(__name__)

_HEAVY = 7_000
"""Weight of a row from which its sentences are split in a thread: pysbd takes up to 7 us a
character, and whoever else is on the event loop should not wait for more than 50 ms.
"""


def is_heavy(row: LogRow) -> bool:
    """Whether a row's plays may hold up others."""
    return row.size > _HEAVY or weight(row.texts) > _HEAVY


class MetricRun:
    """One metric's steps on one row."""

    def __init__(self, metric: Metric, row: LogRow, *, heavy: bool = False) -> None:
        self.metric = metric
        self.requests: Sequence[Request] = ()
        self.score: Score | None = None
        self.asked = False
        """Whether it has asked for anything: else its score is the same by whatever judge."""
        self._row = row
        self._steps = metric.play(row)
        self._heavy = heavy

    def asks(self, repeat: int = 0) -> list[Request]:
        """This wave's requests in the words for the row's language."""
        worded = [self.metric.worded(one, self._row.language) for one in self.requests]
        if not repeat:  # the first needs no key of its own
            return worded
        return [
            replace(one, repeat=(*one.repeat, repeat)) if isinstance(one, Ask) else one
            for one in worded
        ]

    async def go_on(self, answers: Sequence[Answer] | None) -> None:
        """Send a wave's answers, or None to begin, and take the next wave or the score.

        An error that the metric raises by itself costs this row: its status is `metric_failed`.
        """
        if self._heavy:
            await asyncio.to_thread(self.step, answers)
        else:
            self.step(answers)

    def step(self, answers: Sequence[Answer] | None) -> None:
        """The same, for who has no event loop to keep going."""
        try:
            self.requests = next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as stop:
            self.score = self._checked(stop.value)
        except Unanswered as error:
            self.score = Score.unanswered(error)
        except UnreadableReply as error:
            self.score = Score(None, str(error), status=Status.UNREADABLE)
        except RagmetricsError:
            raise
        except Exception as error:
            log.debug("metric %s, row %s", self.metric.name, self._row.id, exc_info=error)
            self.score = _failed(f"{shorten(repr(error))}{_place(error)}")
        else:
            self.asked = self.asked or bool(self.requests)

    def _checked(self, value: object) -> Score:
        if not isinstance(value, Score):
            return _failed(f"a metric returns a Score, not {shorten(repr(value))}")
        return value


def _failed(reason: str) -> Score:
    return Score(None, reason, status=Status.METRIC_FAILED)


def _place(error: Exception) -> str:
    """Where the error was raised, for whoever wrote the metric."""
    frames = extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""


async def run_metric(
    metric: Metric, row: LogRow, answer: Callable[[Request], Awaitable[Answer]]
) -> Score:
    """Play one metric to its end, each request answered by itself."""
    one = MetricRun(metric, row)
    await one.go_on(None)
    while one.score is None:
        await one.go_on(await asyncio.gather(*(answer(request) for request in one.asks())))
    return one.score
