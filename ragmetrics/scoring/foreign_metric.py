"""Runs metrics of other packages. Such a metric costs only its own rows, whatever its code does.

Each step runs in a thread with a time limit. After one step that took too long, the metric is not
run again in this process: threads cannot be stopped, and each one would take its share of the
processor until the process ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.metrics import Metric
from ragmetrics.plugins import TookTooLong, in_time
from ragmetrics.records import Answer, Ask, Embed, LogRow, Request, Score, Status, Steps, dump_json
from ragmetrics.scoring.checked_score import checked_score, metric_failed
from ragmetrics.text import shorten

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
        except Unanswered as error:
            return Score.unanswered(error)
        except UnreadableReply as error:
            return Score(None, str(error), status=Status.UNREADABLE)
        except Exception as error:
            return metric_failed(f"{shorten(repr(error))}{error_location(error)}")

    def _step(self, answers: Sequence[Answer] | None) -> Sequence[Request] | Score:
        try:
            if self._steps is None:
                self._steps = self.metric.play(self.row)
            yielded = next(self._steps) if answers is None else self._steps.send(answers)
        except StopIteration as stop:
            return checked_score(self.metric, stop.value)
        return self._checked(yielded)

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
            sent = request.input if isinstance(request, Embed) else dump_json(request.data)
            sent.encode()  # a lone surrogate cannot be sent
        return yielded


def error_location(error: BaseException) -> str:
    """The file and line that raised the error, for the author of the metric."""
    frames = extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
