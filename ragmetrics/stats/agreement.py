"""Figures of verdicts beside labels: agreement, quality of the ranking, and reliability.

A statistic for resampling is NaN where it is undefined, as for one class only; the figure itself is
then None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragmetrics.stats.intervals import mean_interval
from ragmetrics.stats.resampling import (
    Floats,
    Statistic,
    indicators,
    midranks,
    pair,
    ratio,
    totals,
    unweighted,
)

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
BINS = 10


def kappa_statistic(
    a: ArrayLike, b: ArrayLike, weights: Literal["quadratic"] | None = None
) -> Statistic:
    """Agreement of two raters beyond chance, as a statistic for resampling.

        kappa = 1 - sum(w * observed) / sum(w * expected)
        w = [i != j], or (i - j)^2 with quadratic weights, where i and j are the values

    At most 1, and 0 for the agreement of chance; undefined for one value only on both sides.
    Sources: Cohen 1960; Cohen 1968.
    """
    x, y = pair(a, b)
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    size, row, column = len(values), codes[: len(x)], codes[len(x) :]
    cells = indicators(row * size + column, size * size)
    apart = np.square(values[:, None] - values) if weights else 1.0 - np.eye(size)

    def statistic(counts: Floats) -> Floats:
        tables = (counts @ cells).reshape(-1, size, size)
        n = tables.sum((1, 2))
        chance = tables.sum(2)[:, :, None] * tables.sum(1)[:, None, :]
        observed, expected = (tables * apart).sum((1, 2)), (chance * apart).sum((1, 2))
        return 1.0 - ratio(observed * n, expected)

    return statistic


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


def _by_distance(values: Floats, rated: NDArray[np.bool_], level: Level) -> Statistic:
    raters, others = _raters(rated)
    rank = midranks(values.ravel())

    def statistic(counts: Floats) -> Floats:
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


def _nominal(values: Floats, rated: NDArray[np.bool_]) -> Statistic:
    raters, others = _raters(rated)
    distinct = np.unique(values[rated])
    chosen = ((values == distinct[:, None, None]) & rated).sum(1)
    within = (np.square(raters) - np.square(chosen).sum(0)) / others

    def statistic(counts: Floats) -> Floats:
        n = counts @ raters
        between = np.square(n) - np.square(counts @ chosen.T).sum(1)
        return 1.0 - ratio((n - 1) * (counts @ within), between)

    return statistic


def _raters(rated: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    raters = rated.sum(0).astype(np.float64)
    return raters, np.maximum(raters - 1, 1)


def confusion(labels: ArrayLike, verdicts: ArrayLike) -> dict[float, dict[float, int]]:
    """How often each verdict met each label: `{label: {verdict: units}}`, in ascending order."""
    x, y = pair(labels, verdicts)
    seen = np.unique(y).tolist()
    return {
        label: {verdict: int(((x == label) & (y == verdict)).sum()) for verdict in seen}
        for label in np.unique(x).tolist()
    }


def pearson_statistic(a: ArrayLike, b: ArrayLike) -> Statistic:
    """Pearson's correlation, in [-1, 1], as a statistic for resampling.

    Undefined where one side is constant.
    """
    sides = pair(a, b)

    def statistic(counts: Floats) -> Floats:
        n = counts.sum(1)
        x, y = (side - ratio(counts @ side, n)[:, None] for side in sides)
        spread = np.sqrt((counts * x * x).sum(1) * (counts * y * y).sum(1))
        return ratio((counts * x * y).sum(1), spread)

    return statistic


def spearman_statistic(a: ArrayLike, b: ArrayLike) -> Statistic:
    """Rank correlation with midranks for ties, in [-1, 1], as a statistic for resampling."""
    ranks = [midranks(side) for side in pair(a, b)]

    def statistic(counts: Floats) -> Floats:
        n = counts.sum(1, keepdims=True)
        x, y = (rank(counts) - (n + 1) / 2 for rank in ranks)
        spread = np.sqrt((counts * x * x).sum(1) * (counts * y * y).sum(1))
        return ratio((counts * x * y).sum(1), spread)

    return statistic


def auc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Chance that a positive unit scores above a negative one, ties counting half.

    `labels` are true or 1 for positive units. Range [0, 1], 0.5 for random scores.
    Units of one class only: None. Source: Mann and Whitney 1947; Hanley and McNeil 1982.
    """
    return unweighted(auc_statistic(labels, scores), np.size(labels))


def auc_statistic(labels: ArrayLike, scores: ArrayLike) -> Statistic:
    """The pooled AUC as a statistic for resampling."""
    positive, x = pair(labels, scores)
    rank = midranks(x)

    def statistic(counts: Floats) -> Floats:
        good = counts @ positive
        pairs = good * (counts.sum(1) - good)
        above = (counts * positive * rank(counts)).sum(1) - good * (good + 1) / 2
        return ratio(above, pairs)

    return statistic


def auc_within_statistic(
    groups: Sequence[str] | ArrayLike, labels: ArrayLike, scores: ArrayLike
) -> Statistic:
    """Mean over the groups (rows) of their own AUC, as a statistic for resampling.

    It measures the ranking within a row, independent of the difficulty of the row. Rows have equal
    weights for any number of pairs; their units are drawn together. Rows of one class only have no
    AUC and are left out.
    """
    positive, x = pair(labels, scores)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    rows = np.split(order, np.flatnonzero(np.diff(codes)) + 1) if len(order) else []
    found = [(row[0], auc(positive[row], x[row])) for row in rows]
    first = np.array([unit for unit, area in found if area is not None], dtype=np.int_)
    areas = np.array([area for _, area in found if area is not None])

    def statistic(counts: Floats) -> Floats:
        times = counts[:, first]
        return ratio(times @ areas, times.sum(1))

    return statistic


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
