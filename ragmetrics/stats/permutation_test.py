"""Permutation test of a drop, within the history of each question.

A question that is asked every night has a history. Without a change, its value of tonight could be
that of any other night. So the values of each question are permuted over its nights many times, and
the drop is compared with the drops of the permutations. A fall of a question that never moved is
strong evidence; that of a question that moves every night is weak. The t test on the differences
uses only their spread, to which the fall of a few questions adds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from ragmetrics.stats.resampling import SEED
from ragmetrics.stats.t_test import Numbers

NightMeans: TypeAlias = Mapping[str, float]
"""Mean of each question's rows in one night."""

MOST_QUESTIONS = 1_000
"""Most questions whose values differ; with more, the t test is as powerful."""
_MOST_DEALS = 99_999
LEAST = 1 / (_MOST_DEALS + 1)
"""Smallest possible p."""
_ENOUGH = 50
"""Permutations with as large a drop, after which the estimate of p is precise enough."""
_FIRST_DEALS, _AT_ONCE = 256, 2_000_000
_MOST_WAYS = 3_432
"""Most ways to choose the nights of now, as seven of fourteen."""
_ROUNDING = 1e-9


def chance_of_order(
    before: Sequence[NightMeans], now: Sequence[NightMeans], *, seed: int = SEED
) -> float | None:
    """One-sided p of a drop from some nights to others, over the questions of both.

        D = mean over questions of (mean of its values before - mean of its values now)
        p = share of the permutations with a D at least as large, including the observed one

    A permutation test within questions, exact for all distributions. p is at least 1e-5, and large
    p need fewer permutations (Besag and Clifford). The same seed gives the same p. No question on
    both sides, or more than 1,000 that moved: None. No question that moved: 1. It assumes that
    without a change nights differ only by noise that is independent between questions.
    Sources: Fisher 1935; Good 2005, "Permutation, Parametric and Bootstrap Tests"; Besag and
    Clifford 1991, "Sequential Monte Carlo p-values".
    """
    groups = _groups(before, now)
    if not groups:
        return None
    moved = {shape: values[np.ptp(values, axis=1) > 0] for shape, values in groups.items()}
    moved = {shape: values for shape, values in moved.items() if len(values)}
    if sum(map(len, moved.values())) > MOST_QUESTIONS:
        return None
    if not moved:
        return 1.0
    drop = sum(
        float((values[:, :old].mean(axis=1) - values[:, old:].mean(axis=1)).sum())
        for (old, _), values in moved.items()
    )
    deals = _deals(moved, np.random.default_rng(seed))
    return share_of_deals(deals, drop - _ROUNDING * max(1.0, abs(drop)))


def _groups(
    before: Sequence[NightMeans], now: Sequence[NightMeans]
) -> dict[tuple[int, int], Numbers]:
    """Questions x nights, earlier nights first, grouped by the numbers of nights."""
    old, new = _by_question(before), _by_question(now)
    alike: dict[tuple[int, int], list[list[float]]] = defaultdict(list)
    for question in sorted(old.keys() & new.keys()):
        values = [*old[question], *new[question]]
        alike[len(old[question]), len(new[question])].append(values)
    return {shape: np.array(values) for shape, values in alike.items()}


def _by_question(nights: Sequence[NightMeans]) -> dict[str, list[float]]:
    values_of: dict[str, list[float]] = defaultdict(list)
    for night in nights:
        for question, value in night.items():
            values_of[question].append(value)
    return values_of


def _deals(
    groups: Mapping[tuple[int, int], Numbers], random: np.random.Generator
) -> Iterator[Numbers]:
    """Drops of random permutations, summed over the questions.

    They come in batches that fit into memory, small at first.
    """
    ways = {shape: _ways(*shape, values) for shape, values in groups.items()}
    cells = sum(values.size for values in groups.values())
    size, left = _FIRST_DEALS, _MOST_DEALS
    while left:
        size = max(1, min(size, left, _AT_ONCE // cells))
        dealt = (_dealt(random, *shape, groups[shape], own, size) for shape, own in ways.items())
        yield sum(dealt, np.zeros(size))
        left -= size
        size *= 4


def _dealt(
    random: np.random.Generator,
    old: int,
    new: int,
    values: Numbers,
    ways: Numbers | None,
    size: int,
) -> Numbers:
    """The drops of random permutations of one group of questions."""
    if ways is None:
        dealt = np.broadcast_to(values, (size, *values.shape))
        now = random.permuted(dealt, axis=2)[:, :, :new].sum(axis=2)
        drops = _drops(values, now, old, new)
    else:
        count, questions = ways.shape
        chosen = random.integers(0, count, (size, questions), dtype=np.int32)
        # Places in the flat array: taking them is faster than by two indices.
        chosen *= questions
        chosen += np.arange(questions, dtype=np.int32)
        drops = ways.take(chosen)
    summed: Numbers = drops.sum(axis=1)
    return summed


def _drops(values: Numbers, now: Numbers, old: int, new: int) -> Numbers:
    """Drops of the questions in the last axis; `now` are the sums of the values now."""
    drops: Numbers = (values.sum(axis=1) - now) / old - now / new
    return drops


def _ways(old: int, new: int, values: Numbers) -> Numbers | None:
    """The drop of each question (columns) for each way to choose the nights of now (rows).

    Drawing one of them is much faster than shuffling the nights. None if there are too many.
    """
    if math.comb(old + new, new) > _MOST_WAYS:
        return None
    chosen = np.array(list(combinations(range(old + new), new)))
    now = np.stack([value[chosen].sum(axis=1) for value in values], axis=1)
    return _drops(values, now, old, new)


def share_of_deals(deals: Iterable[Numbers], drop: float) -> float:
    """Share of permutations with as large a drop; stops when there are enough of these."""
    seen = reached = 0
    for drops in deals:
        far = np.flatnonzero(drops >= drop)
        if reached + len(far) >= _ENOUGH:
            last = int(far[_ENOUGH - reached - 1])
            return _ENOUGH / (seen + last + 1)
        reached, seen = reached + len(far), seen + len(drops)
    return (reached + 1) / (seen + 1)
