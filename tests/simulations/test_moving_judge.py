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


def test_nights_by_a_judge_that_does_not_move_keep_their_power() -> None:
    """After three months a level that holds costs seven points; five are left for chance."""
    told = power_after(300, 1_000, 90)
    assert told.after >= told.before - 0.12
