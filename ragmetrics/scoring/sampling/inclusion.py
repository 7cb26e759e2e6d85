"""Which rows of a group of metrics are drawn: with equal chances, or by uncertainty.

    p_i = 1                                          uniform
    p_i = sqrt(r_i^2 + kappa) / its mean             active, r_i the uncertainty of row i
    pi_i = min(1, c_h * p_i)                         sums to the rows drawn of stratum h

Rows whose score a cheap judge predicts badly are drawn more often. The estimate weighs each drawn
row by 1 / pi (`prediction_powered`), so the probabilities change its error and not its expectation.
Strata get rows in proportion to the sum of p. For metrics that share a sample, r_i^2 is the mean of
their squared uncertainties, each divided by its mean. A draw of any size is in
`people.labels.row_draw`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragmetrics.scoring.sampling.prediction_powered import FEWEST_OF_A_STRATUM, allocate
from ragmetrics.stats import Numbers

ROWS_A_STRATUM = 10
"""There is at most one stratum per so many judged rows. The smallest strata are merged."""
LEAST_GAIN = 0.02
"""Share of the variance that active sampling must be expected to save, else it is not used."""
MOST_LOSS = 0.02
"""Share by which the variance may grow: of a mean if the uncertainties say nothing tonight, and as
expected of one of several metrics with one sample."""
_NO_PAIRS = "too few rows of earlier nights were scored by both judges"
_NO_GAIN = "the nights before show that other chances would not narrow the interval"
_HALVINGS = 60
_HIGHEST = 1 - 2.0**-53

Keys = NDArray[np.uint64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Design:
    """How the rows of a group are drawn."""

    relative: Numbers | None = None
    """Inclusion probabilities up to a factor; None: equal chances."""
    uncertain: Sequence[Numbers | None] = (None,)
    """The uncertainty of the rows by each metric; None: the same for all rows."""
    uniform: str = ""
    """Why rows have equal chances."""

    def ratios(self, size: int) -> list[float]:
        """Expected variance of each metric's mean, compared with equal chances."""
        if self.relative is None:
            return [1.0] * len(self.uncertain)
        chances = inclusion_probabilities(self.relative, size)
        flat = np.ones(len(chances))
        return [variance_ratio(flat if one is None else one, chances) for one in self.uncertain]

    def rows(self, wanted: Callable[[Sequence[float]], int]) -> int:
        """The sample size. Rows that are certain to be drawn make large samples less efficient, so
        the ratios are those of the size itself, in two steps.
        """
        if self.relative is None or not len(self.relative):
            return wanted([1.0] * len(self.uncertain))
        return wanted(self.ratios(wanted(self.ratios(1))))


def choose_design(uncertain: Sequence[Numbers | None], rows: int) -> Design:
    """Active sampling where earlier nights show that it helps, else equal chances."""
    known = [one for one in uncertain if one is not None]
    if not known or not rows:
        return Design(uncertain=uncertain, uniform=_NO_PAIRS)
    squares = [
        np.ones(rows) if values is None else np.square(values / np.sort(values).mean())
        for values in uncertain
    ]
    relative = relative_probabilities(np.sqrt(np.mean(squares, axis=0)))
    design = Design(relative, uncertain)
    ratios = design.ratios(1)
    if np.mean(ratios) > 1 - LEAST_GAIN or max(ratios) > 1 + MOST_LOSS:
        return Design(uncertain=uncertain, uniform=_NO_GAIN)
    return design


@dataclass(frozen=True)
class Drawn:
    """A sample of some rows."""

    rows: NDArray[np.intp]
    """Positions of the drawn rows, in order."""
    strata: list[str]
    """Strata that were sampled separately; all others were merged into one."""
    probabilities: Numbers
    """Inclusion probabilities of the drawn rows."""
    compared: NDArray[np.bool_]
    """Drawn rows that are in the uniform part of the sample."""


def draw(
    keys: Keys, codes: Codes, names: Sequence[str], rows: int, relative: Numbers | None = None
) -> Drawn:
    """Draw rows by their keys and strata (`codes` are indexes of `names`)."""
    sizes = np.bincount(codes, minlength=len(names))
    largest = sorted(range(len(names)), key=lambda code: (-sizes[code], names[code]))
    separate = [code for code in largest if sizes[code] >= FEWEST_OF_A_STRATUM]
    separate = separate[: rows // ROWS_A_STRATUM]
    together = np.where(np.isin(codes, separate), codes, -1)
    places = {str(code): np.flatnonzero(together == code) for code in np.unique(together).tolist()}
    counts = {name: len(there) for name, there in places.items()}
    # Sorted, so that the mean does not depend on the order of the rows.
    means = relative is not None and {
        name: float(np.sort(relative[there]).mean()) for name, there in places.items()
    }
    allocation = allocate(counts, rows, means or None)
    chances, drawn = np.ones(len(codes)), np.zeros(len(codes), dtype=bool)
    for name, there in places.items():
        if not (size := allocation[name]):
            continue
        p = np.ones(len(there)) if relative is None else relative[there]
        chances[there] = inclusion_probabilities(p, size)
        drawn[there[order_sample(keys[there], chances[there], size)]] = True
    compared = drawn if relative is None else uniform_part(keys, drawn)
    judged = np.flatnonzero(drawn)
    return Drawn(
        judged,
        [names[code] for code in separate] if len(places) > 1 else [],
        chances[judged],
        compared[judged],
    )


def relative_probabilities(uncertainty: ArrayLike, most_loss: float = MOST_LOSS) -> Numbers:
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

    def by_value(kappa: float) -> Numbers:
        roots = np.sqrt(values + kappa)
        scaled: Numbers = roots * (counts.sum() / (counts @ roots))
        return scaled

    low, high = 0.0, float(values[-1]) / most_loss
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        loss = float(counts @ (1 / by_value(middle))) / len(squares) - 1
        low, high = (middle, high) if loss > most_loss else (low, middle)
    return by_value(high)[place]


def inclusion_probabilities(relative: ArrayLike, size: int) -> Numbers:
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


def order_sample(keys: Keys, probabilities: Numbers, size: int) -> NDArray[np.intp]:
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


def variance_ratio(uncertainty: ArrayLike, probabilities: Numbers) -> float:
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
