"""Alarms that hold all year: false alarms a year, slow declines and sudden drops, by the budget.

python -m research all-year [--rows YEARS]

The years are those of `all_year_world`: 365 nights, whose mix goes by weekday and season and
drifts, with a judge that moves by 0.01 a night. The last lines are of the rules and the state
machine of a run, on nights of `weekday_world`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from research.all_year_world import (
    WOBBLE,
    Fall,
    Found,
    Years,
    decline_alarms,
    declines,
    drops,
    years,
)
from research.night_rows import Flags, Numbers
from research.weekday_world import World, draw, made_sections, real_sections, shares
from ragmetrics.config import AlertSettings
from ragmetrics.rules.decline_test import (night_levels)

BUDGETS: Mapping[str, AlertSettings] = {
    "1 per year": AlertSettings(false_alarms="1 per year"),
    "4 per year": AlertSettings(false_alarms="4 per year"),
    "0.01": AlertSettings(),
}
MOST = 15.0
"""Largest budget, in false alarms a year, that is compared with 0.01."""
ROWS = (100, 300, 1000)
START, LENGTH = 120, 30
"""First night of a fall, and the nights of a slow one."""
SLOW = Fall(0.05, START, LENGTH)
BATCHES = 10
SUDDEN = (0.05, 0.1)
THRESHOLD = 2 * 365 / 0.25
"""Of the e-detector: less than 0.125 false alarms a year in each of two metrics, if its assumptions
held."""
LEVELS = {"the same level each night": 0.0, "LORD++ at 0.05": 0.05, "LORD++ at 0.5": 0.5}
"""False discovery rates of LORD++."""
CORRELATIONS = (0.5, 0.8)
"""Correlation of the judge's levels on successive nights, which the test does not assume."""


def false_alarms(
    simulated: Years, budget: AlertSettings, found: Found | None = None
) -> tuple[float, float, float]:
    """False alarms a year: by the drop rules, by slow declines, and nights with either. `found` are
    the declines, where they are known.
    """
    rules = _by_rules(simulated, budget)
    slow = decline_alarms(found or declines(simulated), budget.decline_level)
    return _a_year(rules), _a_year(slow), _a_year(rules | slow)


def _by_rules(simulated: Years, budget: AlertSettings) -> Flags:
    return drops(simulated, budget.rules_level, in_time=budget.per_time).begun


def _a_year(begun: Flags) -> float:
    """Nights a year on which an alert of some metric begins to fire."""
    return float(begun.any(axis=1).sum(axis=1).mean())


def slow_declines(random: np.random.Generator, count: int, rows: int) -> Mapping[str, Numbers]:
    """By budget: the share of declines of 0.05 over 30 nights that were told by the end of the
    fall, and within 30 nights of its end; and the median number of nights.
    """
    first: dict[str, list[Numbers]] = {name: [] for name in BUDGETS}
    for simulated in _batches(random, count, rows, SLOW, START + 2 * LENGTH):
        found = declines(simulated, START)
        for name, one in BUDGETS.items():
            begun = decline_alarms(found, one.decline_level)[:, 0]
            first[name].append(_first_night(begun, simulated))
    return {name: _told(own, (30, 60)) for name, own in first.items()}


def sudden_drops(
    random: np.random.Generator,
    count: int,
    rows: int,
    by: float,
    budgets: Mapping[str, AlertSettings] = BUDGETS,
) -> Mapping[str, tuple[Numbers, Numbers]]:
    """By budget: the share of drops that the rules told on the first night, by the third and by the
    seventh, and that rules or slow declines told by the 14th and the 21st; and the median numbers
    of nights.
    """
    fired: dict[str, list[Numbers]] = {name: [] for name in budgets}
    either: dict[str, list[Numbers]] = {name: [] for name in budgets}
    for simulated in _batches(random, count, rows, Fall(by, START), START + 28):
        slow = declines(simulated, START)
        for name, one in budgets.items():
            own = _first_night(_by_rules(simulated, one)[:, 0], simulated)
            begun = decline_alarms(slow, one.decline_level)[:, 0]
            fired[name].append(own)
            either[name].append(np.minimum(own, _first_night(begun, simulated)))
    return {
        name: (_told(fired[name], (1, 3, 7)), _told(either[name], (14, 21))) for name in budgets
    }


def equal_budget(simulated: Years) -> tuple[str, AlertSettings]:
    """The budget in time that has as many false alarms in these years as a share of nights of 0.01,
    to a tenth a year, at most 15; with its name.
    """
    found = declines(simulated)
    most = false_alarms(simulated, BUDGETS["0.01"], found)[2]
    low, high = 1.0, MOST
    while high - low > 0.1:
        middle = (low + high) / 2
        budget = AlertSettings(false_alarms=f"{middle:.2f} per year")
        more = false_alarms(simulated, budget, found)[2] > most
        low, high = (low, middle) if more else (middle, high)
    name = f"{(low + high) / 2:.1f} per year"
    return name, AlertSettings(false_alarms=name)


def _batches(
    random: np.random.Generator, count: int, rows: int, fall: Fall, nights: int
) -> Iterator[Years]:
    """The years in batches, because those of one batch lack the same nights."""
    for size in map(len, np.array_split(np.arange(count), min(count, BATCHES))):
        yield years(random, size, rows, fall, nights)


def _first_night(begun: Flags, simulated: Years) -> Numbers:
    """The number of the night after the start on which each was told; infinite if never."""
    ago = simulated.days - START
    after = begun & (ago >= 0)
    return np.where(after.any(axis=1), ago[after.argmax(axis=1)] + 1.0, np.inf)


def _told(first: Sequence[Numbers], by: Sequence[int]) -> Numbers:
    """The shares that were told by some nights after the start, and the median night."""
    found = np.concatenate(first)
    return np.array([*((found <= night).mean() for night in by), np.median(found)])


def lord_levels(best: Numbers, target: float) -> Numbers:
    """LORD++ (Ramdas and others 2017) on the smallest q of each night: the level of each night."""
    nights = np.arange(1, best.shape[1] + 1)
    gamma = np.log(np.maximum(nights, 2)) / (nights * np.exp(np.sqrt(np.log(nights))))
    gamma /= gamma.sum()
    found = np.zeros_like(best)
    for year, chances in enumerate(best):
        rejected: list[int] = []
        for night, chance in enumerate(chances):
            level = gamma[night] * target / 2
            level += sum(
                gamma[night - one - 1] * (target / 2 if n == 0 else target)
                for n, one in enumerate(rejected)
            )
            found[year, night] = level
            if chance < level:
                rejected.append(night)
    return found


def e_detector(simulated: Years, threshold: float, first: int = 60) -> Flags:
    """Shiryaev-Roberts e-detector (Shin, Ramdas and Rinaldo 2022) of three sizes of a fall, on the
    levels of the first metric against the nights 30 to 90 days before: where it exceeds.
    """
    levels = night_levels(simulated.questions[:, 0], simulated.means[:, 0], 14)
    sizes, sums = np.array([0.25, 0.5, 1.0]), np.zeros((len(levels), 3))
    above = np.zeros(levels.shape, dtype=bool)
    for night in range(first, levels.shape[1]):
        past = levels[:, max(0, night - 90) : max(first, night - 30)]
        fell = (past.mean(axis=1) - levels[:, night]) / past.std(axis=1, ddof=1)
        sums = (sums + 1) * np.exp(sizes * fell[:, None] - sizes**2 / 2)
        above[:, night] = sums.mean(axis=1) > threshold
    return above


def real_years(
    count: int, nights: int, budget: AlertSettings, fall: Fall | None, seed: int
) -> list[list[tuple[int, str]]]:
    """The alerts that fire by the rules of a run, of each year: the night and the kind."""
    sections = real_sections() or made_sections(np.random.default_rng(seed))
    mixes, found = shares(sections, 0.42), []
    for year in range(count):
        random, world = np.random.default_rng((seed, year)), World(settings=budget)
        fired: list[tuple[int, str]] = []
        for night in range(nights):
            level = random.normal(0, WOBBLE)
            if fall and night >= fall.start:
                level -= fall.by * min(1.0, (night - fall.start + 1) / fall.nights)
            drawn = draw(random, sections, mixes[night % 7]).moved(random, level)
            fired += [(night, one.kind) for one in world.add(drawn) if one.transition == "fired"]
        found.append(fired)
    return found


def report(count: int, seed: int = 22) -> Iterator[str]:
    """All figures, line by line."""
    yield from _quiet(count, seed)
    for rows in ROWS:
        told = slow_declines(np.random.default_rng(seed), count, rows)
        yield f"{rows} rows, a fall of 0.05 over 30 nights, told by its end, by 30 later, median:"
        yield from (f"  {name}: {_shares(one)}" for name, one in told.items())
    for by in SUDDEN:
        for rows in ROWS:
            seen = sudden_drops(np.random.default_rng(seed), count, rows, by)
            yield (
                f"{rows} rows, a sudden drop of {by}: told by the rules on night 1, by 3, by 7, "
                "median; by rules or as a slow decline by 14, by 21, median:"
            )
            for name, (fired, either) in seen.items():
                yield f"  {name}: {_shares(fired)}; {_shares(either)}"
    yield from _equal(count, seed)
    yield from _ways(count, seed)
    yield from _real(seed)


def _quiet(count: int, seed: int) -> Iterator[str]:
    for rows in ROWS:
        start = time.perf_counter()
        simulated = years(np.random.default_rng(seed), count, rows)
        found = declines(simulated)
        for name, one in BUDGETS.items():
            rules, slow, both = false_alarms(simulated, one, found)
            yield (
                f"{rows} rows, {count} quiet years, false_alarms {name}: {both:.2f} false alarms "
                f"a year, {rules:.2f} by drop rules, {slow:.2f} by slow declines"
            )
        yield f"  ({time.perf_counter() - start:.0f} s)"
    for correlation in CORRELATIONS:
        for rows in ROWS:
            simulated = years(np.random.default_rng(seed), count, rows, correlation=correlation)
            found = declines(simulated)
            for name in ("1 per year", "4 per year"):
                rules, slow, both = false_alarms(simulated, BUDGETS[name], found)
                yield (
                    f"{rows} rows, judge correlated by {correlation}, {name}: {both:.2f} false "
                    f"alarms a year, {rules:.2f} by drop rules, {slow:.2f} by slow declines"
                )


def _equal(count: int, seed: int) -> Iterator[str]:
    """Sudden drops at equal false alarms: what the delay of a budget owes to its method."""
    for rows in ROWS:
        quiet = years(np.random.default_rng(seed), count, rows)
        found, budgets = declines(quiet), {"0.01": BUDGETS["0.01"]}
        budgets.update([equal_budget(quiet)])
        yield f"{rows} rows, at equal false alarms: drops told by the rules on night 1, by 3"
        seen = {
            by: sudden_drops(np.random.default_rng(seed), count, rows, by, budgets) for by in SUDDEN
        }
        for name, one in budgets.items():
            alarms = false_alarms(quiet, one, found)[2]
            told = (f"of {by} {_shares(own[name][0][[0, 1, -1]])}" for by, own in seen.items())
            yield f"  {name}: {alarms:.2f} false alarms a year; {'; '.join(told)} (median)"


def _ways(count: int, seed: int) -> Iterator[str]:
    """The other ways: LORD++ for the drop rules, an e-detector for slow declines."""
    late = Fall(0.1, 300)
    quiet = years(np.random.default_rng(seed), count, 100)
    fallen = years(np.random.default_rng(seed), count, 100, late, late.start + 10)
    spread = BUDGETS["1 per year"].rules_level
    for name, target in LEVELS.items():
        fired = []
        for simulated in (quiet, fallen):
            best = drops(simulated, spread, in_time=True).best
            fired.append(best < (lord_levels(best, target) if target else spread))
        told = fired[1][:, (fallen.days >= late.start) & (fallen.days < late.start + 3)].any(axis=1)
        yield (
            f"100 rows, {name}: {fired[0].sum(axis=1).mean():.2f} false alarms a year, "
            f"{told.mean():.0%} of drops of 0.1 after {late.start} nights told within 3"
        )
    for rows in ROWS:
        quiet = years(np.random.default_rng(seed), count, rows)
        slow = years(np.random.default_rng(seed), count, rows, SLOW, START + 2 * LENGTH)
        above = e_detector(quiet, THRESHOLD)
        begun = above[:, 1:] & ~above[:, :-1]
        shown = _told([_first_night(e_detector(slow, THRESHOLD), slow)], (30, 60))
        yield (
            f"{rows} rows, e-detector: {begun.sum(axis=1).mean():.2f} false alarms a year in one "
            f"metric, slow declines told by the end, 30 nights later, median: {_shares(shown)}"
        )


def _real(seed: int) -> Iterator[str]:
    start = time.perf_counter()
    budget = BUDGETS["1 per year"]
    quiet = real_years(4, 365, budget, None, seed)
    yield f"the rules of a run, 4 quiet years of 300 rows: fired {quiet}"
    slow = real_years(10, START + 2 * LENGTH, budget, SLOW, seed)
    told = [[n for n, kind in one if kind == "slow_decline" and n >= START] for one in slow]
    first = [own[0] if own else None for own in told]
    yield f"the rules of a run, 10 falls of 0.05 over 30 nights from night {START}: told on {first}"
    yield f"  ({time.perf_counter() - start:.0f} s)"


def _shares(found: Numbers) -> str:
    return f"{', '.join(f'{one:.1%}' for one in found[:-1])}, {found[-1]:.0f}"
