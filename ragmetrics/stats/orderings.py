"""Whether a drop could be the order in which a question's values happened to come.

A question that is asked every night has a history. Where nothing changed, the value of tonight
could as well have been that of any other night: so the values of each question are dealt to its
nights at random, many times, and the drop is held against the drops that come of it. A question
that never moved before and fell tonight says much; one that moves every night says little. The t
test on the differences of questions sees only how far these are apart, and takes the fall of a few
for spread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragmetrics.stats.resampling import SEED

Values: TypeAlias = NDArray[np.float64]
NightMeans: TypeAlias = Mapping[str, float]
"""Of one night, the mean of each question's rows."""

MOST_QUESTIONS = 1_000
"""Questions whose values differ, above which a t test sees as much."""
_MOST_DEALS = 99_999
LEAST = 1 / (_MOST_DEALS + 1)
"""The smallest p that can be found."""
_ENOUGH = 50
"""Deals that fall as far, after which the chance is known well enough."""
_FIRST_DEALS, _AT_ONCE = 256, 2_000_000
_ROUNDING = 1e-9


def chance_of_order(
    before: Sequence[NightMeans], now: Sequence[NightMeans], *, seed: int = SEED
) -> float | None:
    """One-sided p of a drop from some nights to others, over the questions of both.

        D = mean over questions of (mean of its values before - mean of its values now)
        p = share of the deals with a D at least as large, the one that happened among them

    A permutation test within questions, exact whatever the values are; its p is a multiple of
    1e-5 at least, and found by fewer deals where it is large (Besag and Clifford). The same seed
    gives the same p. No question on both sides, or more than 1,000 that moved: None. No question
    that moved: 1. Assumes that where nothing changed, nights are alike but for noise that is
    independent between questions.
    Sources: Fisher 1935; Good 2005, "Permutation, Parametric and Bootstrap Tests"; Besag and
    Clifford 1991, "Sequential Monte Carlo p-values".
    """
    sides = _sides(before, now)
    if not sides:
        return None
    moved = [(old, new) for old, new in sides if np.ptp(np.concatenate([old, new])) > 0]
    if len(moved) > MOST_QUESTIONS:
        return None
    if not moved:
        return 1.0
    drop = sum(float(old.mean() - new.mean()) for old, new in moved)
    deals = _Deals(moved, np.random.default_rng(seed))
    return _share(deals, drop - _ROUNDING * max(1.0, abs(drop)))


def _sides(before: Sequence[NightMeans], now: Sequence[NightMeans]) -> list[tuple[Values, Values]]:
    """The values of each question before and now, of those that have both."""
    old, new = _by_question(before), _by_question(now)
    shared = sorted(old.keys() & new.keys())
    return [(np.array(old[question]), np.array(new[question])) for question in shared]


def _by_question(nights: Sequence[NightMeans]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for night in nights:
        for question, value in night.items():
            found[question].append(value)
    return found


class _Deals:
    """Drops, summed over the questions, that come of dealing each one's values at random."""

    def __init__(self, moved: Sequence[tuple[Values, Values]], random: np.random.Generator) -> None:
        self._random = random
        alike: dict[tuple[int, int], list[Values]] = defaultdict(list)
        for old, new in moved:
            alike[len(old), len(new)].append(np.concatenate([old, new]))
        self._groups = {shape: np.stack(values) for shape, values in alike.items()}
        self._cells = sum(values.size for values in self._groups.values())

    def __iter__(self) -> Iterator[Values]:
        """So many at a time as fit into some memory, a few at first."""
        size, left = _FIRST_DEALS, _MOST_DEALS
        while left:
            size = max(1, min(size, left, _AT_ONCE // self._cells))
            yield sum(
                (self._dealt(*shape, values, size) for shape, values in self._groups.items()),
                np.zeros(size),
            )
            left -= size
            size *= 4

    def _dealt(self, old: int, new: int, values: Values, size: int) -> Values:
        questions, nights = values.shape
        if new == 1:  # most often, and many times faster than to shuffle
            chosen = self._random.integers(0, nights, (size, questions))
            now = values[np.arange(questions), chosen]
        else:
            dealt = np.broadcast_to(values, (size, questions, nights))
            now = self._random.permuted(dealt, axis=2)[:, :, :new].sum(axis=2)
        drops: Values = (values.sum(axis=1) - now) / old - now / new
        summed: Values = drops.sum(axis=1)
        return summed


def _share(deals: _Deals, drop: float) -> float:
    """The share of deals that fall as far, known once there are enough of these."""
    seen = reached = 0
    for drops in deals:
        far = np.flatnonzero(drops >= drop)
        if reached + len(far) >= _ENOUGH:
            last = int(far[_ENOUGH - reached - 1])
            return _ENOUGH / (seen + last + 1)
        reached, seen = reached + len(far), seen + len(drops)
    return (reached + 1) / (seen + 1)
