"""Quantiles of the times of a night, with their intervals."""

from __future__ import annotations

import numpy as np
from scipy import special

from ragmetrics.records import Quantile
from ragmetrics.stats import CONFIDENCE, Numbers

SHARES = (0.5, 0.95, 0.99)


def quantiles(values: Numbers, shares: tuple[float, ...] = SHARES) -> list[Quantile]:
    """The quantiles of some values; empty without a value.

        low, high = x_(l), x_(u),   l, u: quantiles of Binomial(n, share) at either tail

    The intervals hold for any distribution of independent values. Where so few values say nothing
    of an end, it is the most extreme value.
    Source: David and Nagaraja 2003, "Order Statistics".
    """
    if not len(values):
        return []
    ordered, n, tail = np.sort(values), len(values), (1 - CONFIDENCE) / 2
    found = []
    for share in shares:
        below = special.bdtr(np.arange(n + 1), n, share)  # so many values are below it
        first, last = np.searchsorted(below, [tail, 1 - tail])
        low, high = ordered[max(0, first - 1)], ordered[min(n - 1, last)]
        value = float(np.quantile(ordered, share))
        found.append(Quantile(share=share, value=value, low=float(low), high=float(high)))
    return found
