"""Student's t tests of means: differences with error, p and interval, and detectable effects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats.significance import ALPHA

Numbers: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-12
POWER = 0.8
"""Power: share of nights on which an effect of the detectable size is found."""
MOST_QUESTIONS = 100_000
"""Most questions that are tried."""


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A difference of means with its standard error and Student's degrees of freedom."""

    difference: float
    error: float
    freedom: float
    least: float = 0.0
    """Lower bound of p: the chance, without a change, of the signs with the largest drop."""

    @classmethod
    def paired(cls, differences: Numbers) -> MeanDifference:
        """The mean of at least two differences, one per question on both sides: a t test."""
        n = len(differences)
        error = float(differences.std(ddof=1)) / math.sqrt(n)
        return cls(float(differences.mean()), error, n - 1, 0.5**n)

    @classmethod
    def unpaired(cls, old: Numbers, new: Numbers) -> MeanDifference:
        """The mean of the old values minus that of the new, at least two of each.

            se^2 = max(v1/n1 + v2/n2, v (1/n1 + 1/n2)),   v the variance within both sides together

        with Welch's degrees of freedom. The second term applies if the smaller side has the smaller
        spread: 37 rows that are all 0 seem to have no error, and by Welch's test alone they are
        significantly worse (p = 0.0001) than 259 rows of which 13 are 1.
        """
        n, m = len(old), len(new)
        a, b = float(old.var(ddof=1)) / n, float(new.var(ddof=1)) / m
        freedom = float(min(n, m) - 1)
        if a + b > 0:
            share = a / (a + b)  # squares of the smallest numbers would be 0
            freedom = 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (m - 1))
        common = (a * n * (n - 1) + b * m * (m - 1)) / (n + m - 2)
        error = math.sqrt(max(a + b, common * (1 / n + 1 / m)))
        return cls(float(old.mean() - new.mean()), error, freedom, least_chance(n, m))

    @property
    def statistic(self) -> float:
        """The difference in standard errors; infinite if the error is 0."""
        if self.error < _ROUNDING:
            alike = abs(self.difference) < _ROUNDING
            return 0.0 if alike else math.copysign(math.inf, self.difference)
        return self.difference / self.error

    @property
    def p_value(self) -> float:
        """One-sided p against the hypothesis that the difference is not above 0."""
        chance = float(special.stdtr(self.freedom, -self.statistic))
        return min(max(chance, self.least), 1 - self.least)

    @property
    def p_two_sided(self) -> float:
        """Two-sided p against the hypothesis that there is no difference."""
        return min(1.0, 2 * min(self.p_value, 1 - self.p_value))

    def interval(self, confidence: float) -> tuple[float, float]:
        """The difference +/- t * se."""
        half = float(special.stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error
        return self.difference - half, self.difference + half


def least_chance(n: int, m: int) -> float:
    """Chance that m of n + m values are the lowest ones, if the sides do not differ."""
    return 1 / float(special.binom(n + m, m))


def detectable(
    error: float, freedom: float, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """Minimum detectable effect of a one-sided t test, in units of the score.

        (t_(1-alpha) + t_power) * se

    `error` is the standard error of the tested mean or difference, `freedom` its
    degrees of freedom. Source: Julious 2004, "Sample sizes for clinical trials with normal data".
    """
    quantiles = float(special.stdtrit(freedom, 1 - alpha)) + float(special.stdtrit(freedom, power))
    return quantiles * error


def error_of(mde: float, freedom: float) -> float:
    """The standard error of a `detectable` effect. An interval's width is no such error: it reaches
    further to the side of rare values.
    """
    return mde / detectable(1.0, freedom)


def smallest_enough(enough: Callable[[int], bool], fewest: int) -> int | None:
    """The smallest sufficient number from `fewest` on; `enough` must be monotonic.

    None if 100,000 are not enough.
    """
    if not enough(max(fewest, MOST_QUESTIONS)):
        return None
    low, high = fewest, max(fewest, MOST_QUESTIONS)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
