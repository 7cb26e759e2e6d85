"""The panel: one judge or several, each asked once or several times, and one score made of it all.

    each judge:  the row's value is the mean over its repeats, their standard deviation its spread
    the panel:   mean, median, min, max or majority of the judges' values

A judge that fails is left out of the row's value and counted; the row is lost only with all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ragmetrics.broker import Broker
from ragmetrics.errors import JudgeRefused, MetricError, RagmetricsError, Unanswered
from ragmetrics.judges.base import Judge, fingerprint
from ragmetrics.protocol import Answer, Ask, Request, Score, Status, Steps
from ragmetrics.registry import Metric
from ragmetrics.rows import LogRow
from ragmetrics.settings import Aggregate

_DIGITS = 9  # values that differ by rounding alone are one vote


def majority(values: Sequence[float]) -> float:
    """The value that more judges give than any other; the median where there is none."""
    counts = Counter(round(value, _DIGITS) for value in values).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return float(np.median(values))
    return next(value for value in values if round(value, _DIGITS) == counts[0][0])


_AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    "min": min,
    "max": max,
    "majority": majority,
}


def panel_fingerprint(judges: Sequence[Judge], repeats: Sequence[int], aggregate: Aggregate) -> str:
    """Who judges: the judge itself where one is asked once, else all that makes the value."""
    if len(judges) == 1 and repeats[0] == 1:
        return judges[0].fingerprint
    asked = [(judge.fingerprint, times) for judge, times in zip(judges, repeats, strict=True)]
    return fingerprint("panel", aggregate if len(judges) > 1 else "", asked)


@dataclass
class Member:
    """A judge of the panel."""

    broker: Broker
    repeats: int = 1

    @property
    def name(self) -> str:
        """The judge's."""
        return self.broker.judge.name


class Panel:
    """Scores rows by one judge or by several."""

    def __init__(self, members: Sequence[Member], aggregate: Aggregate = "mean") -> None:
        self.members = tuple(members)
        self._aggregate = aggregate

    @property
    def rows_in_play(self) -> int:
        """Enough rows to keep every judge busy, few enough to stay small."""
        return max(16, 2 * max(one.broker.judge.concurrency for one in self.members))

    async def score(self, metric: Metric, row: LogRow) -> Score:
        """Score one row by one metric.

        Raises JudgeRefused where no judge can be asked, MetricError where the metric fails.
        """
        try:
            return await self._score(metric, row)
        except RagmetricsError:
            raise
        except Exception as error:
            raise MetricError(f"metric {metric.name}, row {row.id}: {error!r}") from error

    async def _score(self, metric: Metric, row: LogRow) -> Score:
        if not metric.prompts:  # nothing that judges could differ on
            return await self._play(self.members[0], metric, row, 0)
        by_judge = await asyncio.gather(*(self._judged(one, metric, row) for one in self.members))
        if len(by_judge) == 1:
            return by_judge[0]
        return combine(dict(zip(self.names, by_judge, strict=True)), self._aggregate)

    @property
    def names(self) -> list[str]:
        """The judges' names."""
        return [one.name for one in self.members]

    async def stop(self) -> None:
        """Give up what is still waiting for an answer."""
        await asyncio.gather(*(one.broker.stop() for one in self.members))

    async def _judged(self, member: Member, metric: Metric, row: LogRow) -> Score:
        repeats = (self._play(member, metric, row, number) for number in range(member.repeats))
        scores = await asyncio.gather(*repeats)
        return scores[0] if len(scores) == 1 else averaged(scores)

    async def _play(self, member: Member, metric: Metric, row: LogRow, repeat: int) -> Score:
        def answer(request: Request) -> Any:
            worded = metric.worded(request, row.language)
            if repeat and isinstance(worded, Ask):  # the first needs no key of its own
                worded = replace(worded, repeat=(*worded.repeat, repeat))
            return self._answer(member, row.question_key, worded)

        return await play(metric.play(row), answer)

    async def _answer(self, member: Member, row_key: str, request: Request) -> Answer:
        """The answer of one judge; one that refuses is asked no more, and the others go on."""
        try:
            return await member.broker.answer(row_key, request)
        except JudgeRefused as error:
            if len(self.members) == 1 or all(one.broker.refusal for one in self.members):
                raise
            return Unanswered(Status.JUDGE_FAILED, str(error))


async def play(steps: Steps[Score], answer: Callable[[Request], Any]) -> Score:
    """Play one metric to its end: send each wave's answers back until it returns a score."""
    try:
        requests = next(steps)
        while True:
            answers = await asyncio.gather(*(answer(request) for request in requests))
            requests = steps.send(answers)
    except StopIteration as stop:
        score = stop.value
        if not isinstance(score, Score):
            raise TypeError(f"a metric returns a Score, not {score!r}") from None
        return score
    except Unanswered as error:
        return Score.unanswered(error)


def averaged(scores: Sequence[Score]) -> Score:
    """One judge's score of a row it judged several times: mean, and spread where it has one.

        value = mean(v_1 .. v_n),  spread = sqrt(sum (v_i - value)^2 / (n - 1))

    Repeats without a value are left out; the details are those of the first with one.
    """
    found = [(score, score.value) for score in scores if score.value is not None]
    if not found:
        return next((score for score in scores if _failed(score)), scores[0])
    values = [value for _, value in found]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    told = {"repeats": [score.value for score in scores], "spread": spread}
    details = {**found[0][0].details, **told}
    return replace(found[0][0], value=float(np.mean(values)), spread=spread, details=details)


def combine(by_judge: Mapping[str, Score], aggregate: Aggregate) -> Score:
    """One score of the scores of several judges.

    Judges without a value are left out; those that `failed` are named, unlike those to whom the row
    has nothing to judge. The details are those of the judge nearest to the value, and `judges`:
    what each one said. `votes` are their values in order.
    """
    found = [(score, score.value) for score in by_judge.values() if score.value is not None]
    said = {name: _said(score) for name, score in by_judge.items()}
    failed = tuple(name for name, score in by_judge.items() if _failed(score))
    votes = tuple(score.value for score in by_judge.values())
    if not found:
        first = by_judge[failed[0]] if failed else next(iter(by_judge.values()))
        details = {**first.details, "judges": said}
        return replace(first, details=details, votes=votes, failed=failed)
    value = _AGGREGATES[aggregate]([value for _, value in found])
    nearest, _ = min(found, key=lambda pair: abs(pair[1] - value))
    spreads = [score.spread for score, _ in found if score.spread is not None]
    return replace(
        nearest,
        value=value,
        details={**nearest.details, "judges": said},
        votes=votes,
        failed=failed,
        spread=float(np.mean(spreads)) if spreads else None,
    )


def _failed(score: Score) -> bool:
    return score.status in (Status.UNREADABLE, Status.JUDGE_FAILED)


def _said(score: Score) -> dict[str, Any]:
    said: dict[str, Any] = {"value": score.value, "status": score.status.value}
    if score.reason:
        said["reason"] = score.reason
    if "repeats" in score.details:
        said["repeats"] = score.details["repeats"]
    return said
