"""The run of a metric on one row: it makes requests, a judge answers them, and it gives a score."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from ragmetrics.errors import RagmetricsError, Unanswered, UnreadableReply
from ragmetrics.judges import JudgeClient, MetricRequest, can_answer
from ragmetrics.metrics import Metric
from ragmetrics.plugins import TookTooLong, in_time
from ragmetrics.records import (
    Answer,
    Ask,
    Embed,
    LogRow,
    Prompt,
    Request,
    Score,
    Status,
    Steps,
    dump_json,
    real_number,
)
from ragmetrics.text import shorten, weight

log = logging.getLogger(__name__)

_HEAVY = 50_000
"""Microseconds of splitting from which on a row is split in a thread: a longer wait of the event
loop would delay requests.
"""


def is_heavy(row: LogRow) -> bool:
    """True when a metric may block the event loop on this row."""
    return weight(row.texts) > _HEAVY


@dataclass
class Member:
    """A judge of the panel."""

    client: JudgeClient
    repeats: int = 1

    @property
    def name(self) -> str:
        """The name of the judge."""
        return self.client.name

    def can_score(self, metric: Metric) -> bool:
        """Whether the judge can answer all prompts of a metric."""
        return can_answer(self.client.judge, metric.prompts)


def first_able(members: Sequence[Member], metric: Metric) -> Member:
    """The first judge that can score a metric; the first one if none can."""
    return next((one for one in members if one.can_score(metric)), members[0])


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
        self._strengths: list[float] = []
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
        for answer in answers or ():
            # What HasStrengths says, in a tenth of the time of `isinstance` with a protocol.
            self._strengths += getattr(answer, "strengths", ())
        result = self._run.step(answers)
        if isinstance(result, Score):
            self.score = with_spread(result, self._strengths)
        else:
            self.requests, self.asked = result, self.asked or bool(result)


def with_spread(score: Score, strengths: Sequence[float]) -> Score:
    """A score with the standard deviation of its value by the probabilities of its verdicts.

        spread = sqrt(sum p_i (1 - p_i)) / n

    It is that of a share of n independent verdicts. Without probabilities or a value: unchanged.
    """
    if not strengths or score.value is None:
        return score
    variance = sum(p * (1 - p) for p in strengths)
    return replace(score, spread=math.sqrt(variance) / len(strengths))


async def run_metric(
    metric: Metric, row: LogRow, answer: Callable[[Request], Awaitable[Answer]]
) -> Score:
    """Run one metric on one row; `answer` answers one request."""
    run = MetricRun(metric, row)
    await run.advance(None)
    while run.score is None:
        await run.advance(await asyncio.gather(*(answer(request) for request in run.asks())))
    return run.score


def repeated(request: MetricRequest, number: int) -> MetricRequest:
    """A repeat of a request. The first one needs no key of its own."""
    ask = request.request
    if not number or not isinstance(ask, Ask):
        return request
    return replace(request, request=replace(ask, repeat=(*ask.repeat, number)))


LARGEST = 1e100
"""Largest absolute value of a metric without a range. The square of a larger one may be infinite,
and so has no mean or interval."""

_OF_RUNS = (Status.NOT_SAMPLED, Status.OVER_BUDGET)
"""Statuses of rows that a run does not ask about; nobody is alerted to them."""

_ROUNDING = 1e-6
"""How far beyond its range a value may be by rounding, as a cosine of float32 is. It is cut."""


def checked_score(metric: Metric, returned: object) -> Score:
    """The score that a metric returned, with a value that is a float in the metric's range.

    `metric_failed` where it is no Score, its value is no finite number or is out of range, or
    it has a value and the status of a row without one, or the reverse.
    """
    if not isinstance(returned, Score):
        return metric_failed(f"a metric returns a Score, not {_shown(returned)}")
    if (returned.value is None) == (returned.status is Status.SCORED):
        what = "no value" if returned.value is None else "a value"
        return metric_failed(f"a score with {what} and the status {_shown(returned.status)}")
    if not metric.bundled:
        if problem := _unstorable(returned):
            return metric_failed(problem)
        # The other fields are those of panels and samples: a metric cannot fill them.
        own = returned.value, returned.reason, dict(returned.details), returned.status
        returned = Score(*own)
    if returned.value is None:
        return returned
    try:
        value = _in_range(metric, real_number(returned.value))
    except ValueError as error:
        return metric_failed(str(error))
    return returned if returned.value is value else replace(returned, value=value)


def _unstorable(score: Score) -> str:
    """Why a score cannot be stored; empty if it can."""
    if not isinstance(score.status, Status) or score.status in _OF_RUNS:
        return f"a score with the status {_shown(score.status)}, which no metric gives"
    try:
        json.dumps(dict(score.details), allow_nan=False, ensure_ascii=False).encode()
        score.reason.encode()
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"details or reason that cannot be stored: {shorten(repr(error))}"
    return ""


def metric_failed(reason: str) -> Score:
    """The score of a row on which the metric's own code failed."""
    return Score(None, reason, status=Status.METRIC_FAILED)


def _shown(value: object) -> str:
    """A foreign value as text, whatever its `repr` does."""
    try:
        return shorten(repr(value))
    except Exception:
        return f"an object of type {type(value).__name__}"


def _in_range(metric: Metric, value: float) -> float:
    low, high = metric.score_range or (-LARGEST, LARGEST)
    if not low - _ROUNDING <= value <= high + _ROUNDING:
        raise ValueError(f"a score of {value:g}: outside [{low:g}, {high:g}]")
    return min(max(value, low), high)


STEP_SECONDS = 30.0
"""Longest time of one step on one row."""

MOST_REQUESTS = 10_000
"""Most requests for one row."""

MOST_STEPS = 1_000
"""Most times that a metric may yield for one row."""

_hung: dict[Callable[..., Steps[Score]], str] = {}
"""The metrics that took too long in this process, with the reason."""


@dataclass
class ForeignRun:
    """The steps of a metric of another package on one row."""

    metric: Metric
    row: LogRow
    _steps: Steps[Score] | None = None
    _yields: int = 0
    _requests: int = 0

    def step(self, answers: Sequence[Answer] | None) -> Sequence[Request] | Score:
        """Send the answers (None at the start), and receive the next requests or the score.

        The row is `metric_failed` where the code raises anything, takes too long, asks too much, or
        gives what is no request and no score.
        """
        if why := _hung.get(self.metric.steps):
            return metric_failed(why)
        try:
            return in_time(partial(self._step, answers), STEP_SECONDS)
        except TookTooLong:
            why = f"a step of the metric took over {STEP_SECONDS:g} s: it is not run again"
            return metric_failed(_hung.setdefault(self.metric.steps, why))
        except Exception as error:
            return metric_failed(f"{_shown(error)}{error_location(error)}")

    def _step(self, answers: Sequence[Answer] | None) -> Sequence[Request] | Score:
        try:
            if self._steps is None:
                self._steps = self.metric.play(self.row)
            yielded = next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as stop:
            returned = stop.value
        except Unanswered as error:
            returned = Score.unanswered(error)
        except UnreadableReply as error:
            returned = Score(None, str(error), status=Status.UNREADABLE)
        else:
            return self._checked(yielded)
        return checked_score(self.metric, returned)

    def _checked(self, yielded: Any) -> Sequence[Request]:
        """The yielded requests. Raises an error for anything else, and for too many."""
        if not isinstance(yielded, list | tuple):
            raise TypeError(f"a metric yields a list of requests, not {type(yielded).__name__}")
        self._yields += 1
        self._requests += len(yielded)
        if self._yields > MOST_STEPS or self._requests > MOST_REQUESTS:
            raise RuntimeError(
                f"a metric yields at most {MOST_STEPS:,} times and {MOST_REQUESTS:,} requests a row"
            )
        for request in yielded:
            if not isinstance(request, Ask | Embed):
                raise TypeError(f"a metric yields requests, not {type(request).__name__}")
            if isinstance(request, Ask) and not isinstance(request.prompt, Prompt):
                raise TypeError(f"a metric asks by a Prompt, not {type(request.prompt).__name__}")
            sent = request.input if isinstance(request, Embed) else dump_json(request.data)
            sent.encode()  # a lone surrogate cannot be sent
        return yielded


def error_location(error: BaseException) -> str:
    """The file and line that raised the error, for the author of the metric."""
    frames = extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
