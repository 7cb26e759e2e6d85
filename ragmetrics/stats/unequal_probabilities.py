"""Sampling with unequal probabilities: inclusion probabilities by uncertainty, and the draw.

Rows whose score a cheap judge predicts badly are drawn more often. The estimate weighs each drawn
row by 1 / pi (`prediction_powered`), so the probabilities change its error and not its expectation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FLOOR = 0.5
"""Part of each inclusion probability that is equal for all rows. The standard error of a mean is
at most sqrt(1 / FLOOR) times that of equal probabilities, however wrong the uncertainties are."""

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
_HIGHEST = 1 - 2.0**-53


def relative_probabilities(uncertainty: ArrayLike, floor: float = FLOOR) -> Floats:
    """Inclusion probabilities up to a factor; their mean is 1.

        p_i = floor + (1 - floor) * r_i / mean(r)

    `uncertainty` is the expected error r_i of the cheap judge in row i: the standard deviation of
    y - lambda f. Probabilities in proportion to it give the least variance of the mean (Särndal,
    Swensson and Wretman 1992, chapter 12.2); the floor bounds the loss where it is wrong.
    No uncertainty at all: equal probabilities.
    """
    r = np.asarray(uncertainty, dtype=np.float64)
    total = math.fsum(r.tolist())  # exact, so it does not depend on the order of the rows
    if total <= 0:
        return np.ones(len(r))
    return floor + (1 - floor) * r * (len(r) / total)


def inclusion_probabilities(relative: ArrayLike, size: int) -> Floats:
    """The inclusion probabilities of a sample of `size` rows.

        pi_i = min(1, c * p_i),   sum_i pi_i = size

    `relative` are the positive p_i. All rows where size is at least their number.
    """
    p = np.asarray(relative, dtype=np.float64)
    found = np.ones(len(p))
    open_ = np.ones(len(p), dtype=bool)
    while size < len(p) and open_.any():
        factor = (size - int((~open_).sum())) / math.fsum(p[open_].tolist())
        found[open_] = factor * p[open_]
        certain = open_ & (found >= 1)
        if not certain.any():
            break
        found[certain] = 1.0
        open_ &= ~certain
    return found


def order_sample(keys: Keys, probabilities: Floats, size: int) -> NDArray[np.intp]:
    """Draw `size` rows by their permanent random keys: Pareto sampling.

        u_i = key_i / 2^64,   the rows with the smallest  u_i (1 - pi_i) / ((1 - u_i) pi_i)

    The size is fixed, the true inclusion probabilities are pi_i up to terms of order 1 / size. With
    equal probabilities these are the rows with the lowest keys. A row stays in the sample while its
    probability does not fall, whatever other rows there are, up to the last rows to get in.
    Source: Rosén 1997, "On sampling with probability proportional to size".
    """
    u = np.minimum((keys.astype(np.float64) + 0.5) / 2.0**64, _HIGHEST)
    ranks = u / (1 - u) * ((1 - probabilities) / probabilities)
    found: NDArray[np.intp] = np.lexsort((keys, ranks))[:size]
    return found


def uniform_part(keys: Keys, drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The part of a sample that is a sample with equal probabilities.

    These are the rows whose keys are lower than that of every row that was not drawn. A row's
    uncertainty has no part in whether it is one of them.
    """
    found = drawn.copy()
    if not drawn.all():
        found &= keys < keys[~drawn].min()
    return found


def variance_ratio(uncertainty: ArrayLike, probabilities: Floats) -> float:
    """Expected variance of a mean, compared with a sample of the same size and equal probabilities.

        sum_i r_i^2 / pi_i * n / (N sum_i r_i^2),   n = sum_i pi_i

    1 without any uncertainty.
    """
    squares = np.square(np.asarray(uncertainty, dtype=np.float64))
    total = math.fsum(squares.tolist())
    if total <= 0:
        return 1.0
    size = math.fsum(probabilities.tolist())
    return math.fsum((squares / probabilities).tolist()) * size / (len(squares) * total)
