"""A judge whose level moves from night to night: what is said of nights on which nothing changed.

python -m research movement [--rows NIGHTS]

First the five worlds of `unchanged_worlds`, in arrays: the alarms of `max_drop: 0.05`, from the
second night on. `before` leaves out the movement of the nights. The power is that of a drop in one
metric by a judge that does not move; `equal` is the t test without the movement at the level at
which it has as many false alarms as `after` on that night. The constants of the estimate were
chosen on other seeds and on the first world alone.

Then nights of `moving_world`: real per-question scores, by the code of a run. `before` leaves out
how far the judge moves; both see the same nights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from research.all_year_world import Fall, drops
from research.moving_world import LIMIT, METRICS, Golden, Values, World, real_scores
from research.night_rows import Flags, Numbers
from research.unchanged_worlds import WORLDS, batches
from ragmetrics.records import Manifest

LEVELS = (0.0, 0.01, 0.02)
ROWS = (100, 300, 1000)
FALLS = {100: 0.15, 300: 0.1, 1000: 0.07}
"""A drop that the rules find on the first night more often than not, by rows."""
LEVEL, FIRST, NIGHTS, SEED = 0.01, 28, 128, 15
"""`false_alarms` by default; nights without alarms that are counted, and all nights of a world."""
HISTORY = 28
DROP = 0.1
"""Share of the questions that lose 0.5: a drop of 0.05."""


@dataclass(frozen=True)
class Pairs:
    """Of unchanged pairs of nights, or of pairs with a drop, those called sure at 95%."""

    pairs: int
    before: Mapping[str, int]
    after: Mapping[str, int]


def worlds(max_drop: float = LIMIT, history: int = HISTORY) -> tuple[World, World]:
    """Without and with what is known of the judge's movement."""
    return World(False, max_drop, history), World(True, max_drop, history)


def fired(night: Manifest) -> set[str]:
    """The metrics whose alert fired on a night."""
    return {one.metric for one in night.findings if one.transition == "fired" and one.metric}


def pairs(golden: Golden, nights: int, history: int = HISTORY) -> Pairs:
    """Each night against the one before it, after a history."""
    both = worlds()
    for _ in range(history + nights):
        values = golden.night()
        for world in both:
            world.add(values, ruled=False)
    counts = [_sure(world.nights[history:]) for world in both]
    return Pairs(nights, *counts)


def _sure(nights: Sequence[Manifest]) -> dict[str, int]:
    """By metric, the moves whose interval excludes 0."""
    moves = [move for one in nights for move in one.moves]
    return {
        name: sum(not one.low <= 0 <= one.high for one in moves if one.metric == name)
        for name in METRICS
    }


def alarms(golden: Golden, nights: int, max_drop: float, history: int = HISTORY) -> list[int]:
    """On how many unchanged nights an alert fired, without and with the estimate."""
    both, counts = worlds(max_drop), [0, 0]
    for number in range(history + nights):
        values = golden.night()
        for place, world in enumerate(both):
            night = world.add(values)
            counts[place] += number >= history and bool(fired(night))
    return counts


@dataclass(frozen=True)
class Power:
    """Of the trials with a drop of 0.05 in each metric, those in which it was found, by metric."""

    trials: int
    pairs: tuple[Mapping[str, int], Mapping[str, int]]
    """By the interval of two nights,"""
    alerts: tuple[Mapping[str, int], Mapping[str, int]]
    """and by the alert on the first night."""


def power(golden: Golden, trials: int, history: int = HISTORY) -> Power:
    """A drop of 0.05 on the night after a history of unchanged nights, on one night after another.

    The alerts are those of `max_drop: 0.03`: a limit of 0.05 finds a drop of 0.05 every other time.
    """
    both, sure = worlds(0.03, history), [dict.fromkeys(METRICS, 0) for _ in range(2)]
    alerted = [dict.fromkeys(METRICS, 0) for _ in range(2)]
    for number in range(history + trials):
        values, fallen = golden.night(), golden.night(DROP)
        for place, world in enumerate(both):
            if number >= history:
                night = world.would_be(fallen)
                for move in night.moves:
                    sure[place][move.metric] += move.high < 0
                for metric in fired(night):
                    alerted[place][metric] += 1
            world.add(values, ruled=False)
    return Power(trials, (sure[0], sure[1]), (alerted[0], alerted[1]))


def unchanged_alarms(
    world: str, rows: int, sd: float, worlds: int, *, moving: bool = True, seed: int = SEED
) -> tuple[float, float]:
    """Nights of 1,000 on which an alert fires though nothing changed but the judge's level: of the
    first four weeks, and later.
    """
    counts, nights = np.zeros(2), np.zeros(2)
    for batch in batches(world, seed, worlds, rows, NIGHTS, sd):
        told = drops(batch, LEVEL, in_time=False, moving=moving, first=1)
        begun: Flags = np.asarray(told.begun.any(axis=1))
        early = batch.days < FIRST
        counts += begun[:, early].sum(), begun[:, ~early].sum()
        nights += len(begun) * (int(early.sum()) - 1), len(begun) * int((~early).sum())
    first, later = (1_000 * counts / nights).tolist()
    return first, later


@dataclass(frozen=True)
class Told:
    """Share of the drops that are told on their first night."""

    before: float
    equal: float
    after: float
    level: float
    """Of `equal`."""


def power_after(rows: int, worlds: int, nights: int, seed: int = SEED) -> Told:
    """The power of a drop after so many nights by a judge that does not move, on fresh traffic."""
    fall = Fall(FALLS[rows], nights)
    chances: dict[tuple[bool, bool], list[Numbers]] = defaultdict(list)
    for fell in (False, True):
        for batch in batches("fresh", seed, worlds, rows, nights + 1, 0.0, fall if fell else None):
            for moving in (False, True):
                last = int(np.searchsorted(batch.days, nights))
                found = drops(batch, LEVEL, in_time=False, moving=moving, first=last)
                chances[moving, fell].append(found.best[:, -1])
    best = {which: np.concatenate(parts) for which, parts in chances.items()}
    level = float(np.quantile(best[False, False], (best[True, False] < LEVEL).mean()))
    before, equal, after = (
        float((best[moving, True] < one).mean())
        for moving, one in ((False, LEVEL), (False, level), (True, LEVEL))
    )
    return Told(before, equal, after, level)


def _worlds(worlds: int) -> Iterator[str]:
    for world in WORLDS:
        for rows in ROWS:
            for sd in LEVELS:
                before, after = (
                    ", ".join(
                        f"{one:.1f}"
                        for one in unchanged_alarms(world, rows, sd, worlds, moving=moving)
                    )
                    for moving in (False, True)
                )
                yield (
                    f"{world}, {rows} rows, judge SD {sd}: nights of 1,000 unchanged ones on which "
                    f"an alert fired (first four weeks, later): {before} before, {after} after"
                )
    for rows in ROWS:
        for nights in (FIRST, 90):
            told = power_after(rows, 50 * worlds, nights)
            yield (
                f"fresh, {rows} rows, judge SD 0, a drop of {FALLS[rows]} after {nights} nights, "
                f"told on the first: {told.before:.1%} before, {told.equal:.1%} equal "
                f"({told.level:.4f}), {told.after:.1%} after"
            )


def report(nights: int, trials: int, seed: int = 15) -> Iterator[str]:
    """All figures, line by line, before and after side by side."""
    yield from _worlds(max(1, 2 * nights // 5))
    scores = real_scores()
    for sd in LEVELS:
        golden = Golden(scores, sd, np.random.default_rng(seed))
        found = pairs(golden, nights)
        told = ", ".join(_both(name, found.before, found.after, found.pairs) for name in METRICS)
        yield f"judge SD {sd}: unchanged pairs of nights said to differ at 95%: {told}"
    for sd in LEVELS:
        for limit in (0.05, 0.03):
            golden = Golden(scores, sd, np.random.default_rng(seed))
            before, after = alarms(golden, nights, limit)
            yield (
                f"judge SD {sd}: max_drop {limit} versus trailing:7, {nights} unchanged nights: an "
                f"alert fired on {before} before, {after} after"
            )
    yield from _power(scores, trials, seed)


def _power(scores: Mapping[str, Values], trials: int, seed: int) -> Iterator[str]:
    for history in (HISTORY, 10):
        golden = Golden(scores, 0.0, np.random.default_rng(seed))
        found = power(golden, trials, history)
        for what, (before, after) in (
            ("by the interval of two nights", found.pairs),
            ("by the alert (max_drop 0.03) on the first night", found.alerts),
        ):
            told = ", ".join(_both(name, before, after, trials) for name in METRICS)
            yield f"judge SD 0, a drop of 0.05 after {history} nights, found {what}: {told}"


def _both(name: str, before: Mapping[str, int], after: Mapping[str, int], of: int) -> str:
    return f"{name} {before[name] / of:.1%} before, {after[name] / of:.1%} after"
