"""Weeks that go by the day: the default alert rules on traffic whose mix changes by the weekday.

python -m research weekdays [--rows NIGHTS]

The nights are those of `weekday_world`, the rules and the state machine those of a run. Each line
tells the same nights four times: held against the nights before as they are (`mix_tags: []`),
like with like by tags, and without any tag, where only the days of the week can tell, against the
week before and against the night before (`versus: previous`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from research.weekday_world import (
    METRICS,
    Sections,
    Values,
    World,
    draw,
    made_sections,
    real_sections,
    shares,
    week_after_week,
)
from ragmetrics.config import AlertSettings, Rule
from ragmetrics.records import Finding

STRENGTHS = {"no cycle": 0.0, "a weekly cycle": 0.42, "a cycle twice as strong": 0.84}
FALLS = (0.05, 0.1)
"""Of the mean over all rows, for what one section lost."""
ROOM = 1.3
"""Times the fall that a section has to lose on an average night."""
HISTORY = 56
"""Nights before a drop."""
PREVIOUS = AlertSettings(
    rules=tuple(Rule(metric=metric, max_drop=0.05, versus="previous") for metric in METRICS)
)
"""The rules of the worlds, against the night before."""
WAYS: Mapping[str, Callable[[], World]] = {
    "as they are": lambda: World(mix_tags=()),
    "like with like": World,
    "like with like, no tags": lambda: World(tagged=False),
    "versus previous, no tags": lambda: World(tagged=False, settings=PREVIOUS),
}


@dataclass(frozen=True)
class Unchanged:
    """On how many unchanged nights an alert fired, or was firing."""

    nights: int
    fired: int
    firing: int


def unchanged(
    world: World, sections: Sections, strength: float, nights: int, seed: int
) -> Unchanged:
    """Hold the rules against nights of which only the mix changes."""
    fired = firing = 0
    drawn = week_after_week(np.random.default_rng(seed), sections, strength)
    for one in islice(drawn, nights):
        told = world.add(one)
        fired += any(finding.transition == "fired" for finding in told)
        firing += any(finding.state == "firing" for finding in told)
    return Unchanged(nights, fired, firing)


@dataclass(frozen=True)
class Found:
    """In how many trials a drop was found on its first night, and by its second."""

    trials: int
    fall: float
    first: int
    second: int


def found(way: str, sections: Sections, strength: float, trials: int, seed: int) -> list[Found]:
    """One section loses so much that the mean over all rows is lower by `FALLS`, for two nights.

    The trials are further nights of one history, each with a drop and, for the history, without.
    """
    nights = week_after_week(np.random.default_rng(seed), sections, strength)
    world, mixes, counts = WAYS[way](), shares(sections, strength), np.zeros((len(FALLS), 2), int)
    for one in islice(nights, HISTORY):
        world.add(one)
    for trial in range(trials):
        days = [mixes[(len(world.nights) + ahead) % 7] for ahead in (0, 1)]
        for place, fall in enumerate(FALLS):
            drops, own = np.random.default_rng((seed, trial)), world.copy()
            section = _able(drops, sections, days, fall)
            fired = [
                _fires(own.add(draw(drops, sections, day).less(section, fall))) for day in days
            ]
            counts[place] += [fired[0], any(fired)]
        world.add(next(nights))
    told = zip(FALLS, counts.tolist(), strict=True)
    return [Found(trials, fall, first, second) for fall, (first, second) in told]


def _able(
    random: np.random.Generator, sections: Sections, days: Sequence[Values], fall: float
) -> str:
    """A section that has enough to lose on each of the days, or the one that has most."""
    names = list(sections)
    own = np.array([values[:, 0].mean() for values in sections.values()])
    most = np.min([own * day for day in days], axis=0)
    able = np.flatnonzero(most > ROOM * fall)
    return names[int(random.choice(able)) if len(able) else int(most.argmax())]


def _fires(told: Sequence[Finding]) -> bool:
    return any(one.metric == "context_recall" and one.state == "firing" for one in told)


def report(nights: int, trials: int, seed: int = 15) -> Iterator[str]:
    """All figures, line by line."""
    real = real_sections()
    sections = real or made_sections(np.random.default_rng(seed))
    yield f"{'real' if real else 'made'} scores of {len(sections)} sections"
    for name, strength in STRENGTHS.items():
        means = [values[:, 0].mean() for values in sections.values()]
        levels = shares(sections, strength) @ means
        yield f"{name}: the days' means differ by a standard deviation of {levels.std():.4f}"
        for way, make in WAYS.items():
            start = time.perf_counter()
            told = unchanged(make(), sections, strength, nights, seed)
            yield (
                f"  {way}: an alert fired on {told.fired} of {told.nights} unchanged nights, was "
                f"firing on {told.firing} ({time.perf_counter() - start:.0f} s)"
            )
        for way in WAYS:
            for seen in found(way, sections, strength, trials, seed):
                yield (
                    f"  {way}: of {seen.trials} drops of {seen.fall} for what one section lost "
                    f"{seen.first} were found on the first night, {seen.second} by the second"
                )
