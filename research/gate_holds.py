"""How often a gate holds a build, by its number of golden questions: the exact test beside t.

python -m research gates [--rows DRAWS]

An unchanged build answers the same questions again; a damaged one lost all that a share of them
had. Two metrics, `max_drop: 0.05`, p adjusted over both. `t, 30` is the t test with at least 30
questions, the gate until now; `t` is the t test of any number; `exact` is the gate as it runs, but
for any number of questions (`min_questions` is 20). Worlds:

northwind  real scores of 200 questions on four real runs of one application (`moving_world`)
flips      zeros and ones, mostly ones; one question in five is judged anew
graded     quarters; one question in seven moves by one or two of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from research.moving_world import Values, real_scores
from ragmetrics.comparison.gate.measured_drop import measure
from ragmetrics.comparison.gate.verdict import VerdictEvidence, conclude, weigh
from ragmetrics.stats import ALPHA, FEWEST_FOR_T, adjust_p_values
from ragmetrics.stats.t_test import MeanDifference

SIZES = (8, 12, 16, 20, 25, 29, 30, 40, 60, 100)
LOST = (0.125, 0.25)
"""Share of the questions that a damaged build loses."""
LIMIT = 0.05
Draw: TypeAlias = Callable[[int, np.random.Generator], tuple[Values, Values]]
"""The scores of n questions in two unchanged builds."""


def flips(n: int, random: np.random.Generator) -> tuple[Values, Values]:
    """Zeros and ones."""
    before, again = (random.random((2, n)) < 0.8).astype(float)
    return before, np.where(random.random(n) < 0.2, again, before)


def graded(n: int, random: np.random.Generator) -> tuple[Values, Values]:
    """Quarters, judged twice with the same noise."""
    base = np.ceil(4 * random.random(n) ** 0.3) / 4
    steps = random.choice([-0.5, -0.25, 0.0, 0.25, 0.5], (2, n), p=[0.02, 0.05, 0.86, 0.05, 0.02])
    before, after = np.clip(base + steps, 0, 1)
    return before, after


def repeated(scores: Values) -> Draw:
    """Questions of real runs: each build has one of its runs, drawn by question."""

    def draw(n: int, random: np.random.Generator) -> tuple[Values, Values]:
        chosen = scores[random.permutation(len(scores))[:n]]
        runs = random.integers(0, scores.shape[1], (2, n))
        before, after = chosen[np.arange(n), runs]
        return before, after

    return draw


def worlds(real: Mapping[str, Values] | None) -> dict[str, tuple[Draw, Draw]]:
    """The two metrics of each world; `northwind` only where its scores are given."""
    found: dict[str, tuple[Draw, Draw]] = {"flips": (flips, flips), "graded": (graded, graded)}
    if real is None:
        return found
    own = repeated(real["context_recall"]), repeated(real["context_relevance"])
    return {"northwind": own, **found}


@dataclass(frozen=True)
class Held:
    """Shares of the builds that are held."""

    old: float
    """By the t test with 30 questions,"""
    by_t: float
    """by the t test of any number,"""
    exact: float
    """and by the gate as it runs, whatever the number."""


def held(metrics: Sequence[Draw], n: int, draws: int, lost: float = 0.0, seed: int = 32) -> Held:
    """The shares of builds that are held; the new build lost a share of its questions."""
    random = np.random.default_rng([seed, n, round(1_000 * lost)])
    counts = np.zeros(3)
    for _ in range(draws):
        gone = random.permutation(n) < round(lost * n)
        sides = [
            (before, np.where(gone, 0.0, after)) for before, after in _drawn(metrics, n, random)
        ]
        by_t = _by_t(sides)
        counts += by_t and n >= FEWEST_FOR_T, by_t, _by_gate(sides)
    return Held(*(counts / draws))


def _drawn(
    metrics: Sequence[Draw], n: int, random: np.random.Generator
) -> Iterator[tuple[Values, Values]]:
    return (draw(n, random) for draw in metrics)


def _by_t(sides: Sequence[tuple[Values, Values]]) -> bool:
    drops = [MeanDifference.paired(before - after) for before, after in sides]
    adjusted = adjust_p_values([drop.p_value for drop in drops])
    both = zip(drops, adjusted, strict=True)
    return any(drop.difference > LIMIT and p < ALPHA for drop, p in both)


def _by_gate(sides: Sequence[tuple[Values, Values]]) -> bool:
    if all((before - after).mean() <= LIMIT for before, after in sides):
        return False  # measuring takes most of the time
    evidence = []
    for before, after in sides:
        old, new = ({f"{q:03}": [float(x)] for q, x in enumerate(side)} for side in (before, after))
        fall = measure(old, new)
        evidence.append(VerdictEvidence("", fall, LIMIT, len(before), 0))
    return conclude(weigh(evidence, min_questions=2, max_missing=0.02))[0] == "hold"


def report(draws: int) -> Iterator[str]:
    """The table of all worlds, as Markdown."""
    for name, metrics in worlds(real_scores()).items():
        yield f"{name}: shares of {draws:,} builds that are held, by `t, 30` / `t` / `exact`\n"
        yield "| questions | unchanged | lost 1 in 8 | lost 1 in 4 |\n|---|---|---|---|"
        for n in SIZES:
            found = [held(metrics, n, draws, lost) for lost in (0.0, *LOST)]
            cells = (f"{one.old:.1%} / {one.by_t:.1%} / {one.exact:.1%}" for one in found)
            yield f"| {n} | {' | '.join(cells)} |"
        yield ""
