"""Krippendorff's alpha: agreement of any number of raters."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragmetrics.stats.resampling import Statistic, midranks, ratio, totals, unweighted
from ragmetrics.stats.t_test import Numbers

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float | None:
    """Agreement of any number of raters beyond chance, with gaps allowed.

        alpha = 1 - observed disagreement / expected disagreement

    `ratings` has a row per rater and a column per unit, NaN for a missing rating; units with
    less than two ratings are ignored. Values differ or not (nominal), differ
    by the ranks between them (ordinal), or by the square of their difference (interval).
    At most 1, and 0 for the agreement of chance. No unit with two ratings, or one value only:
    None. Source: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
    """
    return unweighted(alpha_statistic(ratings, level), np.atleast_2d(ratings).shape[1])


def alpha_statistic(ratings: ArrayLike, level: Level = "nominal") -> Statistic:
    """Krippendorff's alpha as a statistic for resampling."""
    table = np.atleast_2d(np.asarray(ratings, dtype=np.float64))
    # Units with equal ratings are one pattern with a count.
    patterns, place = np.unique(np.nan_to_num(table, nan=np.inf), axis=1, return_inverse=True)
    by_pattern = totals(place.ravel(), patterns.shape[1])
    rated = np.isfinite(patterns)
    rated &= rated.sum(0) >= 2
    values = np.where(rated, patterns, 0.0)
    alpha = _nominal(values, rated) if level == "nominal" else _by_distance(values, rated, level)
    return lambda counts: alpha(by_pattern(counts))


def _by_distance(values: Numbers, rated: NDArray[np.bool_], level: Level) -> Statistic:
    raters, others = _raters(rated)
    rank = midranks(values.ravel())

    def statistic(counts: Numbers) -> Numbers:
        times = counts[:, None, :] * rated
        x = rank(times.reshape(len(counts), -1)).reshape(times.shape)
        x = x if level == "ordinal" else values[None]
        n = counts @ raters
        centre = ratio((times * x).sum((1, 2)), n)
        x = np.where(rated, x - centre[:, None, None], 0.0)
        # Sum of (x - y)^2 over ordered pairs: 2 (m sum x^2 - (sum x)^2).
        within = 2 * (raters * np.square(x).sum(1) - np.square(x.sum(1))) / others
        between = 2 * n * (times * np.square(x)).sum((1, 2))
        return 1.0 - ratio((n - 1) * (counts * within).sum(1), between)

    return statistic


def _nominal(values: Numbers, rated: NDArray[np.bool_]) -> Statistic:
    raters, others = _raters(rated)
    distinct = np.unique(values[rated])
    chosen = ((values == distinct[:, None, None]) & rated).sum(1)
    within = (np.square(raters) - np.square(chosen).sum(0)) / others

    def statistic(counts: Numbers) -> Numbers:
        n = counts @ raters
        between = np.square(n) - np.square(counts @ chosen.T).sum(1)
        return 1.0 - ratio((n - 1) * (counts @ within), between)

    return statistic


def _raters(rated: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    raters = rated.sum(0).astype(np.float64)
    return raters, np.maximum(raters - 1, 1)
