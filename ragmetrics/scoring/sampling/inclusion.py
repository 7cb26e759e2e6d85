"""Which rows of a group of metrics are drawn: with equal chances, or by uncertainty.

    p_i = 1                                          uniform
    p_i = sqrt(r_i^2 + kappa) / its mean             active, r_i the uncertainty of row i
    pi_i = min(1, c_h * p_i)                         sums to the rows drawn of stratum h

Strata get rows in proportion to the sum of p. For metrics that share a sample, r_i^2 is the mean of
their squared uncertainties, each divided by its mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.scoring.sampling.prediction_powered import FEWEST_OF_A_STRATUM, allocate
from ragmetrics.scoring.sampling.unequal_probabilities import (
    inclusion_probabilities,
    order_sample,
    relative_probabilities,
    uniform_part,
    variance_ratio,
)
from ragmetrics.stats import Numbers

ROWS_A_STRATUM = 10
"""There is at most one stratum per so many judged rows. The smallest strata are merged."""
LEAST_GAIN = 0.02
"""Share of the variance that active sampling must be expected to save, else it is not used."""
MOST_LOSS = 0.02
"""Share of the variance that one of several metrics with one sample may be expected to lose."""
_NO_PAIRS = "too few rows of earlier nights were scored by both judges"
_NO_GAIN = "the nights before show that other chances would not narrow the interval"

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
