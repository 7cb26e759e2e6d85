"""How often the best possible test would tell a judge's bias: the ceiling for `people_labels`.

A row has one verdict, yes or no. The best test knows how often the judge is wrong in each kind of
row: where it says yes or no, and, if rows were drawn by a cheap judge's score, what that one says.
It compares these rates with the nearest rates without bias, by the likelihood ratio (Neyman and
Pearson): no other test of 2.5% in each direction finds the bias more often against these rates, so
none that is right against all rates does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from ragmetrics.people.labels.row_draw import relative_chances
from research.people_labels import SEED, make_world

Floats = NDArray[np.float64]
LEVEL = 0.025
"""Chance of telling a bias in one direction where there is none."""
GOAL = 0.9
_ROWS = 400_000
_DRAWS = 200_000


@dataclass(frozen=True)
class Rates:
    """The kinds of rows of a night."""

    share: Floats
    """Share of the rows."""
    wrong: Floats
    """How often the judge is wrong."""
    chance: Floats
    """Chance of being labelled, relative to a uniform draw."""
    sign: Floats
    """What an error adds to the judge's mean: 1 where it says yes, -1 where it says no."""


@cache
def rates_of(form: str, design: str) -> Rates:
    """The rates of a cell of the benchmark, from many rows."""
    better = 0.1 if design == "earlier night" else 0.0
    random = np.random.default_rng([SEED, 7])
    world = make_world(form, "yes or no", random, rows=_ROWS, better=better)
    suggested = design == "suggested"
    chances = relative_chances([np.abs(world.cheap - world.judge)] if suggested else [], _ROWS)
    kind = (2 * world.judge + suggested * world.cheap).astype(np.int_)
    rows = np.bincount(kind)
    there = rows > 0
    rows = rows[there]
    return Rates(
        share=rows / _ROWS,
        wrong=np.bincount(kind, world.judge != world.people)[there] / rows,
        chance=np.bincount(kind, chances)[there] / rows,
        sign=np.where(np.flatnonzero(there) >= 2, 1.0, -1.0),
    )


def nearest_without_bias(rates: Rates) -> Floats:
    """The error rates without bias that labels tell least from the true ones.

    minimum of the Kullback-Leibler divergence under  sum_k share_k sign_k e_k = 0,
    so that  e_k - wrong_k = -l sign_k / chance_k e_k (1 - e_k)
    """

    def without(strength: float) -> Floats:
        pull = strength * rates.sign / rates.chance
        return np.array(
            [
                brentq(lambda e, w=w, p=p: e - w + p * e * (1 - e), 1e-12, 1 - 1e-12)
                for w, p in zip(rates.wrong, pull, strict=True)
            ]
        )

    def bias(strength: float) -> float:
        return float((rates.share * rates.sign) @ without(strength))

    most = 0.05
    while bias(most) > 0:
        most *= 1.3
    return without(float(brentq(bias, 0, most)))


def best_test(rates: Rates, labels: int) -> float:
    """How often the likelihood-ratio test tells the bias, by simulation."""
    drawn = rates.share * rates.chance / (rates.share @ rates.chance)
    with_bias, without = (
        np.concatenate([drawn * (1 - wrong), drawn * wrong])
        for wrong in (rates.wrong, nearest_without_bias(rates))
    )
    random, score = np.random.default_rng(SEED), np.log(with_bias / without)
    null, found = (
        (random.multinomial(labels, chances, _DRAWS) @ score).round(9)
        for chances in (without, with_bias)
    )
    limit = np.sort(null)[-int(LEVEL * _DRAWS) - 1]
    # At the limit it decides by lot, so that its level is exact.
    lot = (LEVEL - float((null > limit).mean())) / float((null == limit).mean())
    return float((found > limit).mean()) + lot * float((found == limit).mean())


def known_spread(rates: Rates, labels: int) -> float:
    """How often a normal test of the mean error tells the bias if it knows the errors' spread."""
    bias = float((rates.share * rates.sign) @ rates.wrong)
    squares = rates.wrong * (rates.sign - bias) ** 2 + (1 - rates.wrong) * bias**2
    error = float(np.sqrt((rates.share * squares / rates.chance).sum() / labels))
    limit = float(ndtri(1 - LEVEL))
    return float(ndtr(bias / error - limit) + ndtr(-bias / error - limit))


def labels_needed(rates: Rates) -> int:
    """Labels with which the best test tells the bias in 90% of the draws."""
    return next(labels for labels in range(20, 500, 5) if best_test(rates, labels) >= GOAL)
