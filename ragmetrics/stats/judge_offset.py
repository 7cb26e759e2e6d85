"""The offset between two judges, from questions that both judged, and the error it adds to a drop.

    d_q = old_q - new_q,   offset = -mean(d) over the n questions of both judges

Verdicts of the old judge compare with those of the new one after the offset is added to them. With
s, the share of the earlier verdicts that are of the old judge, a drop then has the influence

    of question q:  p_q - s o_q,   o_q = (d_q - mean(d)) / n

where p_q is its influence on the drop. The sum of squares is the variance. For a side of N
questions that is the variance of a mean of

    pairs   before_q - now_q - N s o_q        earlier side  before_q - N s o_q
    now     now_q + N s o_q

so each is tested as any drop is. Where both judged all questions of tonight, the last line is
old_q - mean(d): the comparison by the old judge. Where they judged a sample of them, it is the
difference estimator of the old judge's mean. If neither side has a share b of the n questions, the
error of the offset adds b s^2 se^2.

Unpaired, p takes one spread for both sides where that has the larger error, as without a change
there is one (`MeanDifference.unpaired`). It must be that of one judge: the pooled spread of two
judges says nothing of either. The interval takes each side's spread as it is (Welch), with half a
question more at either end: 100 questions show too few of the rare ones on which judges differ.
Sources: Huber 1967 for the variance by influences; Liang and Zeger 1986 for its sum by clusters;
Cochran 1977, "Sampling Techniques", chapter 12, for differences of a second sample; Welch 1947.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ragmetrics.stats.comparisons import Drop, guarded_error
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import MeanDifference, Numbers, detectable

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
        added, freedom = [(self.share * self.error) ** 2] * 2, drop.freedom
        if self.differences and before and now:
            added, freedom = self._added(drop, before, now)
        least = min(drop.error**2, 1 / (drop.questions + 1) ** 2)
        errors = (math.sqrt(max(drop.error**2 + more, least)) for more in added)
        freedom = min(freedom, self.freedom)
        tested, shown = (MeanDifference(drop.drop, error, freedom) for error in errors)
        low, high = shown.interval(CONFIDENCE)
        return replace(
            drop,
            low=low,
            high=high,
            p_value=tested.p_value,
            error=tested.error,
            freedom=freedom,
            mde=detectable(tested.error, freedom),
            p_of_all=replace(tested, difference=drop.before).p_value,
        )

    def _added(
        self, drop: Drop, before: Mapping[str, float], now: Mapping[str, float]
    ) -> tuple[list[float], float]:
        """What the offset adds to the variance of the test and of the interval; the degrees of
        freedom.
        """
        moves = _influences(self.differences, self.share)
        plain, joint = (
            _sides(before, now, parts, paired=drop.paired) for parts in (NO_MEANS, moves)
        )
        alone, both = (_contrast(sides) for sides in (plain, joint))
        compared = before.keys() & now.keys() if drop.paired else before.keys() | now.keys()
        beside = len(moves.keys() - compared) / len(moves)
        tested = both.error**2 - alone.error**2 + beside * (self.share * self.error) ** 2
        pooled = 0.0 if drop.mix_tags else both.error**2 - sum(map(_guarded, joint))
        return [tested, tested - pooled], both.freedom


def _influences(differences: Mapping[str, float], share: float) -> dict[str, float]:
    """The influence of each question on a share of the mean of all."""
    mean = float(np.mean(list(differences.values())))
    return {name: share * (d - mean) / len(differences) for name, d in differences.items()}


def _sides(
    before: Mapping[str, float],
    now: Mapping[str, float],
    moves: Mapping[str, float],
    *,
    paired: bool,
) -> Sequence[Numbers]:
    """The differences of pairs, or the values of either side, with the influences of the offset. A
    question that both sides have without being paired has its influence on the later one.
    """
    if paired:
        shared = [name for name in before if name in now]
        lost = [before[name] - now[name] - len(shared) * moves.get(name, 0.0) for name in shared]
        return [np.array(lost)]
    earlier = {name: part for name, part in moves.items() if name not in now}
    return [
        np.array([value - len(before) * earlier.get(name, 0.0) for name, value in before.items()]),
        np.array([value + len(now) * moves.get(name, 0.0) for name, value in now.items()]),
    ]


def _contrast(sides: Sequence[Numbers]) -> MeanDifference:
    return MeanDifference.unpaired(*sides) if sides[1:] else MeanDifference.paired(*sides)


def _guarded(side: Numbers) -> float:
    """The variance of the mean, with half a question more at either end."""
    return guarded_error(side, (0.0, 1.0)) ** 2
