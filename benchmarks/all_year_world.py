"""Years of nights in numbers: the summaries of many years at once, and the rules on them as arrays.

Each night has so many rows of ten sections, for two metrics of zeros and ones. The mix of sections
goes by the day of the week, by the season, and drifts. The judge's level moves by 0.01 a night for
all rows together. One night in fifty is missing. Slow declines are found by `ragmetrics.stats`, as
in a run; the drop rule is a model in arrays, which `all_year` compares with the rules of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.rules.checks.slow_decline import DAYS
from ragmetrics.rules.decline_test import find_decline, night_levels
from ragmetrics.rules.dependent_tests import chance_of_any, rule_links
from ragmetrics.rules.level_series import EARLY, SPREAD_DAYS, movement_of

Numbers: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
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
    means: Numbers


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
class _Rows:
    """Questions and sums of values by section, of some nights together."""

    questions: Numbers
    sums: Numbers

    def __add__(self, other: _Rows) -> _Rows:
        return _Rows(self.questions + other.questions, self.sums + other.sums)

    def where(self, chosen: Flags, other: _Rows) -> _Rows:
        """These rows where chosen, else the others."""
        own = chosen[..., None]
        pairs = (self.questions, other.questions), (self.sums, other.sums)
        return _Rows(*(np.where(own, one, two) for one, two in pairs))

    @property
    def means(self) -> Numbers:
        """The mean of each section."""
        return self.sums / np.maximum(self.questions, 1)


@dataclass(frozen=True)
class DropAlarms:
    """What the drop rules find, by year."""

    begun: Flags
    """Nights on which an alert fires that did not fire before: years x metrics x nights."""
    best: Numbers
    """The smallest adjusted p of each night: years x nights."""


def drops(simulated: Years, level: float, *, in_time: bool, moving: bool = True) -> DropAlarms:
    """`max_drop: 0.05, versus: trailing:7`, like for like: a night alone, or with the one before if
    that was a suspect. Firing nights are in no baseline. `in_time`: false alarms have a budget in
    time. Not `moving`: the movement of the nights is not counted, as before it was by default.
    """
    shape = simulated.questions.shape
    begun, best = np.zeros(shape[:3], dtype=bool), np.ones((shape[0], shape[2]))
    firing, pending = np.zeros((2, *shape[:2]), dtype=bool)
    empty = _Rows(np.zeros((*shape[:2], shape[3])), np.zeros((*shape[:2], shape[3])))
    usual, waiting = [empty] * BASELINE, empty
    for night in range(shape[2]):
        questions = simulated.questions[:, :, night]
        tonight = _Rows(questions, questions * simulated.means[:, :, night])
        suspect = np.zeros_like(firing)
        if night >= BASELINE:
            before = _together(usual)
            beyond, single = _chance(before, tonight, waiting, pending, _STILL)
            if moving:
                wanted = _counted(single, in_time=in_time) < level
                moved = _movement(simulated, night, wanted, in_time=in_time)
                beyond, single = _chance(before, tonight, waiting, pending, moved)
            chance = _counted(single, in_time=in_time)
            adjusted = _adjusted(chance)
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


@dataclass(frozen=True)
class _Movement:
    """How far each series moves from night to night, and the degrees of freedom of that."""

    sd: Numbers
    freedom: Numbers

    def between(self, before: int, now: int) -> _Movement:
        """The error that it adds to a drop between the means of so many nights."""
        return _Movement(self.sd * np.sqrt(1 / before + 1 / now), self.freedom)


_STILL = _Movement(np.zeros(()), np.ones(()))


def _chance(
    before: _Rows, tonight: _Rows, waiting: _Rows, pending: Flags, moving: _Movement
) -> tuple[Flags, Numbers]:
    """Whether tonight is beyond the limit, and the smaller p of its comparisons."""
    drop, alone = _compared(before, tonight, moving.between(BASELINE, 1))
    both, pooled = _compared(before, tonight + waiting, moving.between(BASELINE, 2))
    better = pending & (both > MAX_DROP) & (pooled < alone)
    beyond: Flags = drop > MAX_DROP
    return beyond, np.where(beyond, np.where(better, pooled, alone), 1.0)


def _movement(simulated: Years, night: int, wanted: Flags, *, in_time: bool) -> _Movement:
    """The movement of the nights before, for the wanted series; else 0."""
    found, freedom = np.zeros(wanted.shape), np.ones(wanted.shape)
    own = slice(int(np.searchsorted(simulated.days, simulated.days[night] - SPREAD_DAYS)), night)
    for year, metric in zip(*np.nonzero(wanted), strict=True):
        questions = simulated.questions[year, metric, own]
        means = simulated.means[year, metric, own]
        count = questions.sum(axis=-1)
        scatter = (questions * means * (1 - means)).sum(axis=-1)
        errors = np.sqrt(scatter / (count - 1) / count)
        levels = night_levels(questions, means, EARLY)
        level = movement_of(simulated.days[own], levels, errors, in_time=in_time)
        if level is not None:
            found[year, metric], freedom[year, metric] = level.error, level.freedom
    return _Movement(found, freedom)


def _together(nights: list[_Rows]) -> _Rows:
    found = nights[0]
    for one in nights[1:]:
        found = found + one
    return found


def _with(usual: list[_Rows], one: _Rows, chosen: Flags) -> list[_Rows]:
    """The last usual nights with another one, in the series that are chosen."""
    later = [*usual[1:], one]
    return [new.where(chosen, old) for new, old in zip(later, usual, strict=True)]


def _compared(before: _Rows, now: _Rows, moved: _Movement) -> tuple[Numbers, Numbers]:
    """The standardised drop, and its one-sided p with an error that the nights add, by the degrees
    of freedom of both (Satterthwaite).
    """
    count = now.questions.sum(axis=-1)
    share = now.questions / count[..., None]
    held, means = before.means, now.means
    left = held - means
    drop = (share * left).sum(axis=-1)
    spread = means * (1 - means) + (left - drop[..., None]) ** 2
    own = (share * spread).sum(axis=-1) / (count - 1)
    old = (share**2 * held * (1 - held) / np.maximum(before.questions - 1, 1)).sum(axis=-1)
    square = own + old + moved.sd**2 + 1e-12
    part = moved.sd**2 / square
    freedom = 1 / ((1 - part) ** 2 / (count - 1) + part**2 / moved.freedom)
    chance: Numbers = special.stdtr(freedom, -drop / np.sqrt(square))
    return drop, chance


def _adjusted(chances: Numbers) -> Numbers:
    """Benjamini-Hochberg along the last axis."""
    order = np.argsort(chances, axis=-1)
    ranked = np.take_along_axis(chances, order, axis=-1) * chances.shape[-1]
    ranked = ranked / np.arange(1, chances.shape[-1] + 1)
    least = np.minimum.accumulate(ranked[..., ::-1], axis=-1)[..., ::-1]
    found = np.empty_like(chances)
    np.put_along_axis(found, order, np.minimum(least, 1), axis=-1)
    return found
