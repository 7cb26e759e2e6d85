"""A judge whose level moves from night to night, on questions that never recur: a small form of
`python -m research movement`; about twenty seconds.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from ragmetrics.comparison.gate.measured_drop import measure
from ragmetrics.records import JudgeMovement, Manifest
from ragmetrics.rules import correct_drop
from ragmetrics.rules.level_series import movement_of
from ragmetrics.rules.sides import level_by_movement
from ragmetrics.stats import compare
from research.judge_movement import power_after, unchanged_alarms
from research.moving_world import World

RECALL = "context_recall"


@pytest.mark.parametrize(
    ("world", "rows"), [("fresh", 300), ("week", 1000), ("golden", 100), ("zipf", 100)]
)
def test_nights_by_a_judge_that_moves_have_few_false_alarms(world: str, rows: int) -> None:
    """By 0.02 a night; five of 1,000 are the goal, and 3.5 are left for chance."""
    _, before = unchanged_alarms(world, rows, 0.02, 20, moving=False)
    early, later = unchanged_alarms(world, rows, 0.02, 20)
    assert before > 12
    assert later <= 8.5
    assert early <= 10


@pytest.mark.parametrize(("rows", "nights", "most"), [(300, 90, 0.12), (1_000, 28, 0.07)])
def test_nights_by_a_judge_that_does_not_move_keep_their_power(
    rows: int, nights: int, most: float
) -> None:
    """A level that holds costs seven points after three months, or four after four weeks of many
    rows; the rest is left for chance.
    """
    told = power_after(rows, 1_000, nights)
    assert told.after >= told.before - most


def two_nights() -> list[Manifest]:
    """Two nights whose verdicts a judge behind an API gave, each on its own day."""
    world = World()
    for _ in range(2):
        world.add({RECALL: np.linspace(0, 1, 30)}, ruled=False)
    return world.nights


def known_after(nights: int, random: np.random.Generator) -> JudgeMovement:
    """What the manifest of a night says of a judge that moves by 0.02, after nights of 1,000 new
    questions.
    """
    levels = 0.7 + random.normal(0, 0.02, nights)
    means = random.binomial(1_000, levels) / 1_000
    errors = np.full(nights, (0.7 * 0.3 / 1_000) ** 0.5)
    spread = movement_of(np.arange(nights), means, errors)
    assert spread
    found = {"level": spread.error, "level_freedom": spread.freedom, "level_seen": spread.is_seen}
    return JudgeMovement(sd=None, nights=1, **found)


def test_two_nights_of_other_questions_differ_no_more_often_than_they_should() -> None:
    """A comparison knows the levels of the nights, where no question recurs to show the judge."""
    random, (before, now) = np.random.default_rng(16), two_nights()
    sure = np.zeros(2)
    for _ in range(200):
        known = known_after(28, random)
        old, new = (random.binomial(1, 0.7 + random.normal(0, 0.02), 1_000) for _ in range(2))
        drop = compare(
            *(
                {f"{side}{n}": [float(x)] for n, x in enumerate(values)}
                for side, values in (("a", old), ("b", new))
            )
        )
        assert drop
        for place, movement in enumerate((JudgeMovement(sd=None, nights=1), known)):
            found = correct_drop(drop, RECALL, [before], [now], movement)
            sure[place] += not found.low <= 0 <= found.high
    assert sure[0] / 200 > 0.15
    assert sure[1] / 200 <= 0.08


def test_a_gate_counts_the_level_of_nights_until_the_judge_is_known() -> None:
    """Two builds that were judged on two days, on the same 100 questions: half of their moves are
    no regression.
    """
    random, (before, now) = np.random.default_rng(17), two_nights()
    known, sure = known_after(28, random), np.zeros(2)
    for _ in range(200):
        ease = random.uniform(0.3, 0.7, 100)
        old, new = (ease + random.normal(0, 0.02) + random.normal(0, 0.05, 100) for _ in range(2))
        sides = [{f"q{n}": [float(x)] for n, x in enumerate(side)} for side in (old, new)]
        for place, movement in enumerate((None, known)):
            level_of = partial(
                level_by_movement, metric=RECALL, before=[before], now=[now], movement=movement
            )
            found = measure(*sides, level_of)
            assert found
            sure[place] += found.p_value < 0.05
    assert sure[0] / 200 > 0.2
    assert sure[1] / 200 <= 0.08
