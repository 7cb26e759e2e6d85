"""The interval of a paired drop, valid if few or no questions moved."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from ragmetrics.stats.intervals import ALIKE
from ragmetrics.stats.mean_difference import Numbers

_HALVINGS = 40
"""Iterations for 12 digits of a bound in [-1, 1]."""


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
