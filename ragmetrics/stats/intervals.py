"""The interval of a mean over rows, clustered by question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its interval; `low` and `high` are None where the data cannot tell."""

    mean: float
    low: float | None
    high: float | None
    n: int
    clusters: int
    error: float | None
    """Standard error of the mean."""


def mean_interval(
    values: Sequence[float] | NDArray[np.float64],
    clusters: Sequence[str] | NDArray[np.str_],
    *,
    confidence: float = CONFIDENCE,
) -> Mean | None:
    """Mean of the values and its interval; rows of one cluster need not be independent.

        m = sum_i x_i / n
        se^2 = G/(G-1) * sum_g (sum_{i in g} (x_i - m))^2 / n^2,   t with G - 1 degrees of freedom

    For values in [0, 1] the interval is Wilson's with n_eff = m(1-m)/se^2, so that it stays in
    [0, 1] and does not vanish where all values are equal. For others it is m +/- t * se.
    No value: None. One cluster: a mean without an interval.
    Sources: Miller 2024, "Adding error bars to evals"; Wilson 1927; Korn and Graubard 1998.
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        return None
    _, index = np.unique(np.asarray(clusters), return_inverse=True)
    groups = int(index.max()) + 1
    mean = float(x.mean())
    if groups < 2:
        return Mean(mean, None, None, len(x), groups, None)
    sums = np.bincount(index, weights=x - mean, minlength=groups)
    error = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum())) / len(x)
    t = float(special.stdtrit(groups - 1, 0.5 + confidence / 2))
    if x.min() >= 0 and x.max() <= 1:
        low, high = _wilson(mean, error, groups, t)
    else:
        low, high = mean - t * error, mean + t * error
    return Mean(mean, low, high, len(x), groups, error)


def _wilson(mean: float, error: float, groups: int, t: float) -> tuple[float, float]:
    spread = mean * (1 - mean)
    n = spread / error**2 if error > 1e-9 and spread > 0 else float(groups)
    centre = (mean + t * t / (2 * n)) / (1 + t * t / n)
    half = t / (1 + t * t / n) * math.sqrt(spread / n + t * t / (4 * n * n))
    # Rounding must not push the interval off the mean at 0 and 1.
    return max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half))
