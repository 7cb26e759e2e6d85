"""Quality of a ranking: the area under the ROC curve, pooled and within rows, and Spearman.

An undefined statistic, as for one class only, is None, never NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ragmetrics.stats.resampling import Floats, Statistic, midranks, pair, ratio, unweighted


def spearman(a: ArrayLike, b: ArrayLike) -> float | None:
    """Rank correlation with midranks for ties, in [-1, 1]; None if a side is constant."""
    return unweighted(spearman_statistic(a, b), np.size(a))


def spearman_statistic(a: ArrayLike, b: ArrayLike) -> Statistic:
    """Spearman's correlation as a statistic for resampling."""
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


def auc_within(
    groups: Sequence[str] | ArrayLike, labels: ArrayLike, scores: ArrayLike
) -> float | None:
    """Mean over the groups (rows) of their own AUC.

    It measures the ranking within a row, independent of the difficulty of the row. Rows have equal
    weights for any number of pairs. Rows of one class only have no AUC and are left out. No row
    left: None.
    """
    return unweighted(auc_within_statistic(groups, labels, scores), np.size(labels))


def auc_within_statistic(
    groups: Sequence[str] | ArrayLike, labels: ArrayLike, scores: ArrayLike
) -> Statistic:
    """The AUC within rows as a statistic for resampling; units of a row are drawn together."""
    positive, x = pair(labels, scores)
    order = np.argsort(np.unique(np.asarray(groups), return_inverse=True)[1], kind="stable")
    codes = np.unique(np.asarray(groups), return_inverse=True)[1][order]
    rows = np.split(order, np.flatnonzero(np.diff(codes)) + 1) if len(order) else []
    found = [(row[0], auc(positive[row], x[row])) for row in rows]
    first = np.array([unit for unit, area in found if area is not None], dtype=np.int_)
    areas = np.array([area for _, area in found if area is not None])

    def statistic(counts: Floats) -> Floats:
        times = counts[:, first]
        return ratio(times @ areas, times.sum(1))

    return statistic
