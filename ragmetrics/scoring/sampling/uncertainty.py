"""The uncertainty of a row: how far the expensive judge's score may be from the cheap judge's.

It is estimated from the judged rows of earlier nights, in 20 bins of the cheap score. Each night
stores the moments of its bins in its manifest, so no score file of an earlier night is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.records import CheapBin
from ragmetrics.stats import Numbers

BINS = 20
FEWEST_PAIRS = 200
"""Judged rows of earlier nights below which no uncertainty is estimated."""
_PRIOR_ROWS = 30
"""Weight of the mean uncertainty in that of a bin, in rows."""


def bins_of(cheap: Numbers) -> NDArray[np.intp]:
    """The bin of each cheap score."""
    return np.clip(cheap * BINS, 0, BINS - 1).astype(np.intp)


def cheap_bins(cheap: Numbers, value: Numbers, weights: Numbers) -> list[CheapBin]:
    """The moments of judged rows with both scores, by bin. `weights` are 1 / pi."""
    bins, total = [], float(weights.sum())
    numbers = bins_of(cheap)
    for number in np.unique(numbers).tolist():
        there = numbers == number
        f, y, w = cheap[there], value[there], weights[there] / weights[there].sum()
        bins.append(
            CheapBin(
                bin=number,
                judged=int(there.sum()),
                share=float(weights[there].sum()) / total,
                cheap=float(w @ f),
                value=float(w @ y),
                cheap_squares=float(w @ f**2),
                value_squares=float(w @ y**2),
                products=float(w @ (f * y)),
            )
        )
    return bins


@dataclass(frozen=True)
class Uncertainty:
    """The uncertainty by bin of the cheap score."""

    by_bin: Numbers
    pooled: float
    """The uncertainty of a row without a cheap score: that of all rows together."""

    def of(self, cheap: Numbers) -> Numbers:
        """The uncertainty of rows with these cheap scores, NaN where there is none."""
        known = ~np.isnan(cheap)
        return np.where(known, self.by_bin[bins_of(np.where(known, cheap, 0.0))], self.pooled)


def fit_uncertainty(nights: Sequence[Sequence[CheapBin]]) -> Uncertainty | None:
    """Estimate the uncertainty from the bins of earlier nights.

        r_b^2 = (n_b E_b[e^2] + 30 E[e^2]) / (n_b + 30),   e = y - E[y] - lambda (f - E[f])
        lambda = cov(y, f) / var(f), at least 0

    as the estimate of the night uses f. E_b is the mean over the n_b judged rows of bin b, E over
    all rows. None for fewer than 200 judged rows, or if the cheap judge predicts all of them.
    """
    bins = [one for night in nights for one in night]
    if sum(one.judged for one in bins) < FEWEST_PAIRS:
        return None
    night_rows = [sum(one.judged for one in night) for night in nights]
    share = np.array(
        [one.share * rows for night, rows in zip(nights, night_rows, strict=True) for one in night]
    ) / sum(night_rows)
    f, y, ff, yy, fy = (
        np.array([getattr(one, name) for one in bins])
        for name in ("cheap", "value", "cheap_squares", "value_squares", "products")
    )
    mean_f, mean_y = float(share @ f), float(share @ y)
    variance = float(share @ ff) - mean_f**2
    slope = max(0.0, (float(share @ fy) - mean_f * mean_y) / variance) if variance > 1e-12 else 0.0
    start = mean_y - slope * mean_f
    squares = yy - 2 * start * y - 2 * slope * fy + 2 * start * slope * f + start**2 + slope**2 * ff
    squares = np.maximum(squares, 0.0)
    pooled = float(share @ squares)
    if pooled <= 1e-12:
        return None
    place, judged = np.array([one.bin for one in bins]), np.array([one.judged for one in bins])
    rows = np.bincount(place, judged, minlength=BINS)
    sums = np.bincount(place, judged * squares, minlength=BINS)
    by_bin = np.sqrt((sums + _PRIOR_ROWS * pooled) / (rows + _PRIOR_ROWS))
    return Uncertainty(by_bin, math.sqrt(pooled))
