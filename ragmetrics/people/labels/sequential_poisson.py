"""A draw of any size with unequal chances: sequential Poisson sampling of uncertain rows.

The weight of a drawn row is 1 / its relative chance, so estimates that use it are not biased. A
larger draw only adds rows. A sample whose size is fixed is in `scoring.sampling.inclusion`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
FLOOR, MOST = 0.5, 3.0
"""Least and largest relative chance: a wrong signal can then do little harm."""


def relative_chances(signals: Sequence[ArrayLike], rows: int) -> Floats:
    """The chance of each row relative to a uniform draw; 1 on average.

        chance = 1/2 + 1/2 * mean of (signal / its own mean),   at most 3, then divided by its mean

    A signal is how uncertain each row is, at least 0; NaN counts as its mean. A signal that is the
    same for all rows says nothing. Without one the draw is uniform. In proportion to the standard
    deviation of what is estimated, a draw has the least error; the half that is uniform limits the
    loss where a signal is wrong. Source: Zrnic and Candès 2024, "Active statistical inference".
    """
    usable = [one for one in map(_relative, signals) if one is not None]
    if not usable:
        return np.ones(rows)
    chances = np.minimum(FLOOR + (1 - FLOOR) * np.mean(usable, axis=0), MOST)
    return np.asarray(chances / chances.mean())


def _relative(signal: ArrayLike) -> Floats | None:
    """The signal divided by its mean; None where it says nothing."""
    values = np.asarray(signal, dtype=np.float64)
    known = values[np.isfinite(values)]
    if not len(known) or float(np.ptp(known)) < 1e-9:
        return None
    mean = float(known.mean())
    return np.where(np.isfinite(values), values, mean) / mean


def draw_order(uniform: ArrayLike, chances: ArrayLike) -> NDArray[np.intp]:
    """The rows in the order in which they are drawn.

        row i comes before row j if  u_i / chance_i < u_j / chance_j

    `uniform` has one number in (0, 1) per row, which never changes. So the first rows are a draw of
    any size, in which the chance of a row is nearly in proportion to its relative one, and a larger
    draw only adds rows. Source: Ohlsson 1998, "Sequential Poisson sampling".
    """
    keys = np.asarray(uniform, dtype=np.float64) / np.asarray(chances, dtype=np.float64)
    return np.argsort(keys, kind="stable")
