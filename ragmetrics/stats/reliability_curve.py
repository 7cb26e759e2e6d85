"""Reliability curve: whether units with a score of 0.8 are right in 8 of 10 cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ragmetrics.stats.intervals import mean_interval
from ragmetrics.stats.resampling import pair

BINS = 10


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Units with scores in one bin: mean score and observed share."""

    low: float
    high: float
    n: int
    judged: float
    """Mean score."""
    observed: float
    """Share of positive labels."""
    observed_low: float | None
    observed_high: float | None


@dataclass(frozen=True, slots=True)
class Reliability:
    """The bins with units, and the calibration error."""

    bins: tuple[CalibrationBin, ...]
    error: float
    """Expected calibration error: mean of |observed - judged|, weighted by units."""


def reliability(
    labels: ArrayLike, scores: ArrayLike, groups: Sequence[str] | ArrayLike, *, bins: int = BINS
) -> Reliability | None:
    """Observed share of positive labels by equal bins of the score.

        ECE = sum_b n_b / n * |observed_b - judged_b|

    The intervals of the shares are Wilson's, clustered by group (`mean_interval`). No unit, or
    scores outside [0, 1]: None.
    Sources: Wilson 1927; Naeini, Cooper and Hauskrecht 2015.
    """
    positive, x = pair(labels, scores)
    if not len(x) or x.min() < 0 or x.max() > 1:
        return None
    names = np.asarray(groups)
    place = np.minimum((x * bins).astype(int), bins - 1)
    found = []
    for number in np.unique(place).tolist():
        inside = place == number
        share = mean_interval(positive[inside], names[inside])
        if share is not None:
            edges = number / bins, (number + 1) / bins
            judged = float(x[inside].mean())
            found.append(CalibrationBin(*edges, share.n, judged, share.mean, share.low, share.high))
    error = sum(one.n * abs(one.observed - one.judged) for one in found) / len(x)
    return Reliability(tuple(found), error)
