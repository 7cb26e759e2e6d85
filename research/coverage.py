"""Coverage of the intervals, power at the detectable effect: `python -m research intervals`.

A night's true mean is drawn, 0.3 to 0.7 in the middle and 0.01 to 0.03 (0.97 to 0.99) at an end:
at one fixed mean zeros and ones have no coverage of their own, as a mean of thirty of them takes
few values. Its scores are then drawn around it:

    binary      1 with the chance m, else 0
    graded      0.5 with the chance min(m, 1 - m), and as many 0 and 1 as make the mean m
    continuous  Beta(30 m, 30 (1 - m)), which at m = 0.02 has a skewness of 2.4

Each question has one row, or 1 to 10 rows with equal chances, of which each has the question's
score with a chance of 0.9 and else one of its own (correlation 0.81). n counts questions, and in
the last block rows, of 1 to 10 a question.

The interval of a drop is held against the truth where questions move as `DROPS` says; the last
kind is beyond any interval, as of thirty questions every other night shows none of those that fell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats import ALPHA, CONFIDENCE, compare, mean_interval
from ragmetrics.stats.t_test import POWER, MeanDifference

NIGHTS = 2_000
LEAST, MOST = 0.93, 0.97
"""Of the coverage."""
SEED = 20_071
MEANS = {"0.02": (0.01, 0.03), "middle": (0.3, 0.7), "0.98": (0.97, 0.99)}
KINDS = ("graded", "binary", "continuous")
SIZES = (30, 100, 1_000)
LAYOUTS = ("one row each", "1-10 rows each", "n counts rows")
CONCENTRATION = 30.0
COPIES = 0.9
MOST_ROWS = 10
_ROUNDING = 1e-9

Floats = NDArray[np.float64]
Codes = NDArray[np.int_]


@dataclass(frozen=True)
class Cell:
    """One kind of night."""

    kind: str
    mean: str
    n: int
    layout: str


@dataclass(frozen=True)
class Covered:
    """What became of a cell's nights."""

    cell: Cell
    share: float | None
    """Of the intervals that hold the truth; None where there was none."""
    width: float
    told: float
    """Share of the nights that have an interval."""
    t_share: float
    """Coverage of the plain m +/- t * se, as it is usually shown."""


def cells() -> list[Cell]:
    """All of them."""
    return [Cell(*one) for one in product(KINDS, MEANS, SIZES, LAYOUTS)]


def draw_scores(kind: str, mean: float, count: int, random: np.random.Generator) -> Floats:
    """So many independent scores with this mean."""
    if kind == "continuous":
        return random.beta(CONCENTRATION * mean, CONCENTRATION * (1 - mean), count)
    half = min(mean, 1 - mean) if kind == "graded" else 0.0
    chance = random.random(count)
    ones = mean - half / 2
    return np.where(chance < ones, 1.0, np.where(chance < ones + half, 0.5, 0.0))


def draw_clusters(layout: str, n: int, random: np.random.Generator) -> Codes:
    """The question of each row."""
    if layout == "one row each":
        return np.arange(n)
    rows = random.integers(1, MOST_ROWS + 1, n)
    clusters = np.repeat(np.arange(n), rows)
    return clusters[:n] if layout == "n counts rows" else clusters


def draw_nights(
    cell: Cell, nights: int, random: np.random.Generator
) -> Iterator[tuple[Floats, Codes, float]]:
    """Scores, questions and true mean of each night."""
    for _ in range(nights):
        truth = float(random.uniform(*MEANS[cell.mean]))
        clusters = draw_clusters(cell.layout, cell.n, random)
        by_question = draw_scores(cell.kind, truth, int(clusters[-1]) + 1, random)
        own = draw_scores(cell.kind, truth, len(clusters), random)
        copied = random.random(len(clusters)) < COPIES
        yield np.where(copied, by_question[clusters], own), clusters, truth


def cover(cell: Cell, nights: int = NIGHTS, seed: int = SEED) -> Covered:
    """Simulate a cell."""
    held, held_t, width, told = 0, 0, 0.0, 0
    random = np.random.default_rng([seed, *map(ord, repr(cell))])
    for values, clusters, truth in draw_nights(cell, nights, random):
        found = mean_interval(values, clusters)
        if found is None or found.low is None or found.high is None or found.error is None:
            continue
        told += 1
        held += found.low <= truth <= found.high
        width += found.high - found.low
        t = float(special.stdtrit(found.clusters - 1, 0.5 + CONFIDENCE / 2))
        held_t += abs(found.mean - truth) <= t * found.error
    share = held / told if told else None
    return Covered(cell, share, width / max(told, 1), told / nights, held_t / max(told, 1))


@dataclass(frozen=True)
class Moves:
    """How questions move between two nights: some fall or rise by as far, some by noise."""

    far: float = 0.0
    falls: float = 0.0
    """Share of those that fall so far,"""
    rises: float = 0.0
    """that rise so far,"""
    noisy: float = 0.0
    """and that move by noise with this mean and standard deviation."""
    mean: float = 0.0
    spread: float = 0.0

    @property
    def drop(self) -> float:
        """The true one."""
        return self.far * (self.falls - self.rises) + self.noisy * self.mean

    def draw(self, n: int, random: np.random.Generator) -> Floats:
        """How far each of n questions fell."""
        chance = random.random(n)
        steps = self.far * ((chance < self.falls) * 1.0 - (chance > 1 - self.rises))
        noise = (random.random(n) < self.noisy) * random.normal(self.mean, self.spread, n)
        return np.clip(steps + noise, -1, 1)


DROPS: Mapping[str, Moves] = {
    "1 question in 50 loses 1": Moves(1.0, 0.02),
    "1 in 20 loses 0.5": Moves(0.5, 0.05),
    "1 in 10 loses 0.5": Moves(0.5, 0.1),
    "1 in 5 loses 0.5, 1 in 10 gains it": Moves(0.5, 0.2, 0.1),
    "15% move, SD 0.02": Moves(noisy=0.15, spread=0.02),
    "the same, and 1 in 10 loses 0.5": Moves(0.5, 0.1, noisy=0.15, spread=0.02),
    "all move, SD 0.05": Moves(noisy=1.0, spread=0.05),
    "all lose 0.05, SD 0.02": Moves(noisy=1.0, mean=0.05, spread=0.02),
    "the noise, and 1 in 50 loses 1": Moves(1.0, 0.02, noisy=0.15, spread=0.02),
}
DROP_SIZES = (30, 100, 300, 1_000)


def cover_drop(moves: Moves, n: int, nights: int = NIGHTS, seed: int = SEED) -> tuple[float, float]:
    """How often the interval of a paired drop of n questions holds the truth, and that of t."""
    random = np.random.default_rng([seed, n, *map(ord, repr(moves))])
    names, held, held_t = [f"q{number}" for number in range(n)], 0, 0
    for _ in range(nights):
        lost = moves.draw(n, random)
        sides = ((1 + sign * lost[:, None]) / 2 for sign in (1, -1))
        found = compare(*(dict(zip(names, side.tolist(), strict=True)) for side in sides))
        assert found is not None
        low, high = MeanDifference.paired(lost).interval(CONFIDENCE)
        held += found.low - _ROUNDING <= moves.drop <= found.high + _ROUNDING
        held_t += low - _ROUNDING <= moves.drop <= high + _ROUNDING
    return held / nights, held_t / nights


def power(paired: bool, n: int, nights: int = NIGHTS, seed: int = SEED) -> float:
    """How often a drop of the detectable size is found, by comparisons of n questions."""
    random = np.random.default_rng([seed, n, paired])
    names = [f"q{number}" for number in range(n)]
    later = names if paired else [f"other {name}" for name in names]
    sides = []
    for _ in range(nights):
        before = draw_scores("continuous", 0.5, n, random)
        now = draw_scores("continuous", 0.5, n, random)
        sides.append((before, np.where(random.random(n) < 0.8, before, now) if paired else now))

    def p_and_mde(before: Floats, now: Floats) -> tuple[float, float]:
        pairs = (zip(names, before[:, None], strict=True), zip(later, now[:, None], strict=True))
        found = compare(*(dict(side) for side in pairs))
        assert found is not None
        return found.p_value, found.mde

    effect = float(np.mean([p_and_mde(*one)[1] for one in sides]))
    return float(np.mean([p_and_mde(before, now - effect)[0] < ALPHA for before, now in sides]))


def power_of_a_limit(n: int, nights: int = NIGHTS, seed: int = SEED) -> float:
    """How often a limit is told from the mean that it is as far above as is detectable."""
    random = np.random.default_rng([seed, n])
    drawn = [draw_scores("graded", 0.65, n, random) for _ in range(nights)]
    both = [mean_interval(x, np.arange(n), confidence=1 - 2 * ALPHA) for x in drawn]
    found = [one for one in both if one is not None]
    limit = 0.65 + float(np.mean([one.mde for one in found if one.mde is not None]))
    return float(np.mean([one.high is not None and one.high < limit for one in found]))


def table(found: list[Covered], layout: str) -> str:
    """The coverage of a layout as Markdown, that of the plain t interval in brackets."""
    by_cell = {one.cell: one for one in found}
    lines = [f"| {layout} | {' | '.join(f'n = {n:,}' for n in SIZES)} |", "|---" * 4 + "|"]
    for kind, mean in product(KINDS, MEANS):
        cells = [_told(by_cell[Cell(kind, mean, n, layout)]) for n in SIZES]
        lines.append(f"| {kind}, {mean} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _told(one: Covered) -> str:
    if one.share is None:
        return "no interval"
    mark = "" if LEAST <= one.share <= MOST else " **outside**"
    few = "" if one.told > 0.999 else f" of {one.told:.0%}"
    return f"{one.share:.1%}{few}{mark} ({one.t_share:.1%})"


def report(nights: int = NIGHTS) -> Iterator[str]:
    """All figures, block by block."""
    for layout in LAYOUTS:
        found = [cover(cell, nights) for cell in cells() if cell.layout == layout]
        yield f"{table(found, layout)}\n"
    yield f"| a drop | {' | '.join(f'n = {n:,}' for n in DROP_SIZES)} |\n{'|---' * 5}|"
    for kind, moves in DROPS.items():
        shares = (cover_drop(moves, n, nights) for n in DROP_SIZES)
        told = (f"{share:.1%} ({t_share:.1%})" for share, t_share in shares)
        yield f"| {kind} | {' | '.join(told)} |"
    yield f"\nPower at the detectable effect (nominal {POWER:.0%}):"
    for n in (30, 100, 300):
        yield (
            f"{n:>5} questions: paired {power(True, n, nights):.1%}, "
            f"unpaired {power(False, n, nights):.1%}, "
            f"a mean against a limit {power_of_a_limit(n, nights):.1%}"
        )
