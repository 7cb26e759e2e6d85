"""A sample of a fixed size with unequal probabilities: inclusion probabilities, and the draw.

Rows whose score a cheap judge predicts badly are drawn more often. The estimate weighs each drawn
row by 1 / pi (`prediction_powered`), so the probabilities change its error and not its expectation.
A draw of any size is in `sequential_poisson`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_LOSS = 0.02
"""Share by which the variance may grow if the uncertainties say nothing tonight."""
_HALVINGS = 60
Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]
_HIGHEST = 1 - 2.0**-53


def relative_probabilities(uncertainty: ArrayLike, most_loss: float = MOST_LOSS) -> Floats:
    """Inclusion probabilities up to a factor; their mean is 1.

        p_i = sqrt(r_i^2 + kappa) / mean(sqrt(r^2 + kappa)),   mean(1 / p) <= 1 + most_loss

    `uncertainty` is the expected error r_i of the cheap judge in row i: the standard deviation of
    y - lambda f. Of all p, these have the least expected variance mean(r^2 / p) of the estimated
    mean under the bound. kappa is the smallest that keeps the bound: mean(1 / p) is the variance,
    compared with equal probabilities, if all rows turn out to be equally uncertain. In no case is
    it above 1 / min(p). No uncertainty at all: equal probabilities.
    Sources: Särndal, Swensson and Wretman 1992, chapter 12.2, and Zrnic and Candès 2024 for p in
    proportion to r; the bound is ours.
    """
    squares = np.square(np.asarray(uncertainty, dtype=np.float64))
    values, place, counts = np.unique(squares, return_inverse=True, return_counts=True)
    if len(values) < 2:
        return np.ones(len(squares))

    def by_value(kappa: float) -> Floats:
        roots = np.sqrt(values + kappa)
        scaled: Floats = roots * (counts.sum() / (counts @ roots))
        return scaled

    low, high = 0.0, float(values[-1]) / most_loss
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        loss = float(counts @ (1 / by_value(middle))) / len(squares) - 1
        low, high = (middle, high) if loss > most_loss else (low, middle)
    return by_value(high)[place]


def inclusion_probabilities(relative: ArrayLike, size: int) -> Floats:
    """The inclusion probabilities of a sample of `size` rows.

        pi_i = min(1, c * p_i),   sum_i pi_i = size

    `relative` are the positive p_i. All rows where size is at least their number.
    """
    p = np.asarray(relative, dtype=np.float64)
    chances = np.ones(len(p))
    open_ = np.ones(len(p), dtype=bool)
    while size < len(p) and open_.any():
        factor = (size - int((~open_).sum())) / math.fsum(p[open_].tolist())
        chances[open_] = factor * p[open_]
        certain = open_ & (chances >= 1)
        if not certain.any():
            break
        chances[certain] = 1.0
        open_ &= ~certain
    return chances


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
    places: NDArray[np.intp] = np.lexsort((keys, ranks))[:size]
    return places


def uniform_part(keys: Keys, drawn: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The part of a sample that is a sample with equal probabilities.

    These are the rows whose keys are lower than that of every row that was not drawn. A row's
    uncertainty has no part in whether it is one of them.
    """
    uniform = drawn.copy()
    if not drawn.all():
        uniform &= keys < keys[~drawn].min()
    return uniform


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
