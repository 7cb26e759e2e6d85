"""Contrasts: how far apart two means are, as far as chance allows to tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

Numbers: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """A difference of means with its standard error and Student's degrees of freedom."""

    difference: float
    error: float
    freedom: float
    least: float = 0.0
    """Chance, where nothing changed, of the signs (sides) that speak most for a drop: p is not
    below it."""

    @property
    def statistic(self) -> float:
        """The difference in standard errors; infinite where it has no error."""
        if self.error < _ROUNDING:
            return (
                0.0
                if abs(self.difference) < _ROUNDING
                else math.copysign(math.inf, self.difference)
            )
        return self.difference / self.error

    @property
    def p_value(self) -> float:
        """One-sided, against the hypothesis that the difference is not above 0."""
        found = float(special.stdtr(self.freedom, -self.statistic))
        return min(max(found, self.least), 1 - self.least)

    @property
    def p_two_sided(self) -> float:
        """Against the hypothesis that there is no difference."""
        return min(1.0, 2 * min(self.p_value, 1 - self.p_value))

    def interval(self, confidence: float) -> tuple[float, float]:
        """The difference +/- t * se."""
        half = float(special.stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error
        return self.difference - half, self.difference + half


def paired_contrast(differences: Numbers) -> MeanDifference:
    """The mean of at least two differences, one for each question on both sides: a t test."""
    n = len(differences)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    return MeanDifference(float(differences.mean()), error, n - 1, 0.5**n)


def unpaired_contrast(old: Numbers, new: Numbers) -> MeanDifference:
    """How far the mean of the old values is above that of the new, at least two of each.

        se^2 = max(v1/n1 + v2/n2, v (1/n1 + 1/n2)),   v the variance within both sides together

    with Welch's degrees of freedom. The second term counts where the smaller side has the smaller
    spread: 37 rows that are all 0 seem to have no error of their own, and by Welch's test alone
    are surely worse (p = 0.0001) than 259 rows of which 13 are 1.
    """
    n, m = len(old), len(new)
    a, b = float(old.var(ddof=1)) / n, float(new.var(ddof=1)) / m
    freedom = float(min(n, m) - 1)
    if a + b > 0:
        share = a / (a + b)  # squares of the smallest numbers would be 0
        freedom = 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (m - 1))
    common = (a * n * (n - 1) + b * m * (m - 1)) / (n + m - 2)
    error = math.sqrt(max(a + b, common * (1 / n + 1 / m)))
    return MeanDifference(float(old.mean() - new.mean()), error, freedom, least_chance(n, m))


def least_chance(n: int, m: int) -> float:
    """How often m of n + m values are the lowest ones, where the sides are alike."""
    return 1 / float(special.binom(n + m, m))
