"""Change-point estimation: the night since which the level is lower, if it can be dated.

before: m m m m m m | x x x   the split with the largest drop, tested over all splits
                [       ]     confidence set (95%) of the first lower night

`date_change` uses t tests over the questions. `date_change_in_order` permutes the nights of each
question: if only a few questions fell, a t test cannot date the first lower night, because for any
split with all lower nights on one side these questions differ equally from the rest. Compared with
its own history, each question that fell dates the night.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from ragmetrics.stats import (
    CONFIDENCE,
    PAIRED_FROM,
    LevelError,
    MeanDifference,
    Numbers,
    ratio,
    share_of_deals,
    widen_difference,
)

FEWEST_NIGHTS = 3
_MOST_QUESTIONS = 1_000
"""Most questions whose values differ: with more, the t test is as powerful, and much faster."""
NightMeans: TypeAlias = Mapping[str, float]
"""Mean of each question's rows in one night."""
_DEALS = 999
_SEED = 20_071
"""Fixed, so that the same rows give the same date."""
_FIRST_DEALS, _AT_ONCE = 250, 1_000_000
_ROUNDING = 1e-9


class Undated(StrEnum):
    """Why no night is named."""

    TOO_FEW = "too few nights"
    NO_DROP = "no drop that chance does not explain"
    SEVERAL = "no single change: the level moves more than once, or drifts"


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A level that fell once. Nights are positions in the series."""

    first: int
    """The most likely first night of the lower level."""
    nights: tuple[int, ...]
    """Confidence set of the first lower night."""
    drop: float
    """Mean of the nights before less mean of the nights since."""
    p_value: float
    """p against the hypothesis that the level fell on no night, over all splits."""


def date_change(
    nights: Sequence[Mapping[str, Sequence[float]]], *, level: LevelError | None = None
) -> ChangePoint | Undated:
    """Date a drop of the level from the rows of each question, night by night, oldest first.

        t_k = contrast of the nights before k and the nights since,   k = 1 .. T-1
        first = argmax t_k,   p = min(1, (T-1) * min_k p_k),   one-sided

    Each contrast is that of `compare`: paired by question if half of the later questions are on
    both sides, else unpaired. The confidence set has the nights k for which neither the nights
    before k nor those since k show a change among themselves: no two-sided contrast within
    either stretch below 0.05 / (T-2). If k is the true night and nothing else changed,
    it is left out with a chance of at most 5% (Bonferroni). If no night is left,
    the level moved more than once or drifts, and no night is named.
    `level` is the standard deviation of the level between nights: for a split of i and j nights
    it adds sd^2 (1/i + 1/j) to the squared error.
    Less than three nights: too few. Sources: Worsley 1986, "Confidence regions and tests for a
    change-point"; Dumbgen 1991, for sets by inversion.
    """
    series, size, alarms = _Series(nights, level), len(nights), 1 - CONFIDENCE
    if size < FEWEST_NIGHTS:
        return Undated.TOO_FEW
    found = {k: series.split(0, k, size) for k in range(1, size)}
    splits = {k: contrast for k, contrast in found.items() if contrast is not None}
    if not splits:
        return Undated.TOO_FEW
    p_value = min(1.0, (size - 1) * min(split.p_value for split in splits.values()))
    if p_value >= alarms:
        return Undated.NO_DROP
    limit = alarms / (size - 2)
    places = tuple(
        k
        for k, contrast in splits.items()
        if contrast.difference > 0
        and _steady(series, 0, k, limit)
        and _steady(series, k, size, limit)
    )
    if not places:
        return Undated.SEVERAL
    first = max(places, key=lambda k: splits[k].statistic)
    return ChangePoint(first, places, splits[first].difference, p_value)


def _steady(series: _Series, start: int, end: int, level: float) -> bool:
    """Whether no split of a stretch of nights shows a change within it."""
    splits = (series.split(start, k, end) for k in range(start + 1, end))
    return all(split is None or split.p_two_sided >= level for split in splits)


class _Series:
    """Rows by question and night, cumulated, so that a run of nights is a difference of sums."""

    def __init__(
        self, nights: Sequence[Mapping[str, Sequence[float]]], level: LevelError | None
    ) -> None:
        self._level = level
        place = {name: i for i, name in enumerate(sorted({q for night in nights for q in night}))}
        sums, rows = np.zeros((2, len(nights) + 1, len(place)))
        for number, night in enumerate(nights, start=1):
            for question, values in night.items():
                sums[number, place[question]] = sum(values)
                rows[number, place[question]] = len(values)
        self._sums, self._rows = sums.cumsum(axis=0), rows.cumsum(axis=0)

    def split(self, start: int, first: int, end: int) -> MeanDifference | None:
        """Nights `start` to `first` (without it) less nights `first` to `end`: see `compare`."""
        found = self._contrast(start, first, end)
        if found is None or self._level is None:
            return found
        nights = math.sqrt(1 / (first - start) + 1 / (end - first))
        return widen_difference(found, LevelError(self._level.error * nights, self._level.freedom))

    def _contrast(self, start: int, first: int, end: int) -> MeanDifference | None:
        old, new = self._means(start, first), self._means(first, end)
        shared = ~np.isnan(old) & ~np.isnan(new)
        if shared.sum() >= 2 and shared.sum() >= PAIRED_FROM * (~np.isnan(new)).sum():
            return MeanDifference.paired(np.round(old[shared] - new[shared], 12))
        old, new = old[~np.isnan(old)], new[~np.isnan(new)]
        return MeanDifference.unpaired(old, new) if min(len(old), len(new)) >= 2 else None

    def _means(self, start: int, end: int) -> Numbers:
        rows = self._rows[end] - self._rows[start]
        sums = self._sums[end] - self._sums[start]
        return ratio(sums, rows)


def date_change_in_order(
    nights: Sequence[NightMeans], *, level: LevelError | None = None
) -> ChangePoint | Undated | None:
    """Date a drop of the level from the questions asked on all nights, oldest night first.

        W_k = (mean of nights 1..k-1  -  mean of nights k..T) * sqrt((k-1) (T-k+1) / T)
        first = argmax_k W_k,   p = share of the permutations with a max_k W_k as large

    A permutation shuffles the values of each question over the nights, as in `chance_of_order`.
    The maximum is compared with maxima, so no correction for the splits is needed. The confidence
    set has the nights k for which neither the nights before k nor those since k have a max |W| that
    less than 5% of their permutations reach, halved if both have two nights or more.
    If k is the true night and nothing else changed, it is left out
    with a chance of at most 5%. If no night is left, the level moved more than once or drifts.

    `level` is the standard deviation of the level between nights: each permutation also gets a
    random shift of each night, t-distributed, because the movement is an estimate.

    None if less than half of the last night's questions were asked on all nights, or if more than
    1,000 of them moved: use `date_change` then. Assumes what `chance_of_order` does.
    Sources: Page 1954 and Pettitt 1979 for cumulative sums; Worsley 1986 for the set.
    """
    if len(nights) < FEWEST_NIGHTS:
        return Undated.TOO_FEW
    values = _moved(nights)
    if values is None:
        return None
    alarms = 1 - CONFIDENCE
    deals = _Deals(np.random.default_rng(_SEED), len(_asked_always(nights)), level)
    contrasts = _contrasts(values.sum(axis=0))
    p_value = _chance(values, np.max, deals)
    if p_value >= alarms:
        return Undated.NO_DROP
    places = [
        k
        for k in range(1, len(nights))
        if contrasts[k - 1] > 0 and _steady_in_order(values[:, :k], values[:, k:], alarms, deals)
    ]
    if not places:
        return Undated.SEVERAL
    first = max(places, key=lambda k: float(contrasts[k - 1]))
    drop = float(values[:, :first].mean() - values[:, first:].mean())
    share = len(values) / len(_asked_always(nights))
    return ChangePoint(first, tuple(places), drop * share, p_value)


@dataclass(frozen=True)
class _Deals:
    """Draws permutations of the questions' values over the nights, and shifts of the nights."""

    random: np.random.Generator
    questions: int
    """Number of questions asked on all nights; a shift of the level moves each."""
    level: LevelError | None

    def sums(self, values: Numbers) -> Iterator[Numbers]:
        """Sums of the nights in batches of permutations, small at first."""
        left, size = _DEALS, _FIRST_DEALS
        while left:
            size = max(1, min(size, left, _AT_ONCE // values.size))
            dealt = np.broadcast_to(values, (size, *values.shape))
            yield self.random.permuted(dealt, axis=2).sum(axis=1) + self._moves(
                size, values.shape[1]
            )
            left -= size
            size *= 4

    def _moves(self, deals: int, nights: int) -> Numbers | float:
        if self.level is None or not self.level.error:
            return 0.0
        freedom = self.level.freedom
        sizes = np.sqrt(freedom / self.random.chisquare(freedom, (deals, 1)))
        moves: Numbers = self.random.normal(0, self.questions * self.level.error, (deals, nights))
        return moves * sizes


def _asked_always(nights: Sequence[NightMeans]) -> list[str]:
    return sorted(set.intersection(*(set(night) for night in nights)))


def _moved(nights: Sequence[NightMeans]) -> Numbers | None:
    """Questions x nights, of questions asked always whose values differ."""
    always = _asked_always(nights)
    if len(always) < max(2, PAIRED_FROM * len(nights[-1])):
        return None
    values = np.array([[night[question] for night in nights] for question in always])
    moved: Numbers = values[np.ptp(values, axis=1) > _ROUNDING]
    return moved if len(moved) <= _MOST_QUESTIONS else None


def _contrasts(sums: Numbers) -> Numbers:
    """W of each split, from the nights' sums in the last axis, times the number of questions."""
    count = sums.shape[-1]
    ahead = np.arange(1, count)
    fallen = sums.cumsum(axis=-1)[..., :-1] - ahead / count * sums.sum(axis=-1, keepdims=True)
    found: Numbers = fallen / np.sqrt(ahead * (count - ahead) / count)
    return found


def _steady_in_order(before: Numbers, since: Numbers, alarms: float, deals: _Deals) -> bool:
    """Whether neither run of nights shows a change within it."""
    tested = [one for one in (before, since) if one.shape[1] > 1]
    return all(_chance(one, _furthest, deals) >= alarms / len(tested) for one in tested)


def _furthest(contrasts: Numbers, axis: int = -1) -> Numbers:
    found: Numbers = np.abs(contrasts).max(axis=axis)
    return found


def _chance(values: Numbers, extreme: Callable[..., Numbers], deals: _Deals) -> float:
    """Share of permutations whose most extreme contrast is at least the observed one.

    1 if no question moved.
    """
    moved = values[np.ptp(values, axis=1) > _ROUNDING] if len(values) else values
    if not len(moved):
        return 1.0
    reached = float(extreme(_contrasts(moved.sum(axis=0)), axis=-1))
    drawn = (extreme(_contrasts(sums), axis=-1) for sums in deals.sums(moved))
    return share_of_deals(drawn, reached - _ROUNDING * max(1.0, abs(reached)))
