"""Combines what several judges say of a row: their scores, or in a cascade their verdicts.

    each judge:  value is the mean over the repeats, spread their standard deviation
    the panel:   mean, median, min, max or majority of the judges' values

A judge that fails is counted and left out of the row's value. A row without any value has failed.

In a cascade a cheap judge answers what it is certain of, the next judge the rest.

    certain   all repeats of the judge give every item the same level, the lowest or the highest;
              of a judge with probabilities: every item has p >= 0.95 or p <= 0.05

So a grade of 1 is never certain. Repeats at temperature 0 are equal anyway: they count as one. What
an earlier judge cannot answer, or fails to answer, goes to the next one, and so does a request
whose verdict has no levels. The last judge answers all that is left. Source: Chen, Zaharia and Zou
2023, "FrugalGPT"; Jung, Brahman and Choi 2025, "Trust or Escalate", for agreement as certainty.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel

from ragmetrics.config import Aggregate
from ragmetrics.judges import MetricRequest, can_answer, levels_of, top_level
from ragmetrics.records import UNSETTLED, Answer, Ask, HasStrengths, Score
from ragmetrics.scoring.metric_run import Member, repeated

Joined: TypeAlias = Aggregate | Literal["also"]
_DIGITS = 9  # values that differ by rounding alone are one vote


def majority(values: Sequence[float]) -> float:
    """The most frequent value; the median when two values are equally frequent."""
    counts = Counter(round(value, _DIGITS) for value in values).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return float(np.median(values))
    return min(value for value in values if round(value, _DIGITS) == counts[0][0])


_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "median": lambda values: float(np.median(values)),
    "min": min,
    "max": max,
    "majority": majority,
}


def averaged(scores: Sequence[Score]) -> Score:
    """The score of one judge from its repeats: their mean and their spread.

        value = mean(v_1 .. v_n),  spread = sqrt(sum (v_i - value)^2 / (n - 1))

    Repeats without a value are left out. The details are those of the first repeat with a value.
    """
    scored = [(score, score.value) for score in scores if score.value is not None]
    if not scored:
        return next((score for score in scores if _failed(score)), scores[0])
    values = [value for _, value in scored]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    repeats = {"repeats": [score.value for score in scores], "spread": spread}
    details = {**scored[0][0].details, **repeats}
    return replace(scored[0][0], value=float(np.mean(values)), spread=spread, details=details)


def combine(by_judge: Mapping[str, Score], aggregate: Joined) -> Score:
    """Combine the scores of several judges into one.

    Judges without a value are left out. `failed` names the judges that failed; `not_applicable` is
    no failure. `votes` are the values in the order of the judges. The details are those of the
    judge nearest to the value; their key `judges` has the result of each judge.
    """
    scored = [(score, score.value) for score in by_judge.values() if score.value is not None]
    judges = {name: _judge_details(score) for name, score in by_judge.items()}
    failed = tuple(name for name, score in by_judge.items() if _failed(score))
    votes = tuple(score.value for score in by_judge.values())
    if not scored:
        first = by_judge[failed[0]] if failed else next(iter(by_judge.values()))
        details = {**first.details, "judges": judges}
        return replace(first, details=details, votes=votes, failed=failed)
    value = _AGGREGATES[aggregate]([value for _, value in scored])
    nearest, _ = min(scored, key=lambda pair: abs(pair[1] - value))
    spreads = [score.spread for score, _ in scored if score.spread is not None]
    return replace(
        nearest,
        value=value,
        details={**nearest.details, "judges": judges},
        votes=votes,
        failed=failed,
        spread=float(np.mean(spreads)) if spreads else None,
    )


def _failed(score: Score) -> bool:
    return score.status in UNSETTLED


def _judge_details(score: Score) -> dict[str, Any]:
    details: dict[str, Any] = {"value": score.value, "status": score.status.value}
    if score.reason:
        details["reason"] = score.reason
    if "repeats" in score.details:
        details["repeats"] = score.details["repeats"]
    return details


Send: TypeAlias = Callable[[Member, Sequence[MetricRequest]], Awaitable[list[Answer]]]
"""Sends requests to one judge, and returns the answers in order."""

UNLIKELY, LIKELY = 0.05, 0.95
"""The probabilities up to which, and from which on, a verdict is certain."""

Certain: TypeAlias = Callable[[Member, MetricRequest, Sequence[Answer]], bool]
"""Whether a judge is certain of its answers to a request and to its repeats."""


def is_certain(request: Ask, answers: Sequence[Answer]) -> bool:
    """Whether the answers of a judge's repeats are a verdict that the next judge need not see.

    A single yes or no without a probability shows no certainty.
    """
    top = top_level(request.prompt)
    known = [answer.strengths for answer in answers if isinstance(answer, HasStrengths)]
    if known and len(known) == len(answers):
        return all(not UNLIKELY < p < LIKELY for strengths in known for p in strengths)
    levels = [levels_of(request, answer) for answer in answers if isinstance(answer, BaseModel)]
    if top is None or len(levels) < len(answers) or (top == 1 and len(answers) == 1):
        return False
    first, *others = levels
    return all(other == first for other in others) and all(level in (0, top) for level in first)


def by_agreement(member: Member, wanted: MetricRequest, answers: Sequence[Answer]) -> bool:
    """Whether a judge is certain, by its answers alone."""
    return isinstance(wanted.request, Ask) and is_certain(wanted.request, answers)


class CascadedRow:
    """The requests of one row, answered by the judges of a cascade."""

    def __init__(
        self, members: Sequence[Member], send: Send, certain: Certain = by_agreement
    ) -> None:
        *self._earlier, self._last = members
        self._send, self._is_certain = send, certain
        self._answered_by: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._failed: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._counted: set[tuple[str, str]] = set()

    async def answer(self, wanted: Sequence[MetricRequest]) -> list[Answer]:
        """The answers to requests of the row, in order."""
        accepted: dict[int, Answer] = {}
        for member in self._earlier:
            left = {place: one for place, one in enumerate(wanted) if place not in accepted}
            accepted |= await self._certain(member, left)
        left = {place: one for place, one in enumerate(wanted) if place not in accepted}
        if left:
            answers = await self._send(self._last, list(left.values()))
            for request, answer in zip(left.values(), answers, strict=True):
                self._note(request, answer, self._last)
            accepted |= dict(zip(left, answers, strict=True))
        return [accepted[place] for place in range(len(wanted))]

    def noted(self, metric: str, score: Score) -> Score:
        """A metric's score, with the number of verdicts by judge in its details.

        Where an earlier judge failed, another one answered in its place than on other nights, so
        the score is in no comparison.
        """
        by_judge = dict(self._answered_by[metric])
        failed = tuple(self._failed[metric])
        details = {**score.details, "answered_by": by_judge} if by_judge else score.details
        compared = not any(member.name in failed for member in self._earlier)
        return replace(score, details=details, failed=failed, compared=compared)

    async def _certain(
        self, member: Member, wanted: Mapping[int, MetricRequest]
    ) -> dict[int, Answer]:
        """The answers that an earlier judge is certain of."""
        able = {place: one for place, one in wanted.items() if _can_be_certain(member, one)}
        if not able:
            return {}
        repeats = [repeated(request, n) for request in able.values() for n in range(member.repeats)]
        answers = iter(await self._send(member, repeats))
        accepted = {}
        for place, request in able.items():
            replies = [next(answers) for _ in range(member.repeats)]
            certain = self._is_certain(member, request, replies)
            self._count(member, request, certain=certain)
            if certain:
                accepted[place] = replies[0]
            self._note(request, replies[0], member, used=certain)
        return accepted

    def _count(self, member: Member, wanted: MetricRequest, *, certain: bool) -> None:
        """Count a verdict, once for all metrics that ask for it."""
        key = member.name, wanted.request.key
        if key not in self._counted:
            self._counted.add(key)
            counter = member.client.counters[wanted.metric]
            counter.certain += certain
            counter.escalated += not certain

    def _note(
        self, request: MetricRequest, answer: Answer, member: Member, *, used: bool = True
    ) -> None:
        if not isinstance(request.request, Ask):
            return
        if isinstance(answer, BaseModel):
            self._answered_by[request.metric][member.name] += used
        else:
            self._failed[request.metric][member.name] = None


def _can_be_certain(member: Member, wanted: MetricRequest) -> bool:
    """Whether an earlier judge is asked: not if its answer can show no certainty."""
    ask = wanted.request
    top = top_level(ask.prompt) if isinstance(ask, Ask) else None
    alone = member.repeats == 1 or not member.client.repeats_vary
    once = alone and not member.client.gives_probabilities
    if not isinstance(ask, Ask) or top is None or (top == 1 and once):
        return False
    return can_answer(member.client.judge, [ask.prompt])
