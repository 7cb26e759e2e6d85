"""Combines several scores of a row into one.

    each judge:  value is the mean over the repeats, spread their standard deviation
    the panel:   mean, median, min, max or majority of the judges' values

A judge that fails is counted and left out of the row's value. A row without any value has failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ragmetrics.config import Aggregate
from ragmetrics.records import UNSETTLED, Score

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
