"""Weeks that go by the day: the default alert rules on traffic whose mix changes by the weekday.

python -m benchmarks weekdays [--rows NIGHTS]

The nights are those of `weekday_world`, the rules and the state machine those of a run. Each line
tells the same nights three times: held against the nights before as they are (`mix_tags: []`),
like with like by tags, and without any tag, where only the days of the week can tell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from benchmarks.weekday_world import (
    Sections,
    World,
    draw,
    made_sections,
    real_sections,
    shares,
    week_after_week,
)

STRENGTHS = {"no cycle": 0.0, "a weekly cycle": 0.8, "a cycle half as strong again": 1.2}
FALLS = (0.05, 0.1)
"""Of the mean over all rows, for what one section lost."""
HISTORY = 56
"""Nights before a drop."""
WAYS = {
    "as they are": lambda: World(mix_tags=()),
    "like with like": World,
    "like with like, no tags": lambda: World(tagged=False),
}


@dataclass(frozen=True)
class Unchanged:
    """On how many unchanged nights an alert fired, or was firing."""

    nights: int
    fired: int
    firing: int


def unchanged(world: World, sections: Sections, strength: float, nights: int, seed: int) -> Unchanged:
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
    first: int
    second: int


def found(
    way: str, sections: Sections, strength: float, fall: float, trials: int, seed: int
) -> Found:
    """One section loses so much that the mean over all rows is lower by `fall`, for two nights."""
    random = np.random.default_rng(seed)
    nights = week_after_week(random, sections, strength)
    world, mixes, names = WAYS[way](), shares(sections, strength), list(sections)
    for one in islice(nights, HISTORY):
        world.add(one)
    first = second = 0
    for trial in range(trials):
        drops = np.random.default_rng((seed, trial))
        # A section of which there is enough to lose on either night.
        own, days = world.copy(), [(len(world.nights) + ahead) % 7 for ahead in (0, 1)]
        lost = [
            mixes[day] * [sections[name][:, 0].mean() for name in names] for day in days
        ]
        able = np.flatnonzero(np.minimum(*lost) > 1.3 * fall)
        section = names[drops.choice(able) if len(able) else int(np.argmax(np.minimum(*lost)))]
        fired = []
        for day in days:
            told = own.add(draw(drops, sections, mixes[day]).less(section, fall))
            fired.append(
                any(f.metric == "context_recall" and f.state == "firing" for f in told)
            )
        first, second = first + fired[0], second + any(fired)
        world.add(next(nights))
    return Found(trials, first, second)


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
        for fall in FALLS:
            for way in WAYS:
                seen = found(way, sections, strength, fall, trials, seed)
                yield (
                    f"  {way}: of {seen.trials} drops of {fall} in one section {seen.first} were "
                    f"found on the first night, {seen.second} by the second"
                )
