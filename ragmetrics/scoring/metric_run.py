"""The run of a metric on one row: it makes requests, is sent the answers, and gives a score."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from ragmetrics.errors import RagmetricsError, Unanswered, UnreadableReply
from ragmetrics.metrics import Metric
from ragmetrics.records import Answer, LogRow, Request, Score, Status
from ragmetrics.scoring.checked_score import checked_score, metric_failed
from ragmetrics.scoring.foreign_metric import ForeignRun, error_location
from ragmetrics.text import shorten, weight

log = logging.getLogger(__name__)
_HEAVY = 50_000
"""Microseconds of splitting from which on a row is split in a thread: a longer wait of the event
loop would delay requests.
"""


def is_heavy(row: LogRow) -> bool:
    """True when a metric may block the event loop on this row."""
    return weight(row.texts) > _HEAVY


class BundledRun:
    """The steps of a bundled metric on one row."""

    def __init__(self, metric: Metric, row: LogRow) -> None:
        self._metric, self._row = metric, row
        self._steps = metric.play(row)

    def step(self, answers: Sequence[Answer] | None) -> Sequence[Request] | Score:
        """Send the answers (None at the start), and receive the next requests or the score."""
        try:
            return next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as stop:
            return checked_score(self._metric, stop.value)
        except Unanswered as error:
            return Score.unanswered(error)
        except UnreadableReply as error:
            return Score(None, str(error), status=Status.UNREADABLE)
        except RagmetricsError:
            raise
        except Exception as error:
            log.debug("metric %s, row %s", self._metric.name, self._row.id, exc_info=error)
            return metric_failed(f"{shorten(repr(error))}{error_location(error)}")


class MetricRun:
    """The generator of one metric on one row."""

    def __init__(self, metric: Metric, row: LogRow, *, heavy: bool = False) -> None:
        self.metric = metric
        self.requests: Sequence[Request] = ()
        self.score: Score | None = None
        self.asked = False
        """True when the metric has sent a request. Otherwise every judge gives the same score."""
        self._row = row
        self._run = BundledRun(metric, row) if metric.bundled else ForeignRun(metric, row)
        self._heavy = heavy or not metric.bundled

    def asks(self) -> list[Request]:
        """The current requests, with the prompts of the row's language."""
        return [self.metric.overridden(request, self._row.language) for request in self.requests]

    async def advance(self, answers: Sequence[Answer] | None) -> None:
        """Send the answers (None at the start), and receive the next requests or the score.

        When the metric's own code raises an error, the row gets the status `metric_failed`.
        """
        if self._heavy:
            await asyncio.to_thread(self.step, answers)
        else:
            self.step(answers)

    def step(self, answers: Sequence[Answer] | None) -> None:
        """The same without an event loop."""
        found = self._run.step(answers)
        if isinstance(found, Score):
            self.score = found
        else:
            self.requests, self.asked = found, self.asked or bool(found)


async def run_metric(
    metric: Metric, row: LogRow, answer: Callable[[Request], Awaitable[Answer]]
) -> Score:
    """Run one metric on one row; `answer` answers one request."""
    one = MetricRun(metric, row)
    await one.advance(None)
    while one.score is None:
        await one.advance(await asyncio.gather(*(answer(request) for request in one.asks())))
    return one.score
