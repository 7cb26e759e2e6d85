"""The offset between two judges, from questions that both judged, and the error it adds to a drop.

    d_q = old_q - new_q,   offset = mean(d) over the questions of both judges

Verdicts of the old judge compare with those of the new one after the offset is taken out of them.
With s, the share of the earlier verdicts that are of the old judge, a drop then has the influence

    of question q:  p_q - s o_q,   o_q = (d_q - mean(d)) / n

where p_q is its influence on the drop. The sum of squares is the variance: that of the offset is
added, and what both have in common is subtracted. Where all questions were judged by both, this is
the variance of a comparison by the old judge alone.
Source: Huber 1967 for the variance by influences; Liang and Zeger 1986 for its sum by clusters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ragmetrics.stats.comparisons import Drop
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import MeanDifference, detectable

NO_MEANS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OffsetError:
    """Error of an offset that the earlier side of a drop was moved by."""

    share: float
    """Share of the earlier values that were moved, less that of the later ones."""
    error: float
    freedom: float
    differences: Mapping[str, float]
    """The old value less the new one of each question that both judged; empty: not known."""

    def added_to(
        self,
        drop: Drop,
        before: Mapping[str, float] = NO_MEANS,
        now: Mapping[str, float] = NO_MEANS,
    ) -> Drop:
        """A drop of moved values whose error, interval, p and detectable effect include this one.

        `before` and `now` are the question means of both sides. Where they or the differences are
        not known, both errors count as independent. What both have in common takes the error to no
        less than that of half a question, or than the drop's own where that is smaller.
        """
        added = (self.share * self.error) ** 2
        if self.differences and before and now:
            added -= 2 * self.share * _in_common(before, now, self.differences, paired=drop.paired)
        least = min(drop.error**2, 1 / (drop.questions + 1) ** 2)
        error = math.sqrt(max(drop.error**2 + added, least))
        freedom = min(drop.freedom, self.freedom)
        measured = MeanDifference(drop.drop, error, freedom)
        low, high = measured.interval(CONFIDENCE)
        return replace(
            drop,
            low=low,
            high=high,
            p_value=measured.p_value,
            error=error,
            freedom=freedom,
            mde=detectable(error, freedom),
            p_of_all=replace(measured, difference=drop.before).p_value,
        )


def _in_common(
    before: Mapping[str, float],
    now: Mapping[str, float],
    differences: Mapping[str, float],
    *,
    paired: bool,
) -> float:
    """The covariance of a drop and of the offset, by the questions of both."""
    influence = _influences(before, now, paired=paired)
    moved = _centred(differences)
    return sum(part * moved[question] for question, part in influence.items() if question in moved)


def _influences(
    before: Mapping[str, float], now: Mapping[str, float], *, paired: bool
) -> dict[str, float]:
    if paired:
        return _centred({name: before[name] - now[name] for name in before.keys() & now.keys()})
    old, new = _centred(before), _centred(now)
    return {name: old.get(name, 0.0) - new.get(name, 0.0) for name in old.keys() | new.keys()}


def _centred(values: Mapping[str, float]) -> dict[str, float]:
    """The influence of each question on the mean of all."""
    mean = float(np.mean(list(values.values()))) if values else 0.0
    return {name: (value - mean) / len(values) for name, value in values.items()}
