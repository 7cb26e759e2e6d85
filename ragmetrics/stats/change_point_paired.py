"""Change-point estimation for questions asked every night, by permutation within questions.

If only a few questions fell, a t test over the questions cannot date the first lower night: for any
split with all lower nights on one side, these few questions differ equally from the rest. Compared
with its own history, each question that fell dates the night.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragmetrics.stats.change_point import FEWEST_NIGHTS, ChangePoint, Undated
from ragmetrics.stats.comparisons import PAIRED_FROM
from ragmetrics.stats.levels import CONFIDENCE
from ragmetrics.stats.night_movement import LevelError
from ragmetrics.stats.permutation_test import MOST_QUESTIONS, NightMeans, Values, share_of_deals
from ragmetrics.stats.resampling import SEED

_DEALS = 999
_FIRST_DEALS, _AT_ONCE = 250, 1_000_000
_ROUNDING = 1e-9


def date_change_in_order(
    nights: Sequence[NightMeans],
    *,
    confidence: float = CONFIDENCE,
    level: LevelError | None = None,
    seed: int = SEED,
) -> ChangePoint | Undated | None:
    """Date a drop of the level from the questions asked on all nights, oldest night first.

        W_k = (mean of nights 1..k-1  -  mean of nights k..T) * sqrt((k-1) (T-k+1) / T)
        first = argmax_k W_k,   p = share of the permutations with a max_k W_k as large

    A permutation shuffles the values of each question over the nights, as in `chance_of_order`.
    The maximum is compared with maxima, so no correction for the splits is needed. The confidence
    set has the nights k for which neither the nights before k nor those since k have a max |W| that
    less than (1 - confidence) of their permutations reach, halved if both have two nights or more.
    If k is the true night and nothing else changed, it is left out with a chance of at most
    1 - confidence. If no night is left, the level moved more than once or drifts.

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
    alarms = 1 - confidence
    deals = _Deals(np.random.default_rng(seed), len(_asked_always(nights)), level)
    contrasts = _contrasts(values.sum(axis=0))
    p_value = _chance(values, np.max, deals)
    if p_value >= alarms:
        return Undated.NO_DROP
    places = [
        k
        for k in range(1, len(nights))
        if contrasts[k - 1] > 0 and _steady(values[:, :k], values[:, k:], alarms, deals)
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

    def sums(self, values: Values) -> Iterator[Values]:
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

    def _moves(self, deals: int, nights: int) -> Values | float:
        if self.level is None or not self.level.error:
            return 0.0
        freedom = self.level.freedom
        sizes = np.sqrt(freedom / self.random.chisquare(freedom, (deals, 1)))
        moves: Values = self.random.normal(0, self.questions * self.level.error, (deals, nights))
        return moves * sizes


def _asked_always(nights: Sequence[NightMeans]) -> list[str]:
    return sorted(set.intersection(*(set(night) for night in nights)))


def _moved(nights: Sequence[NightMeans]) -> Values | None:
    """Questions x nights, of questions asked always whose values differ."""
    always = _asked_always(nights)
    if len(always) < max(2, PAIRED_FROM * len(nights[-1])):
        return None
    values = np.array([[night[question] for night in nights] for question in always])
    moved: Values = values[np.ptp(values, axis=1) > _ROUNDING]
    return moved if len(moved) <= MOST_QUESTIONS else None


def _contrasts(sums: Values) -> Values:
    """W of each split, from the nights' sums in the last axis, times the number of questions."""
    count = sums.shape[-1]
    ahead = np.arange(1, count)
    fallen = sums.cumsum(axis=-1)[..., :-1] - ahead / count * sums.sum(axis=-1, keepdims=True)
    found: Values = fallen / np.sqrt(ahead * (count - ahead) / count)
    return found


def _steady(before: Values, since: Values, alarms: float, deals: _Deals) -> bool:
    """Whether neither run of nights shows a change within it."""
    tested = [one for one in (before, since) if one.shape[1] > 1]
    return all(_chance(one, _furthest, deals) >= alarms / len(tested) for one in tested)


def _furthest(contrasts: Values, axis: int = -1) -> Values:
    found: Values = np.abs(contrasts).max(axis=axis)
    return found


def _chance(values: Values, extreme: Callable[..., Values], deals: _Deals) -> float:
    """Share of permutations whose most extreme contrast is at least the observed one.

    1 if no question moved.
    """
    moved = values[np.ptp(values, axis=1) > _ROUNDING] if len(values) else values
    if not len(moved):
        return 1.0
    reached = float(extreme(_contrasts(moved.sum(axis=0)), axis=-1))
    drawn = (extreme(_contrasts(sums), axis=-1) for sums in deals.sums(moved))
    return share_of_deals(drawn, reached - _ROUNDING * max(1.0, abs(reached)))
