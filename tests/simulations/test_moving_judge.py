"""A judge whose level moves from night to night, on questions that never recur: a small form of
`python -m research movement`; about twenty seconds.
"""

from __future__ import annotations

import pytest

from research.judge_movement import power_after, unchanged_alarms


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
