"""Years of nights in numbers: the summaries of many years at once, and the rules on them as arrays.

Each night has so many rows of ten sections, for two metrics of zeros and ones. The mix of sections
goes by the day of the week, by the season, and drifts. The judge's level moves by 0.01 a night for
all rows together. One night in fifty is missing. Slow declines are found by `ragmetrics.stats`, as
in a run; the drop rule is a model in arrays, which `all_year` compares with the rules of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.rules.checks.slow_decline import DAYS
from ragmetrics.rules.decline_test import find_decline, night_levels
from ragmetrics.rules.dependent_tests import chance_of_any, rule_links
from ragmetrics.rules.judge_movement import NIGHTS as NIGHTS_OF_MOVES
from ragmetrics.rules.level_series import EARLY, SPREAD_DAYS, movement_of
from ragmetrics.rules.likely_movement import degrees_of_freedom, estimate_movement, likely_movement
from ragmetrics.stats import LevelError, NightStep
from ragmetrics.stats.night_movement import FEWEST_QUESTIONS
from research.night_rows import Flags, Movement, Numbers, Rows, like_for_like, paired, together

Found: TypeAlias = tuple[Numbers, Numbers]
"""p and size of the decline on each night: years x metrics x nights."""

NIGHTS = 365
WOBBLE, CYCLE, SEASON, DRIFT = 0.01, 0.42, 0.42, 0.03
"""Standard deviation of the judge's level a night; how strong the mix moves by the day of the week,
by the season, and from night to night."""
MISSING = 0.02
MAX_DROP, LEAST_DECLINE, BASELINE, COMPARISONS = 0.05, 0.03, 7, 3
LINKS = rule_links(2, BASELINE)
KEPT = 0.05
"""Level at which a firing decline goes on firing."""
SECTIONS = np.array(
    [
        [0.63, 0.57, 0.58, 0.73, 0.60, 0.86, 0.74, 0.79, 0.86, 0.86],
        [0.70, 0.80, 0.75, 0.55, 0.65, 0.60, 0.85, 0.50, 0.70, 0.60],
    ]
)
"""Mean of each section: metrics x sections."""


@dataclass(frozen=True)
class Fall:
    """A fall of the level from a night on, spread over so many nights."""

    by: float
    start: int
    nights: int = 1


@dataclass(frozen=True)
class Years:
    """Years of nights. Questions and means are of shape (years, metrics, nights, sections)."""

    days: NDArray[np.intp]
    questions: Numbers
    """Rows of each section, or of each question where these recur."""
    means: Numbers
    squares: Numbers | None = None
    """Mean squares; None for scores of zeros and ones."""
    recurs: bool = False
    """Whether the last axis has questions that recur, and not sections."""
    moved: dict[tuple[int, int, int], LevelError | None] = field(default_factory=dict, compare=False)
    """The movement before a night, by year, metric and night: every budget asks for it again."""

    def rows(self, night: int) -> Rows:
        """The rows of a night."""
        questions = self.questions[:, :, night]
        squares = self.means if self.squares is None else self.squares
        sums = questions * self.means[:, :, night], questions * squares[:, :, night]
        return Rows(questions, *sums, np.ones(questions.shape[:2]))


def years(
    random: np.random.Generator,
    count: int,
    rows: int,
    fall: Fall | None = None,
    nights: int = NIGHTS,
    correlation: float = 0.0,
    wobble: float = WOBBLE,
    mixed: bool = True,
) -> Years:
    """So many years; `correlation` is that of the judge's levels on successive nights, `wobble`
    their standard deviation. The first metric falls. Not `mixed`: each night has the same mix.
    """
    day = np.arange(nights)
    day = day[(random.random(nights) >= MISSING) | (day == nights - 1)]
    height = (SECTIONS[0] - SECTIONS[0].mean()) / SECTIONS[0].std()
    season = np.cos(2 * np.pi * (day / NIGHTS + random.random((count, 1))))
    drift = random.normal(0, DRIFT, (count, len(day))).cumsum(axis=1)
    strength = (CYCLE * np.cos(2 * np.pi * day / 7) + SEASON * season + drift) * mixed
    mix = special.softmax(strength[..., None] * height, axis=-1)
    questions = random.multinomial(rows, mix)[:, None].repeat(len(SECTIONS), axis=1)
    level = random.normal(0, wobble, (count, len(day)))
    for night in range(1, len(day) if correlation else 1):
        new = np.sqrt(1 - correlation**2) * level[:, night]
        level[:, night] = correlation * level[:, night - 1] + new
    levels = level[:, None].repeat(len(SECTIONS), axis=1)
    if fall:
        levels[:, 0] -= fall.by * np.clip((day - fall.start + 1) / fall.nights, 0, 1)
    chance = np.clip(SECTIONS[:, None, :] + levels[..., None], 0, 1)
    hits = random.binomial(questions, chance)
    return Years(day, questions.astype(float), hits / np.maximum(questions, 1))


def declines(simulated: Years, first: int = 0) -> Found:
    """p and size of the decline on each night from `first` on, by metric; p is 1 before."""
    shape = simulated.questions.shape[:3]
    chances, falls = np.ones(shape), np.zeros(shape)
    days = simulated.days
    for night in np.flatnonzero(days >= first).tolist():
        own = slice(int(np.searchsorted(days, days[night] - DAYS)), night + 1)
        questions = simulated.questions[:, :, own]
        levels = night_levels(questions, simulated.means[:, :, own], EARLY)
        found = find_decline(levels, days[own], np.ones(night + 1 - own.start))
        if found:
            chances[:, :, night], falls[:, :, night] = found.p_value, found.fall
    return chances, falls


def decline_alarms(found: Found, level: float) -> Flags:
    """The nights on which the alert of a decline fires that did not fire before, by metric."""
    chances, falls = found
    fires = (chances < level / chances.shape[1]) & (falls > LEAST_DECLINE)
    begun: Flags = np.zeros_like(fires)
    firing = np.zeros(fires.shape[:2], dtype=bool)
    for night in range(fires.shape[2]):
        begun[:, :, night] = fires[:, :, night] & ~firing
        firing = fires[:, :, night] | (firing & (chances[:, :, night] < KEPT))
    return begun


@dataclass(frozen=True)
class DropAlarms:
    """What the drop rules find, by year."""

    begun: Flags
    """Nights on which an alert fires that did not fire before: years x metrics x nights."""
    best: Numbers
    """The smallest adjusted p of each night: years x nights."""


def drops(
    simulated: Years,
    level: float,
    *,
    in_time: bool,
    moving: bool = True,
    first: int = BASELINE,
    limits: Sequence[float] = (MAX_DROP,),
) -> DropAlarms:
    """`max_drop, versus: trailing:7`, like for like: a night alone, or with the one before if that
    was a suspect. Firing nights are in no baseline. `in_time`: false alarms have a budget in time.
    Not `moving`: the movement of the nights is not counted, as before it was by default. `first`:
    the first night on which the rules are evaluated; `limits`: of one metric each, or of all.
    """
    shape = simulated.questions.shape
    begun, best = np.zeros(shape[:3], dtype=bool), np.ones((shape[0], shape[2]))
    firing, pending = np.zeros((2, *shape[:2]), dtype=bool)
    line = np.broadcast_to(np.array(limits), shape[:2])
    empty = together([simulated.rows(0)])
    empty = empty.where(np.zeros(shape[:2], dtype=bool), Rows(*(0 * one for one in empty._all)))
    usual, waiting = [empty] * BASELINE, empty
    for night in range(shape[2]):
        tonight = simulated.rows(night)
        suspect = np.zeros_like(firing)
        if night >= first:
            sides = _Sides(together(usual), tonight, waiting, pending & (night > 0), line)
            beyond, single = sides.chance(_STILL, recurs=simulated.recurs)
            if moving:
                wanted = _counted(single, in_time=in_time) < level
                moved = _movement(simulated, night, wanted)
                beyond, single = sides.chance(moved, recurs=simulated.recurs)
            adjusted = _adjusted(_counted(single, in_time=in_time))
            best[:, night] = adjusted.min(axis=1)
            fires = beyond & (adjusted < level)
            begun[:, :, night] = fires & ~firing
            firing = fires | (firing & beyond)
            suspect = beyond & ~firing
        usual = _with(usual, waiting, pending & ~firing)
        usual = _with(usual, tonight, ~suspect & ~firing)
        pending, waiting = suspect, tonight
    return DropAlarms(begun, best)


def _counted(single: Numbers, *, in_time: bool) -> Numbers:
    """The chance that any of a rule's comparisons has a p so small."""
    found: Numbers = np.minimum(1.0, COMPARISONS * single)
    return chance_of_any(single, LINKS) if in_time else found


_STILL = Movement(np.zeros(()), np.ones(()))


@dataclass(frozen=True)
class _Sides:
    """What is compared on a night."""

    before: Rows
    tonight: Rows
    waiting: Rows
    pending: Flags
    limits: Numbers

    def chance(self, moving: Movement, *, recurs: bool) -> tuple[Flags, Numbers]:
        """Whether tonight is beyond the limit, and the smaller p of its comparisons."""
        compared, nights = paired if recurs else like_for_like, self.before.nights
        drop, alone = compared(self.before, self.tonight, moving.between(nights, 1))
        beyond: Flags = drop > self.limits
        if self.pending.any():
            together = self.tonight + self.waiting
            both, pooled = compared(self.before, together, moving.between(nights, 2))
            better = self.pending & (both > self.limits) & (pooled < alone)
            alone = np.where(better, pooled, alone)
        return beyond, np.where(beyond, alone, 1.0)


def _movement(simulated: Years, night: int, wanted: Flags) -> Movement:
    """The movement of the nights before, for the wanted series; else 0."""
    found, freedom = np.zeros(wanted.shape), np.ones(wanted.shape)
    own = slice(int(np.searchsorted(simulated.days, simulated.days[night] - SPREAD_DAYS)), night)
    for year, metric in zip(*np.nonzero(wanted), strict=True):
        place = int(year), int(metric), night
        if place not in simulated.moved:
            simulated.moved[place] = _level(simulated, (year, metric, own))
        if (level := simulated.moved[place]) is not None:
            found[year, metric], freedom[year, metric] = level.error, level.freedom
    return Movement(found, freedom)


def _level(simulated: Years, which: tuple[Any, ...]) -> LevelError | None:
    """The movement of some nights of a series."""
    levels, errors = _levels(simulated, which)
    level = movement_of(simulated.days[which[-1]], levels, errors)
    if simulated.recurs:
        level = _of_pairs(_by_moves(simulated, which), level, float(errors.mean()))
    return level


def _levels(simulated: Years, which: tuple[Any, ...]) -> tuple[Numbers, Numbers]:
    """The levels of some nights and their errors, clustered by question where these recur."""
    questions, means = simulated.questions[which], simulated.means[which]
    count = questions.sum(axis=-1)
    if simulated.recurs:
        levels = (questions * means).sum(axis=-1) / count
        parts = questions * (means - levels[:, None])
        return levels, np.sqrt((parts**2).sum(axis=-1)) / count
    squares = means if simulated.squares is None else simulated.squares[which]
    scatter = (questions * np.maximum(squares - means**2, 0)).sum(axis=-1)
    return night_levels(questions, means, EARLY), np.sqrt(scatter / (count - 1) / count)


def _by_moves(simulated: Years, which: tuple[Any, ...]) -> LevelError | None:
    """The judge's movement by the questions that recur from one night to the next, as
    `find_movement` of a run; None for fewer than seven steps.
    """
    asked, means = simulated.questions[which][-NIGHTS_OF_MOVES:] > 0, simulated.means[which]
    steps = []
    for one, gained in zip(
        asked[1:] & asked[:-1], np.diff(means[-NIGHTS_OF_MOVES:], axis=0), strict=True
    ):
        moved = gained[one]
        if len(moved) >= FEWEST_QUESTIONS:
            steps.append(
                NightStep(float(moved.mean()), float(moved.std(ddof=1)) / len(moved) ** 0.5)
            )
    sd = estimate_movement(steps)
    return None if sd is None else LevelError(sd, degrees_of_freedom(len(steps)))


def _of_pairs(
    judge: LevelError | None, nights: LevelError | None, error: float
) -> LevelError | None:
    """As `level_error_between`, for a paired drop."""
    if nights is None or not nights.is_seen:
        nights = None if judge else likely_movement([], error, 0.0)
    if judge and (nights is None or judge.error >= nights.error):
        return judge if judge.error else None
    return nights


def _with(usual: list[Rows], one: Rows, chosen: Flags) -> list[Rows]:
    """The last usual nights with another one, in the series that are chosen."""
    later = [*usual[1:], one]
    return [new.where(chosen, old) for new, old in zip(later, usual, strict=True)]


def _adjusted(chances: Numbers) -> Numbers:
    """Benjamini-Hochberg along the last axis."""
    order = np.argsort(chances, axis=-1)
    ranked = np.take_along_axis(chances, order, axis=-1) * chances.shape[-1]
    ranked = ranked / np.arange(1, chances.shape[-1] + 1)
    least = np.minimum.accumulate(ranked[..., ::-1], axis=-1)[..., ::-1]
    found = np.empty_like(chances)
    np.put_along_axis(found, order, np.minimum(least, 1), axis=-1)
    return found
