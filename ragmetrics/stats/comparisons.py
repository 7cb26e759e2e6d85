"""Whether a mean fell between two sets of rows, or from some nights to others.

Questions are paired where the sides share enough of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import special

from ragmetrics.stats.intervals import IntervalEstimate, paired_interval
from ragmetrics.stats.permutation_test import LEAST, chance_of_order
from ragmetrics.stats.sign_flip_test import FEWEST_FOR_T, sign_flip_interval, sign_flip_p_value
from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import POWER, MeanDifference, Numbers, detectable

PAIRED_FROM = 0.5
"""Share of tonight's questions that must be on both sides for a paired comparison."""
ASKED_ALIKE = 0.9
"""Ratio of a question's rows now to before from which its nights can be permuted."""
QuestionValues: TypeAlias = Mapping[str, Sequence[float]]
"""Values of each question's rows in one night."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop of a mean: `drop` is `before` minus `now`, positive if the mean fell.

    `p_value` is one-sided, against the hypothesis that it did not fall.
    """

    before: float
    now: float
    """The means of the questions that were compared."""
    drop: float
    low: float
    high: float
    p_value: float
    questions: int
    paired: bool
    error: float
    """Standard error with half a question added at either end, so never 0."""
    freedom: float
    mde: float
    """Minimum detectable drop with 80% power, for this number and spread of questions."""
    mix: float | None = None
    """Part of the plain drop from a different mix of tags: `before` minus `now` is `drop` plus
    `mix`. None if the drop is not standardised."""
    mix_tags: tuple[str, ...] = ()
    """Tags of the standardisation."""
    alone: float = 0.0
    """Share of now's questions with too few earlier rows of their tags: compared with all rows."""
    p_of_all: float = 1.0
    """The p value if every score of now were 0; 1 for scores that are not from 0 to 1."""

    def detectable(self, alpha: float, limit: float = 0.0) -> float:
        """Smallest true drop that is found with 80% power: above a limit, and significant.

            max((t_(1-alpha) + t_0.80) * se, limit + t_0.80 * se)

        Source: Julious 2004, "Sample sizes for clinical trials with normal data".
        """
        shown = limit + float(special.stdtrit(self.freedom, POWER)) * self.error
        return max(detectable(self.error, self.freedom, alpha=alpha), shown)


def compare(
    before: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]
) -> Drop | None:
    """Compare question means, `{question: values of its rows}` on both sides.

        paired: d_q = mean(before_q) - mean(now_q) over shared questions; t test on d, below 30
                questions the permutation test of `sign_flip_p_value`
        else:   t test on the question means of both sides (Welch's, or that of one common
                spread where its error is larger: `MeanDifference.unpaired`)

    p is at least 2^-n for n pairs, and 1 / C(n_1 + n_2, n_1) for two sides: the chance, without
    a change, of the signs (sides) with the largest drop. Below 30 pairs the interval excludes 0
    exactly where that test does at 2.5% on a side, and else is the wider one of both tests.
    The interval of paired scores in [0, 1] (or turned round) is that of `paired_interval`, which
    has a width even if no question moved; any other is drop +/- t * se. For such scores the
    interval is clipped to [-1, 1], paired or not.
    `mde` is for a one-sided test at 0.05, with half a question added at either end of the
    differences (of the values), so that it is not 0 if they are all equal.
    Less than two questions to compare: None. Unpaired, no spread at all: an interval without width.
    Sources: Miller 2024, "Adding error bars to evals"; Welch 1947; Fisher 1935 for the bound of p.
    """
    return compare_aligned(*align(before, now))


def align(
    before: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]
) -> tuple[Numbers, Numbers]:
    """The mean of each question on both sides, in one order; NaN if a side lacks it."""
    questions = sorted(before.keys() | now.keys())
    return _means(before, questions), _means(now, questions)


def compare_aligned(before: Numbers, now: Numbers) -> Drop | None:
    """`compare` for the output of `align`: question means in one order, NaN if missing."""
    asked, still = ~np.isnan(before), ~np.isnan(now)
    shared = asked & still
    paired = int(shared.sum())
    if paired >= 2 and paired >= PAIRED_FROM * int(still.sum()):
        old, new = before[shared], now[shared]
        lost = old - new
        guarded = guarded_error(lost, (-1.0, 1.0))
        return _drop(MeanDifference.paired(lost), guarded, (old, new), lost)
    old, new = before[asked], now[still]
    if len(old) < 2 or len(new) < 2:
        return None
    difference = MeanDifference.unpaired(old, new)
    guarded = math.hypot(*(guarded_error(side, (0.0, 1.0)) for side in (old, new)))
    return _drop(difference, max(difference.error, guarded), (old, new))


def guarded_error(values: Numbers, scale: tuple[float, float]) -> float:
    """Standard error with half a question added at either end, so never 0."""
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    ends = float(values.min()), float(values.max())
    return IntervalEstimate(
        float(values.mean()), error, len(values), ends, ends, scale
    ).guarded_error


def _means(values: Mapping[str, Sequence[float]], questions: Sequence[str]) -> Numbers:
    return np.array(
        [sum(own) / len(own) if (own := values.get(question)) else np.nan for question in questions]
    )


def _drop(
    difference: MeanDifference,
    guarded: float,
    means: tuple[Numbers, Numbers],
    lost: Numbers | None = None,
) -> Drop:
    """`lost` by each question of a pairing, else None."""
    low, high = difference.interval(CONFIDENCE)
    if of_one_range(means):
        low, high = max(low, -1.0), min(high, 1.0)
        if lost is not None:
            low, high = paired_interval(lost, confidence=CONFIDENCE)
    p_value = difference.p_value
    if lost is not None and len(lost) < FEWEST_FOR_T:
        p_value = sign_flip_p_value(lost)
        exact = sign_flip_interval(lost, confidence=CONFIDENCE)
        low, high = _wider_bound(low, exact[0]), -_wider_bound(-high, -exact[1])
    return Drop(
        before=float(means[0].mean()),
        now=float(means[1].mean()),
        drop=difference.difference,
        low=low,
        high=high,
        p_value=p_value,
        questions=len(means[1]),
        paired=lost is not None,
        error=guarded,
        freedom=difference.freedom,
        mde=detectable(guarded, difference.freedom),
        p_of_all=_p_of_all(means[0], len(means[1]), paired=lost is not None),
    )


def _p_of_all(before: Numbers, count: int, *, paired: bool) -> float:
    """The p value of the same comparison where all is lost. Tonight has no spread then, so far
    smaller means than `mde` are found to fall to 0.
    """
    if before.min() < 0 or before.max() > 1:
        return 1.0
    if paired and len(before) < FEWEST_FOR_T:
        return sign_flip_p_value(before)
    difference = (
        MeanDifference.paired(before)
        if paired
        else MeanDifference.unpaired(before, np.zeros(count))
    )
    return difference.p_value


def _wider_bound(by_t: float, exact: float) -> float:
    """The lower of two lower bounds, but above 0 exactly where that of the permutations is.

    The bound by t has a distance from the mean even if no question moved. An infinite one says that
    so few questions cannot exclude 0.
    """
    if exact > 0:
        return min(by_t, exact) if by_t > 0 else exact
    return min(by_t, exact if math.isfinite(exact) else 0.0)


def of_one_range(means: tuple[Numbers, Numbers]) -> bool:
    """Whether all are in [0, 1], or all in [-1, 0], as scores of lower-is-better metrics."""
    low, high = min(side.min() for side in means), max(side.max() for side in means)
    return bool(-1 <= low <= high <= 0 or 0 <= low <= high <= 1)


def compare_nights(
    before: Sequence[QuestionValues], now: Sequence[QuestionValues], *, in_order: bool = True
) -> Drop | None:
    """Drop of a mean from some nights to others.

    If they share their questions, p is that of the permutation test over each question's nights,
    or without `in_order` that of `compare`.
    For too many questions, or below its resolution, p is that of the t test. If questions have
    fewer rows now, p is the larger of both, because means of fewer rows vary more.
    """
    drop = compare(together(before), together(now))
    if drop is None or not drop.paired or not in_order:
        return drop
    chance = chance_of_order(question_means(before), question_means(now))
    if chance is None or (chance <= LEAST and drop.p_value < chance):
        return drop
    fewer = _rows_each(now, before) < ASKED_ALIKE * _rows_each(before, now)
    return replace(drop, p_value=max(chance, drop.p_value) if fewer else chance)


def _rows_each(nights: Sequence[QuestionValues], others: Sequence[QuestionValues]) -> float:
    """Mean rows per question and night, over the questions of both."""
    shared = set[str]().union(*others)
    rows = [len(values) for night in nights for name, values in night.items() if name in shared]
    return sum(rows) / len(rows)


def together(nights: Sequence[QuestionValues]) -> dict[str, list[float]]:
    """The values of each question over several nights."""
    values_of: dict[str, list[float]] = {}
    for night in nights:
        for question, values in night.items():
            values_of.setdefault(question, []).extend(values)
    return values_of


def question_means(nights: Sequence[QuestionValues]) -> list[dict[str, float]]:
    """The mean of each question's rows, night by night."""
    return [
        {question: sum(values) / len(values) for question, values in night.items()}
        for night in nights
    ]
