"""Paired permutation test of a drop, for few questions: the signs of the differences are flipped.

Without a change both builds (nights) could have had each other's score of a question, so each
difference could as well have the other sign. The p value is the share of all 2^n sign patterns with
a larger drop, and half of those with an equal one. All are counted: it assumes no distribution of
the scores, and does not depend on n being large, as a t test does.

Why half of the equal ones (the mid-p value): golden scores have few distinct values, and most
questions do not move at all. Given that k questions moved, no p would be below 2^-k, though a
question that did not move is evidence too. The mid-p value is within 0.002 of the exact
unconditional p of zeros and ones, which counts that evidence.
Sources: Fisher 1935, "The Design of Experiments", section 21; Lancaster 1961 for the mid-p value;
Fagerland, Lydersen and Laake 2013, "The McNemar test for binary matched-pairs data".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy import special

from ragmetrics.stats.t_test import Numbers

FEWEST_FOR_T = 30
"""Questions from which the t test decides; with fewer ones, this test."""
_DIGITS = 12
_ROUNDING = 1e-9
_PRECISION = 5e-3
"""Precision of a bound, in standard errors."""
_BESIDE = (0.9, 1.1, 0.98, 1.02)
"""Where a bound is looked for, as multiples of its distance by t."""


def sign_flip_p_value(differences: Numbers) -> float:
    """One-sided mid-p of a positive mean of paired differences.

        p = share of the subsets S of the questions with sum of d_q over S < 0, and half of = 0

    S are the questions whose sign is flipped: the mean is larger than the observed one where their
    sum is below 0. Questions with d = 0 do not matter; p is 0.5 where there are no others. It
    is at least 2^-n, the chance that all n questions fall, and 1 minus p is that of a rise.
    """
    moved, least = differences[np.abs(differences) > _ROUNDING], 0.5 ** len(differences)
    return min(max(_Subsets.of(moved).share_below(0.0), least), 1 - least)


def sign_flip_interval(differences: Numbers, *, confidence: float) -> tuple[float, float]:
    """The means that the test does not reject, on either side: a confidence interval.

        low = smallest D with  share of the subsets with a mean of d below D  above (1 - c) / 2

    counted as above, the empty subset half. `high` is the same from above. It excludes 0 exactly
    where the one-sided p, of a fall or of a rise, is not above (1 - c) / 2. So few questions that
    no p is that small (5 for 95%): without bounds. No width where all differences are equal.
    Source: Hartigan 1969, "Using subsample values as typical values".
    """
    rest = (1 - confidence) / 2
    return _low(differences, rest), -_low(-differences, rest)


def _low(differences: Numbers, rest: float) -> float:
    """The lower bound; -infinity where even the smallest mean of a subset is not rejected."""
    subsets, n = _Subsets.of(differences), len(differences)
    smallest, mean = float(differences.min()), float(differences.mean())
    if 0.5**n > rest:
        return -math.inf
    if subsets.share_below(smallest) > rest:
        return smallest
    low, high = smallest, mean
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    t = float(special.stdtrit(n - 1, 1 - rest))
    # 0 is tried, so that the interval agrees with p; then points beside the bound by t.
    for point in (0.0, *(mean - beside * t * error for beside in _BESIDE)):
        if low < point < high:
            low, high = (point, high) if subsets.share_below(point) <= rest else (low, point)
    while high - low > _PRECISION * error:
        middle = (low + high) / 2
        low, high = (middle, high) if subsets.share_below(middle) <= rest else (low, middle)
    return high


@dataclass(frozen=True)
class _Half:
    """The subsets of half of the questions: sum, size and share of each kind."""

    sums: Numbers
    sizes: Numbers
    shares: Numbers

    @classmethod
    def of(cls, values: Numbers, counts: Numbers) -> _Half:
        """The subsets of questions of which `counts` have each of the `values`."""
        sums, sizes, shares = np.zeros(1), np.zeros(1), np.ones(1)
        for value, count in zip(values, counts, strict=True):
            chosen = np.arange(count + 1)
            sums = np.add.outer(sums, value * chosen).ravel()
            sizes = np.add.outer(sizes, chosen).ravel()
            shares = np.multiply.outer(shares, special.binom(count, chosen) / 2**count).ravel()
        return cls(sums, sizes, shares)

    def below(self, mean: float) -> tuple[Numbers, Numbers]:
        """The sums of the values minus a mean, ascending, with the shares of the subsets."""
        sums = self.sums - mean * self.sizes
        order = np.argsort(sums, kind="stable")
        return sums[order], self.shares[order]


@dataclass(frozen=True)
class _Subsets:
    """All subsets of the questions, as pairs of subsets of either half: 2 * 2^(n/2) numbers stand
    for 2^n. Equal differences are counted together.
    """

    first: _Half
    second: _Half

    @classmethod
    def of(cls, differences: Numbers) -> _Subsets:
        """Halve the questions so that both halves have about as many subsets."""
        values, numbers = np.unique(np.round(differences, _DIGITS), return_counts=True)
        counts = numbers.astype(np.float64)
        order = np.argsort(-counts, kind="stable")
        kinds = np.log(counts[order] + 1.0)
        half = sum(done < kinds.sum() / 2 for done in accumulate(kinds[:-1], initial=0.0))
        first, second = order[:half], order[half:]
        return cls(_Half.of(values[first], counts[first]), _Half.of(values[second], counts[second]))

    def share_below(self, mean: float) -> float:
        """Share of the subsets with a smaller mean, and half of those with this one."""
        left, shares = self.first.below(mean)
        right, others = self.second.below(mean)
        below = np.concatenate([[0.0], np.cumsum(shares)])
        ends = (np.searchsorted(left, end - right) for end in (-_ROUNDING, _ROUNDING))
        # Not `@`: threads of BLAS take most of the time of vectors as short as these.
        less, up_to = (float((below[places] * others).sum()) for places in ends)
        return min(1.0, (less + up_to) / 2)
