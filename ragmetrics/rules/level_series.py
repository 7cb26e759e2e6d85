"""The levels of a metric, night by night: its means for one mix of questions.

They come from the summaries that manifests keep, so no row of an earlier night is read. Where a tag
explains the scores, the level is that of the mix of all nights by this tag (`stats.night_levels`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ragmetrics.records import Manifest, Summary
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.decline_test import night_levels
from ragmetrics.rules.likely_movement import (
    FEWEST_STEPS,
    degrees_of_freedom,
    estimate_movement,
    likely_movement,
)
from ragmetrics.rules.tagged_rows import standardising_tag
from ragmetrics.rules.weekly_cycle import SURE, weekly_chance
from ragmetrics.stats import Codes, LevelError, NightStep, Numbers, error_of
from ragmetrics.storage import trailing_nights

EARLY = 14
"""First nights, in which a value of a tag has to occur to have a level of its own."""
SPREAD_DAYS = 90
"""Days before tonight whose nights show the movement: those of slow declines."""
APART = 3
"""Nights from one level to the other in a step. What a judge keeps from one night to the next is
not seen in successive levels."""
SPANS = (3, 4, 5, 6, 7)
"""The same where steps of several lengths count: more evidence from as many nights."""
_ALL_SPANS = range(1, 8)
_INDEPENDENT = 0.85
"""Degrees of freedom of such bounded steps per night less the estimated means."""
_CLEARLY = 1.25
"""How much larger the estimate is where the prior of `likely_movement` counts no more: chosen by
simulation, so that movement of up to 0.02 costs no power by it."""
_FEWEST_APART = 14
"""Nights from which the steps of these lengths are enough."""
_WEEK = 7


@dataclass(frozen=True)
class LevelSeries:
    """Nights with their levels, oldest first."""

    nights: Sequence[Manifest]
    summaries: Sequence[Summary]
    levels: Numbers
    tag: str | None
    """The tag of the mix."""

    @property
    def days(self) -> Codes:
        """The number of each night's day."""
        return np.array([one.date.toordinal() for one in self.nights], dtype=np.intp)

    @property
    def questions(self) -> Numbers:
        """The number of each night's questions."""
        return np.array([one.questions for one in self.summaries], dtype=np.float64)

    @property
    def errors(self) -> Numbers:
        """The standard error of each level from its questions alone."""
        return np.array([self._error(one) for one in self.summaries])

    def _error(self, one: Summary) -> float:
        if self.tag is None:
            return error_of(one.mde or 0.0, max(one.questions - 1, 1))
        cells = one.by_tag[self.tag].values()
        count = sum(cell.questions for cell in cells)
        return float(np.sqrt(sum(cell.scatter for cell in cells) / max(1.0, count - 1) / count))


def level_series(night: NightContext, metric: str, nights: Sequence[Manifest]) -> LevelSeries:
    """The levels of those nights whose mix is known as tonight's: nights of an earlier version have
    no means by tag.
    """
    tagged = bool((now := night.manifest.summary(metric)) and now.by_tag)
    known = [(one, summary) for one in nights if (summary := one.summary(metric))]
    known = [(one, summary) for one, summary in known if bool(summary.by_tag) == tagged]
    tag = standardising_tag([summary for _, summary in known])
    known = [(one, summary) for one, summary in known if tag is None or tag in summary.by_tag]
    summaries = [summary for _, summary in known]
    return LevelSeries([one for one, _ in known], summaries, _levels(summaries, tag), tag)


def _levels(summaries: Sequence[Summary], tag: str | None) -> Numbers:
    if tag is None:
        return np.array([one.mean for one in summaries], dtype=np.float64)
    values = sorted({value for one in summaries for value in one.by_tag[tag]})
    cells = [[one.by_tag[tag].get(value) for value in values] for one in summaries]
    questions = np.array([[one.questions if one else 0.0 for one in row] for row in cells])
    means = np.array([[one.mean if one else 0.0 for one in row] for row in cells])
    return night_levels(questions, means, EARLY)


def spread_of_nights(night: NightContext, metric: str) -> LevelError | None:
    """How far a night's level moves by more than its questions explain, from the nights of the 90
    days before; None without such a night.

    It is estimated from steps over some nights. Unlike the judge's own movement it needs no
    question that recurs. Nights of an incident that lasts until tonight
    are left out: its drop would explain itself, and a firing alert would resolve.
    """
    if metric not in night.spreads:
        night.spreads[metric] = _spread(night, metric)
    return night.spreads[metric]


def _spread(night: NightContext, metric: str) -> LevelError | None:
    past = trailing_nights(night.history or night.earlier, night.manifest.date, SPREAD_DAYS)
    past = [one for one in past if night.compares(one, metric)]
    while past and _in_incident(past[-1], metric):
        past.pop()
    series = level_series(night, metric, past)
    return movement_of(series.days, series.levels, series.errors)


def _in_incident(night: Manifest, metric: str) -> bool:
    found = (one.state for one in night.findings if one.metric == metric)
    return bool({"pending", "firing"} & set(found)) or metric in {one.metric for one in night.falls}


def movement_of(days: Codes, levels: Numbers, errors: Numbers) -> LevelError | None:
    """The movement of some levels: what is likely (`likely_movement`), or the estimate where
    that is clearly larger: levels that move much more than is usual.
    """
    sd = estimate_movement(steps := level_steps(days, levels, errors))
    estimate = LevelError(sd, degrees_of_freedom(len(steps))) if sd else None
    if not len(levels):
        return None
    left, means = _without_weekdays(days, levels)
    spans = SPANS if len(levels) >= _FEWEST_APART else _ALL_SPANS
    steps = [step for apart in spans for step in _steps(left, errors, apart)]
    error = float(np.sqrt(np.square(errors).mean()))
    freedom = _INDEPENDENT * (len(levels) - means)
    scale = max(1.0, float(np.abs(levels).max()))
    likely = replace(likely_movement(steps, error, freedom, scale), is_seen=bool(sd))
    return estimate if estimate and estimate.error > _CLEARLY * likely.error else likely


def level_steps(days: Codes, levels: Numbers, errors: Numbers) -> list[NightStep]:
    """The steps between levels three nights apart; of the first nights, closer ones."""
    left, _ = _without_weekdays(days, levels)
    return list(_steps(left, errors, max(1, min(APART, len(levels) - FEWEST_STEPS))))


def _without_weekdays(days: Codes, levels: Numbers) -> tuple[Numbers, int]:
    """The levels without the mean of their day of the week, where they depend on it, and the number
    of means. Each takes a degree of freedom, so the error of a drop would grow without a cycle.
    """
    weekdays = np.unique(days % _WEEK, return_inverse=True)[1]
    count = int(weekdays.max(initial=-1)) + 1
    if weekly_chance(weekdays, levels) >= SURE:
        return levels, 1
    sums = np.bincount(weekdays, weights=levels, minlength=count)
    means = sums / np.bincount(weekdays, minlength=count)
    return (levels - means[weekdays]) * np.sqrt(len(days) / (len(days) - count)), count


def _steps(levels: Numbers, errors: Numbers, apart: int) -> Iterator[NightStep]:
    changes, both = levels[apart:] - levels[:-apart], np.hypot(errors[apart:], errors[:-apart])
    pairs = zip(changes, both, strict=True)
    return (NightStep(float(step), float(error)) for step, error in pairs)
