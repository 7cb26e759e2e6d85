"""Krippendorff's alpha: agreement of any number of raters."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ragmetrics.stats.resampling import Statistic, midranks, ratio, totals, unweighted
from ragmetrics.stats.t_test import Numbers

Level: TypeAlias = Literal["ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, level: Level) -> float | None:
    """Agreement of any number of raters beyond chance, with gaps allowed.

        alpha = 1 - observed disagreement / expected disagreement

    `ratings` has a row per rater and a column per unit, NaN for a missing rating; units with
    less than two ratings are ignored. Values differ by the ranks between them (ordinal), or by
    the square of their difference (interval).
    At most 1, and 0 for the agreement of chance. No unit with two ratings, or one value only:
    None. Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    return unweighted(alpha_statistic(ratings, level), np.atleast_2d(ratings).shape[1])


def alpha_statistic(ratings: ArrayLike, level: Level) -> Statistic:
    """Krippendorff's alpha as a statistic for resampling."""
    table = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    # Units with equal ratings are one pattern with a count.
    patterns, place = np.unique(np.nan_to_num(table, nan=np.inf), axis=1, return_inverse=True)
    by_pattern = totals(place.ravel(), patterns.shape[1])
    rated = np.isfinite(patterns)
    rated &= rated.sum(0) >= 2
    values = np.where(rated, patterns, 0.0)
    raters = rated.sum(0).astype(np.float64)
    others = np.maximum(raters - 1, 1)
    rank = midranks(values.ravel())

    def statistic(units: Numbers) -> Numbers:
        counts = by_pattern(units)
        times = counts[:, None, :] * rated
        ranked = level == "ordinal"
        x = rank(times.reshape(len(counts), -1)).reshape(times.shape) if ranked else values[None]
        n = counts @ raters
        centre = ratio((times * x).sum((1, 2)), n)
        x = np.where(rated, x - centre[:, None, None], 0.0)
        # Sum of (x - y)^2 over ordered pairs: 2 (m sum x^2 - (sum x)^2).
        within = 2 * (raters * np.square(x).sum(1) - np.square(x.sum(1))) / others
        between = 2 * n * (times * np.square(x)).sum((1, 2))
        return 1.0 - ratio((n - 1) * (counts * within).sum(1), between)

    return statistic
