"""Intervals of means: of rows, clustered by question, and of paired differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import Numbers, detectable

FEWEST_QUESTIONS = 2.0
"""Effective questions below which there is no interval."""
ALIKE = 0.01
"""Range below which values count as equal: they give no information on rarer values."""
RANGE_FROM = 80
"""Effective questions from which the observed range is a second scale. That of fewer questions says
too little of rarer values, and would only make their intervals wider."""
_HALVINGS = 40
"""Iterations for 12 digits of a bound in [-1, 1]."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its interval; `low` and `high` are None without enough data."""

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int
    error: float | None
    """Standard error of the mean; None for one cluster."""
    mde: float | None = None
    """Minimum detectable distance of the mean from a limit, one-sided, with 80% power."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """Estimate from which an interval of a mean is computed."""

    mean: float
    error: float
    """Standard error of the mean."""
    size: float
    """Effective questions (Kish 1965): 1 / sum(w^2), where question g has the share w_g."""
    rows: tuple[float, float]
    """Smallest and largest value of a row."""
    questions: tuple[float, float]
    """Smallest and largest mean of a question."""
    scale: tuple[float, float] = (0.0, 1.0)
    """Bounds of rarer values."""

    @classmethod
    def of(
        cls,
        mean: float,
        error: float,
        size: float,
        values: Numbers,
        index: NDArray[np.int_],
        scale: tuple[float, float] = (0.0, 1.0),
    ) -> IntervalEstimate:
        """The estimate with the ranges of these rows, whose questions are numbered by `index`."""
        rows = np.bincount(index)
        means = np.bincount(index, weights=values)[rows > 0] / rows[rows > 0]
        ends, of_questions = ((float(x.min()), float(x.max())) for x in (values, means))
        return cls(mean, error, size, ends, of_questions, scale)

    @property
    def guarded_error(self) -> float:
        """Standard error with half a question added at either end, so never 0."""
        return math.sqrt(_guarded(self)[1] / self.size)

    def interval(self, freedom: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The interval of an estimated mean, with t quantiles.

        For values in [0, 1] it is Wilson's, for the equivalent number of values at either end of a
        scale from a to b:

            k_eff = k * (c - a) (b - c) / v,   bounds p: (m - p)^2 = t^2 (p - a) (b - p) / k_eff

        where c and v are mean and variance of the k questions and of half a question more at either
        end of the observed range (`_ends`). The scale is [0, 1]; from 80 questions on it is also
        this range, and the further one of both bounds counts: the range alone would exclude all
        means beyond the usual score where the night shows rare ones on its other side only.
        For zeros and ones k_eff is k. So the interval stays in [0, 1], holds the mean, has a width
        if all values are equal, reaches further to the side of rare values, and is not too narrow
        for a few questions that agree by chance. For other values it is m +/- t * se.

        If all values are within 0.01 of each other, rarer ones may lie at either end of [0, 1].
        Wilson's bound of a share that no question shows is u = t^2 / (k + t^2), so the interval is
        at least that from m (1 - u) to m + (1 - m) u.
        Sources: Wilson 1927; Korn and Graubard 1998 for the effective size; Agresti and Coull 1998
        for added observations.
        """
        t = float(special.stdtrit(freedom, 0.5 + confidence / 2))
        if self.rows[0] < 0 or self.rows[1] > 1:
            half = t * self.error
            return self.mean - half, self.mean + half
        scales = {(0.0, 1.0), _scale(self)}
        lows, highs = zip(*(_on_scale(self, scale, t) for scale in scales), strict=True)
        low, high = min(lows), max(highs)
        if _alike(self):
            # The error may contain more than the spread of the rows: the wider bound counts.
            unseen = t * t / (self.size + t * t)
            low = min(low, self.mean * (1 - unseen))
            high = max(high, self.mean + (1 - self.mean) * unseen)
        # Rounding must not push the interval off the mean.
        return min(low, self.mean), max(high, self.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """Influence of each question on a mean: with weight w it is `expensive + w * cheap`."""

    expensive: Numbers
    cheap: Numbers
    questions: int
    """Number of judged questions."""
    strata: int = 1

    def error(self, weight: float) -> float:
        """Standard error; infinite if there are too few questions for another weight."""
        free = self.questions - self.strata - (weight > 0)
        if free < 1:
            return math.inf
        squares = float(np.square(self.expensive + weight * self.cheap).sum())
        return math.sqrt(squares * self.questions / free)

    def best_weight(self) -> float:
        """The weight with the least error; 0 if the plain mean has no larger one."""
        squares = float(self.cheap @ self.cheap)
        if squares <= 1e-18:
            return 0.0
        weight = max(0.0, -float(self.expensive @ self.cheap) / squares)
        return weight if self.error(weight) < self.error(0.0) else 0.0


def mean_interval(
    values: Sequence[float] | NDArray[np.float64],
    clusters: Sequence[str] | NDArray[np.str_] | NDArray[np.int_],
    *,
    confidence: float = CONFIDENCE,
) -> Mean | None:
    """Mean of the values and its interval; rows of one cluster need not be independent.

        m = sum_i x_i / n
        se^2 = G/(G-1) * sum_g (sum_{i in g} (x_i - m))^2 / n^2
        k = n^2 / sum_g n_g^2,   t with k - 1 degrees of freedom

    The effective questions k are G if all have the same number of rows, and fewer if some have
    more. The interval is that of `IntervalEstimate`. `mde` is for a one-sided test at 0.05.
    No value: None. Less than two effective questions: a mean without an interval.
    Sources: Miller 2024, "Adding error bars to evals"; Kish 1965, "Survey Sampling".
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        return None
    index = np.unique(np.asarray(clusters), return_inverse=True)[1]
    rows = np.bincount(index)
    groups, mean = len(rows), float(x.mean())
    if groups < 2:
        return Mean(mean, None, None, len(x), groups, None)
    sums = np.bincount(index, weights=x - mean)
    error = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum())) / len(x)
    size = len(x) ** 2 / float(np.square(rows).sum())
    if size < FEWEST_QUESTIONS:
        return Mean(mean, None, None, len(x), groups, error)
    estimate = IntervalEstimate.of(mean, error, size, x, index)
    low, high = estimate.interval(size - 1, confidence)
    mde = detectable(estimate.guarded_error, size - 1)
    return Mean(mean, low, high, len(x), groups, error, mde)


def _on_scale(
    estimate: IntervalEstimate, ends: tuple[float, float], t: float
) -> tuple[float, float]:
    """Wilson's interval of values between two ends."""
    start, end = ends
    centre, variance = _guarded(estimate)
    mean, centre = ((value - start) / (end - start) for value in (estimate.mean, centre))
    size = estimate.size * centre * (1 - centre) * (end - start) ** 2 / variance
    low, high = (start + bound * (end - start) for bound in _wilson(mean, size, t))
    return low, high


def _alike(estimate: IntervalEstimate) -> bool:
    return estimate.rows[1] - estimate.rows[0] < ALIKE


def _scale(estimate: IntervalEstimate) -> tuple[float, float]:
    """The range of the values that a question can have, as far as the observed ones tell."""
    low, high = _ends(estimate)
    # A prediction-powered mean may lie beyond all judged rows.
    return (low, high) if estimate.size >= RANGE_FROM and low < estimate.mean < high else (0.0, 1.0)


def _guarded(estimate: IntervalEstimate) -> tuple[float, float]:
    """Mean and variance of the questions with half a question added at either end."""
    ends = _ends(estimate)
    centre = (estimate.size * estimate.mean + sum(ends) / 2) / (estimate.size + 1)
    squares = (
        (estimate.size - 1) * estimate.size * estimate.error**2
        + estimate.size * (estimate.mean - centre) ** 2
        + sum((end - centre) ** 2 for end in ends) / 2
    )
    return centre, squares / (estimate.size + 1)


def _ends(estimate: IntervalEstimate) -> tuple[float, float]:
    """Bounds of one more question: those of the scale if all rows are equal.

    Else a quarter of the way from the most extreme question to the most extreme row (a question
    may have more such rows). If one end is further from the mean than the other, it is extended by
    (twice its share of both) ^ 3/4, because samples of skewed values lack the extremes.
    """
    if _alike(estimate):
        return estimate.scale
    pairs = zip(estimate.questions, estimate.rows, strict=True)
    low, high = ((3 * question + row) / 4 for question, row in pairs)
    below, above, both = estimate.mean - low, high - estimate.mean, high - low
    low = estimate.mean - below * max(1.0, 2 * below / both) ** 0.75
    high = estimate.mean + above * max(1.0, 2 * above / both) ** 0.75
    (bottom, top), (least, most) = estimate.scale, estimate.rows
    return max(low, min(bottom, least)), min(high, max(top, most))


def _wilson(mean: float, n: float, t: float) -> tuple[float, float]:
    centre = (mean + t * t / (2 * n)) / (1 + t * t / n)
    half = t / (1 + t * t / n) * math.sqrt(mean * (1 - mean) / n + t * t / (4 * n * n))
    return max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))


def paired_interval(differences: Numbers, *, confidence: float) -> tuple[float, float]:
    """The interval of a mean of differences in [-1, 1], with t quantiles.

    It is Tango's, for the equivalent number of full moves. A question moved if it differs from the
    median c; the size of a full move is s:

        x_q = d_q - c,   s = sum x_q^2 / sum |x_q|,   b = mean of x+ / s,   g = mean of x- / s
        bounds D:  (b - g - D)^2 = t^2 / (n - 1) * (2 r(D) + D (1 - D)),   as c + s * D

    where r(D) is the maximum likelihood share of questions that gain if the drop is D. So the error
    is that under the drop D, not the observed one: at the drop itself it is the standard error of
    t, and larger beyond. For differences of -1, 0 and 1, fewer than half of them moved, s is 1: the
    interval excludes 0 where McNemar's test does (with t^2 / (n - 1) for z^2 / n). Where all are
    within 0.01 of each other, s is 1 too: it then reaches about t^2 / (n - 1 + t^2) from their
    mean, near the rule of three.
    Sources: Tango 1998, "Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design"; Korn and Graubard 1998 for effective counts.
    """
    n, centre = len(differences), float(np.median(differences))
    moves = differences - centre
    size = _size(moves)
    lost, gained = (float(side.clip(0).mean()) / size for side in (moves, -moves))
    t = float(special.stdtrit(n - 1, 0.5 + confidence / 2))
    ends = (
        _furthest(lambda one: _fits(one, lost, gained, t**2 / (n - 1)), lost - gained, end)
        for end in (-1.0, 1.0)
    )
    low, high = (centre + size * end for end in ends)
    mean = float(differences.mean())
    # Rounding must not push the interval off the mean.
    return max(-1.0, min(low, mean)), min(1.0, max(high, mean))


def _size(moves: Numbers) -> float:
    """Size s of a move, weighted so that the variance of the mean is preserved."""
    if float(np.ptp(moves)) < ALIKE:
        return 1.0
    return float(np.square(moves).sum() / np.abs(moves).sum())


def _fits(drop: float, lost: float, gained: float, errors: float) -> bool:
    """Whether the data are within this number of squared errors of a drop."""
    half = (lost + gained - (2 - lost + gained) * drop) / 4
    gains = half + math.sqrt(max(0.0, half**2 + gained * drop * (1 - drop) / 2))
    return (lost - gained - drop) ** 2 <= errors * (2 * gains + drop * (1 - drop))


def _furthest(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """Bisection: the last value that fits, between one that fits and one that may not."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return inside


def share_interval(count: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share of independent units, `count` of `of`; (0, 1) where of is 0.

    Source: Wilson 1927.
    """
    if not of:
        return 0.0, 1.0
    return _wilson(count / of, of, float(special.ndtri(0.5 + CONFIDENCE / 2)))
