"""Cluster bootstrap: statistics for resampling, and their intervals.

A statistic is a function of the count of each unit. Counts of 1 give the statistic itself; counts
of a resample give its bootstrap replicate, for many resamples at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragmetrics.stats.significance import CONFIDENCE
from ragmetrics.stats.t_test import Numbers

Statistic: TypeAlias = Callable[[Numbers], Numbers]
"""From counts (resamples x units) to one value per resample, NaN if undefined."""
Interval: TypeAlias = tuple[float, float]
Name = TypeVar("Name", bound=str)

RESAMPLES = 1_000
FEWEST_RESAMPLES = 200
SEED = 20_071
_WORK = 10_000_000
"""Most counts (resamples x units); above it there are fewer resamples."""
_AT_ONCE = 2_000_000
_FEW = 16


def unweighted(statistic: Statistic, units: int) -> float | None:
    """The statistic with each unit counted once; None if undefined."""
    if not units:
        return None
    value = float(statistic(np.ones((1, units)))[0])
    return value if math.isfinite(value) else None


def resampled(
    statistics: Mapping[Name, Statistic],
    groups: Sequence[str] | ArrayLike,
    by_chance: Mapping[Name, Statistic] | None = None,
) -> dict[Name, tuple[float | None, Interval | None]]:
    """The value v of each statistic, and its percentile interval over resamples of whole groups.

    `groups` names each unit's group: units of one question are not independent, so questions are
    drawn and not units, the same ones for all statistics. The same data give the same interval.
    Many units get fewer resamples, at least 200. Less than two groups, or a statistic that is
    undefined in half of the resamples: no interval.

    One in [0, 1] that is a sum of distances is positive by chance alone: `by_chance` gives what it
    would be if all distances were 0. It is given without the bias that its replicates v* show, with
    the basic bootstrap interval, in [0, 1]:

        2 v - mean(v*),   from 2 v - q97.5(v*) to 2 v - q2.5(v*)

    The interval begins at 0 unless v is above the 95th percentile by chance: a test at 5%. Where
    all distances are 0, about half of the bias stays in the value. Without an interval it is v.
    Sources: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", 10.2 and, for the test,
    16.4; for clusters Field and Welsh 2007; Davison and Hinkley 1997,
    "Bootstrap Methods and their Application", 5.2.
    """
    replicates, units = _replicates(statistics, groups), np.size(groups)
    chance = _replicates(by_chance or {}, groups)
    values = {name: unweighted(statistic, units) for name, statistic in statistics.items()}
    return {
        name: _unbiased(value, replicates[name], chance[name])
        if name in chance
        else (value, _percentiles(replicates[name]))
        for name, value in values.items()
    }


def _unbiased(
    value: float | None, replicates: Numbers, by_chance: Numbers
) -> tuple[float | None, Interval | None]:
    interval = _percentiles(replicates)
    if value is None or interval is None:
        return value, None
    ends = float(np.nanmean(replicates)), *interval
    middle, high, low = (min(max(2 * value - end, 0.0), 1.0) for end in ends)
    return middle, (low if value > np.nanquantile(by_chance, CONFIDENCE) else 0.0, high)


def _replicates(
    statistics: Mapping[Name, Statistic], groups: Sequence[str] | ArrayLike
) -> dict[Name, Numbers]:
    """Each statistic of the resamples; of less than two groups there are none."""
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    count = int(codes.max()) + 1 if len(codes) else 0
    if count < 2:
        return dict.fromkeys(statistics, np.zeros(0))
    resamples = min(RESAMPLES, max(FEWEST_RESAMPLES, _WORK // len(codes)))
    drawn: dict[Name, list[Numbers]] = {name: [] for name in statistics}
    for counts in _resampled(codes, count, resamples, np.random.default_rng(SEED)):
        for name, statistic in statistics.items():
            drawn[name].append(statistic(counts))
    return {name: np.concatenate(values) for name, values in drawn.items()}


def _resampled(
    codes: NDArray[np.int_], groups: int, resamples: int, random: np.random.Generator
) -> Iterator[Numbers]:
    size = max(1, _AT_ONCE // len(codes))
    for start in range(0, resamples, size):
        chosen = random.integers(0, groups, (min(size, resamples - start), groups))
        cells = chosen + groups * np.arange(len(chosen))[:, None]
        counts = np.bincount(cells.ravel(), minlength=cells.size).reshape(cells.shape)
        yield counts[:, codes].astype(np.float64)


def _percentiles(values: Numbers) -> Interval | None:
    defined = values[np.isfinite(values)]
    if not len(defined) or 2 * len(defined) < len(values):
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def midranks(values: ArrayLike) -> Statistic:
    """From counts to each unit's midrank among all counted units."""
    x = np.asarray(values, dtype=np.float64)
    distinct, place = np.unique(x, return_inverse=True)
    total = totals(place, len(distinct))

    def ranks(counts: Numbers) -> Numbers:
        times = total(counts)
        upto = np.cumsum(times, axis=1)
        return (upto - (times - 1) / 2)[:, place]

    return ranks


def indicators(codes: NDArray[np.int_], size: int) -> Numbers:
    """Indicator matrix with a column per code: counts times this are counts by code."""
    cells = np.zeros((len(codes), size))
    cells[np.arange(len(codes)), codes] = 1.0
    return cells


def totals(place: NDArray[np.int_], size: int) -> Statistic:
    """From counts by unit to counts by position, with `size` positions."""
    if size <= _FEW:
        cells = indicators(place, size)
        return lambda counts: counts @ cells
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(size))
    return lambda counts: np.add.reduceat(counts[:, order], starts, axis=1)


def ratio(above: Numbers, below: Numbers) -> Numbers:
    """The quotient, NaN if the divisor is 0 up to rounding."""
    return np.divide(above, below, out=np.full_like(below, np.nan), where=below > 1e-12)
