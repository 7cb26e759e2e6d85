"""Figures of verdicts beside labels: agreement, quality of the ranking, and reliability.

A statistic for resampling is NaN where it is undefined, as for one class only; the figure itself is
then None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ragmetrics.records import ReliabilityBin
from ragmetrics.stats import Numbers, Statistic, mean_interval, midranks, ratio

BINS = 10
_FEWEST_IN_BIN = 20


def kappa_statistic(
    a: ArrayLike, b: ArrayLike, weights: Literal["quadratic"] | None = None
) -> Statistic:
    """Agreement of two raters beyond chance, as a statistic for resampling.

        kappa = 1 - sum(w * observed) / sum(w * expected)
        w = [i != j], or (i - j)^2 with quadratic weights, where i and j are the values

    At most 1, and 0 for the agreement of chance; undefined for one value only on both sides.
    Sources: Cohen 1960; Cohen 1968.
    """
    x, y = _pair(a, b)
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    size, row, column = len(values), codes[: len(x)], codes[len(x) :]
    cells = np.eye(size * size)[row * size + column]
    apart = np.square(values[:, None] - values) if weights else 1.0 - np.eye(size)

    def statistic(counts: Numbers) -> Numbers:
        tables = (counts @ cells).reshape(-1, size, size)
        n = tables.sum((1, 2))
        chance = tables.sum(2)[:, :, None] * tables.sum(1)[:, None, :]
        observed, expected = (tables * apart).sum((1, 2)), (chance * apart).sum((1, 2))
        return 1.0 - ratio(observed * n, expected)

    return statistic


def confusion(labels: ArrayLike, verdicts: ArrayLike) -> dict[float, dict[float, int]]:
    """How often each verdict met each label: `{label: {verdict: units}}`, in ascending order."""
    x, y = _pair(labels, verdicts)
    seen = np.unique(y).tolist()
    return {
        label: {verdict: int(((x == label) & (y == verdict)).sum()) for verdict in seen}
        for label in np.unique(x).tolist()
    }


def pearson_statistic(a: ArrayLike, b: ArrayLike) -> Statistic:
    """Pearson's correlation, in [-1, 1], as a statistic for resampling.

    Undefined where one side is constant.
    """
    sides = _pair(a, b)

    def statistic(counts: Numbers) -> Numbers:
        n = counts.sum(1)
        x, y = (side - ratio(counts @ side, n)[:, None] for side in sides)
        spread = np.sqrt((counts * x * x).sum(1) * (counts * y * y).sum(1))
        return ratio((counts * x * y).sum(1), spread)

    return statistic


def spearman_statistic(a: ArrayLike, b: ArrayLike) -> Statistic:
    """Rank correlation with midranks for ties, in [-1, 1], as a statistic for resampling."""
    ranks = [midranks(side) for side in _pair(a, b)]

    def statistic(counts: Numbers) -> Numbers:
        n = counts.sum(1, keepdims=True)
        x, y = (rank(counts) - (n + 1) / 2 for rank in ranks)
        spread = np.sqrt((counts * x * x).sum(1) * (counts * y * y).sum(1))
        return ratio((counts * x * y).sum(1), spread)

    return statistic


def auc_statistic(labels: ArrayLike, scores: ArrayLike) -> Statistic:
    """The AUC as a statistic for resampling.

    It is the chance that a positive unit (of label 1) scores above a negative one, ties counting
    half. Range [0, 1], 0.5 for random scores; undefined for units of one class only.
    Source: Mann and Whitney 1947; Hanley and McNeil 1982.
    """
    positive, x = _pair(labels, scores)
    rank = midranks(x)

    def statistic(counts: Numbers) -> Numbers:
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
    positive, x = _pair(labels, scores)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    rows = np.split(order, np.flatnonzero(np.diff(codes)) + 1) if len(order) else []
    areas = np.array(
        [auc_statistic(positive[row], x[row])(np.ones((1, len(row))))[0] for row in rows]
    )
    of_both = np.isfinite(areas)
    first = np.array([row[0] for row in rows], dtype=np.int_)[of_both]
    areas = areas[of_both]

    def statistic(counts: Numbers) -> Numbers:
        times = counts[:, first]
        return ratio(times @ areas, times.sum(1))

    return statistic


def calibration_error_statistic(
    labels: ArrayLike, scores: ArrayLike, *, by_chance: bool = False
) -> Statistic:
    """The expected calibration error, in [0, 1], as a statistic for resampling.

        ECE = sum_b |sum over bin b of (label - score)| / n

    Bins have about equally many units: ten, but at least 20 units each. Equal scores are in one
    bin. Without a unit it is undefined. Chance alone makes it positive, of right probabilities too:
    by about 0.03 for 900 units and 0.07 for 200. With `by_chance` it is the error of resamples from
    right probabilities: of how far the sum of each bin is from the sum over all units.
    Sources: Naeini, Cooper and Hauskrecht 2015; equal mass and the bias as in Roelofs et al. 2022;
    its correction as in Kumar, Liang and Ma 2019, by a bootstrap of whole questions.
    """
    observed, x = _pair(labels, scores)
    bins = min(BINS, max(1, len(x) // _FEWEST_IN_BIN))
    ranks = midranks(x)(np.ones((1, len(x))))[0] if len(x) else x
    place = np.minimum((ranks - 0.5) * bins // max(1, len(x)), bins - 1).astype(int)
    apart = np.eye(bins)[place] * (observed - x)[:, None]
    expected = apart.sum(0) if by_chance else 0.0
    return lambda counts: ratio(np.abs(counts @ apart - expected).sum(1), counts.sum(1))


def reliability(
    labels: ArrayLike, scores: ArrayLike, groups: Sequence[str] | ArrayLike
) -> tuple[list[ReliabilityBin], float | None]:
    """The observed share of positive labels by equal bins of the score, and the calibration error.

        ECE = sum_b n_b / n * |observed_b - judged_b|

    The intervals of the shares are Wilson's, clustered by group (`mean_interval`). No unit, or
    scores outside [0, 1]: no bin, and no error.
    Sources: Wilson 1927; Naeini, Cooper and Hauskrecht 2015.
    """
    positive, x = _pair(labels, scores)
    if not len(x) or x.min() < 0 or x.max() > 1:
        return [], None
    names = np.asarray(groups)
    place = np.minimum((x * BINS).astype(int), BINS - 1)
    bins = []
    for number in np.unique(place).tolist():
        inside = place == number
        if share := mean_interval(positive[inside], names[inside]):
            bins.append(
                ReliabilityBin(
                    low=number / BINS,
                    high=(number + 1) / BINS,
                    n=share.n,
                    judged=float(x[inside].mean()),
                    observed=share.mean,
                    observed_low=share.low,
                    observed_high=share.high,
                )
            )
    return bins, sum(bar.n * abs(bar.observed - bar.judged) for bar in bins) / len(x)


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Numbers, Numbers]:
    """Two lists as arrays. Raises ValueError unless they have one length."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"two lists must have one length, not {x.shape} and {y.shape}")
    return x, y
