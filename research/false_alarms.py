"""False alarms and detection: the alert rules, night after night, on nights whose truth is known.

python -m research alarms [--rows NIGHTS]

The nights are those of `alarm_world`, the rules and the state machine those of a run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from research.alarm_world import (
    FALSE_ALARMS,
    KINDS,
    LIMIT,
    QUESTIONS,
    SEGMENTS,
    Golden,
    Values,
    World,
    means,
    population,
    rows_of,
    unchanged_golden,
    unchanged_traffic,
)
from research.all_year_world import drops
from research.unchanged_worlds import default_metrics
from ragmetrics.records import Segment
from ragmetrics.rules import DEFAULT_RULES

LOST, LOSING, LASTING, FALL = 0.5, 30, 0.06, 0.3
FELL_EVERY = 25
DEFAULT_NIGHTS = 60
FALLEN = "graded"


@dataclass(frozen=True)
class Alarms:
    """On how many nights without any change something was found."""

    nights: int
    fired: int
    """On which an alert fired."""
    firing: int
    """On which an alert was firing, new or old."""
    pending: int
    """On which some alert was pending, which nobody is told."""
    plain: int
    """On which some mean was lower than the night before by more than the limit."""


def false_alarms(world: Iterator[tuple[Values, int]], versus: str = "previous") -> Alarms:
    """Hold the rules against nights on which nothing changed."""
    simulated, counts = World(versus), np.zeros(4, dtype=int)
    before: Values | None = None
    nights = 0
    for values, first in world:
        told = simulated.add(values, first)
        now = means(values)
        states = {one.state for one in told}
        counts += [
            any(one.transition == "fired" for one in told),
            "firing" in states,
            "pending" in states,
            before is not None and bool((before - now > LIMIT).any()),
        ]
        before, nights = now, nights + 1
    return Alarms(nights, *counts.tolist())


@dataclass(frozen=True)
class Detection:
    """In how many trials a drop was found on its first night."""

    trials: int
    fired: int
    """The metric's alert fired, over all rows or in some segment."""
    named_by_alerts: int
    """The alerts of the right segment fired, and of no other segment."""
    named_by_carriers: int
    """The right segment is named as the carrier of the drop, and no other."""
    drop: float
    """The true drop over all rows, on average."""


def detection(random: np.random.Generator, trials: int, losing: int, *, segment: bool) -> Detection:
    """One metric loses 0.5 in so many rows of 300, of all or `segment`: of one segment's alone."""
    counts, drops = np.zeros(3, dtype=int), []
    column = list(KINDS).index(FALLEN)
    for _ in range(trials):
        golden, world = Golden(random), World()
        world.add(golden.night())
        where = int(random.integers(SEGMENTS))
        rows = rows_of(where) if segment else np.arange(QUESTIONS)
        base = golden.base[:, column]
        # Rows that have 0.5 to lose; others only where there are not enough.
        order = random.permutation(rows)
        chosen = order[np.argsort(base[order] < LOST, kind="stable")][:losing]
        lost = np.minimum(base[chosen], LOST)
        golden.base[chosen, column] -= lost
        drops.append(lost.sum() / QUESTIONS)
        told = [one for one in world.add(golden.night()) if one.transition == "fired"]
        right = Segment(tag="segment", value=f"s{where}")
        segments = {one.segment for one in told if one.segment}
        named = {(one.tag, one.value) for one in world.carriers(FALLEN).named}
        counts += [
            any(one.metric == FALLEN for one in told),
            segments == {right},
            named == {(right.tag, right.value)},
        ]
    fired, by_alerts, by_carriers = counts.tolist()
    return Detection(trials, fired, by_alerts, by_carriers, float(np.mean(drops)))


@dataclass(frozen=True)
class Lasting:
    """In how many trials a drop that stays was found by its n-th night, and lost again."""

    trials: int
    fired_by: tuple[int, ...]
    resolved: int
    """Told as resolved while the drop was still there."""


def lasting(random: np.random.Generator, trials: int, for_: int, nights: int = 6) -> Lasting:
    """Traffic against the seven nights before, of which one metric of zeros and ones falls."""
    column, fired, resolved = list(KINDS).index("often"), np.zeros(nights, dtype=int), 0
    for _ in range(trials):
        world = World("trailing:7", for_)
        for number in range(7):
            world.remember(population(random), number * QUESTIONS)
        said: list[str | None] = []
        for number in range(7, 7 + nights):
            values = population(random)
            values[:, column] *= random.random(QUESTIONS) > LASTING / values[:, column].mean()
            told = world.add(values, number * QUESTIONS)
            said += [one.transition for one in told if one.metric == "often" and not one.segment]
        fired += ["fired" in said[: number + 1] for number in range(nights)]
        resolved += "resolved" in said
    return Lasting(trials, tuple(fired.tolist()), resolved)


@dataclass(frozen=True)
class Escalations:
    """On how many nights an alert escalated while all fired."""

    nights: int
    """On which nothing changed since the alerts fired,"""
    unchanged: int
    """and on how many of them one of them escalated all the same."""
    trials: int
    """Nights on which every metric lost values again,"""
    worse: int
    """and of these those on which one escalated."""


def escalations(random: np.random.Generator, nights: int, *, golden: bool) -> Escalations:
    """Nights on which every rule fires, told every seven nights; some with a further fall."""
    world, made, counts = World("trailing:7"), Golden(random), [0, 0, 0]
    for number in range(nights + 1):
        values = made.night() if golden else population(random)
        first = 0 if golden else number * QUESTIONS
        if number % FELL_EVERY == 1:
            lower = values * (random.random(values.shape) > FALL)
            counts[1:] = counts[1] + 1, counts[2] + bool(world.escalated(lower, first))
        counts[0] += bool(world.firing(values, first, remind=number % 7 == 0))
    return Escalations(nights, *counts)


def default_rules(rows: int, worlds: int, seed: int = 6) -> tuple[float, float]:
    """Nights of 1,000 unchanged ones on which an alert fires: by the two rules that were the
    default once, and by the six of now.
    """
    nights = default_metrics(np.random.default_rng([seed, rows]), worlds, rows, DEFAULT_NIGHTS)
    two = replace(nights, **{one: getattr(nights, one)[:, :2] for one in ("questions", "means")})
    two = replace(two, squares=None if nights.squares is None else nights.squares[:, :2])
    limits = [rule.max_drop or 0.0 for rule in DEFAULT_RULES]
    first, now = (
        drops(some, FALSE_ALARMS, in_time=False, first=1, limits=own).begun.any(axis=1)
        for some, own in ((two, limits[:2]), (nights, limits))
    )
    return 1_000 * float(np.mean(first)), 1_000 * float(np.mean(now))


def noise(random: np.random.Generator, runs: int = 20) -> tuple[float, float]:
    """What the simulated judge does: rows changing between two runs, mean row SD over runs."""
    golden = Golden(random)
    nights = np.stack([golden.night() for _ in range(runs)])
    return float((nights[0] != nights[1]).mean()), float(nights.std(axis=0, ddof=1).mean())


def report(nights: int, trials: int, seed: int = 6) -> Iterator[str]:
    """All figures, line by line."""
    changing, deviation = noise(np.random.default_rng(seed))
    yield f"judge noise: {changing:.3f} of the rows change, mean SD of a row {deviation:.4f}"
    for name, world, versus in WORLDS:
        start = time.perf_counter()
        found = false_alarms(world(np.random.default_rng(seed), nights), versus)
        yield (
            f"{name}, versus {versus}, {found.nights} unchanged nights: an alert fired on "
            f"{found.fired}, was firing on {found.firing}, pending on {found.pending}; a plain "
            f"comparison of means fires on {found.plain} ({time.perf_counter() - start:.0f} s)"
        )
    for name, losing, segment in DROPS:
        seen = detection(np.random.default_rng(seed), trials, losing, segment=segment)
        where = (
            f", in the right segment alone in {seen.named_by_alerts}; named as the only carrier "
            f"in {seen.named_by_carriers}"
        )
        yield (
            f"{name} lose {LOST}, a drop of {seen.drop:.4f}: fired the first night in {seen.fired} "
            f"of {seen.trials} trials{where if segment else ''}"
        )
    for golden in (True, False):
        rose = escalations(np.random.default_rng(seed), nights, golden=golden)
        yield (
            f"{'golden set' if golden else 'traffic'}, {rose.nights} unchanged nights of firing "
            f"alerts: one escalated on {rose.unchanged}; with a further fall of {FALL:.0%} of the "
            f"values, on {rose.worse} of {rose.trials}"
        )
    for rows in (100, 300):
        two, six = default_rules(rows, max(1, nights // 5))
        yield (
            f"traffic of {rows} rows, nights of 1,000 unchanged ones on which an alert fired: "
            f"{two:.1f} by two rules of max_drop 0.05, {six:.1f} by the six default rules"
        )
    for for_ in (1, 2, 4):
        stayed = lasting(np.random.default_rng(seed), max(1, trials // 10), for_)
        yield (
            f"traffic falls by {LASTING} for good, for: {for_}, versus trailing:7: fired by night "
            f"1, 2, ... in {stayed.fired_by} of {stayed.trials} trials, resolved too early in "
            f"{stayed.resolved}"
        )


WORLDS = (
    ("golden set", unchanged_golden, "previous"),
    ("traffic", unchanged_traffic, "previous"),
    ("traffic", unchanged_traffic, "trailing:7"),
)
DROPS = (
    ("30 rows of 300", LOSING, False),
    ("30 rows, all of one segment,", LOSING, True),
    ("4 rows, all of one segment,", 4, True),
)
