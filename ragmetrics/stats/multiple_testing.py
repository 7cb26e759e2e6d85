"""Adjusts the p values of many tests for multiple testing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """The p values of one family after Benjamini and Hochberg, in their order.

        q_(i) = min over j >= i of p_(j) * m / j, at most 1,   p_(1) <= ... <= p_(m)

    Rejecting those below a level controls the false discovery rate at this level. If all null
    hypotheses are true, the chance of any rejection is at most the level. This holds for tests
    that are independent or positively dependent. No p value: none.
    Source: Benjamini and Hochberg 1995. As `scipy.stats.false_discovery_control`, whose import
    takes most of a second.
    """
    chances = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(chances)
    scaled = chances[order] * len(chances) / np.arange(1, len(chances) + 1)
    found = np.empty_like(chances)
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return [float(chance) for chance in found]
