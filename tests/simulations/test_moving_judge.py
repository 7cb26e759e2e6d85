"""A judge whose level moves from night to night, on questions that never recur: a small form of
`python -m research movement`; about twenty seconds.
"""

from __future__ import annotations

import pytest

from benchmarks.judge_movement import fresh_alarms, fresh_power


@pytest.mark.parametrize("mixed", [False, True], ids=["fresh", "week"])
@pytest.mark.parametrize("rows", [300, 1000])
def test_nights_by_a_judge_that_moves_have_few_false_alarms(rows: int, mixed: bool) -> None:
    """By 0.02 a night; five of 1,000 are the goal, and 3.5 are left for chance."""
    _, before = fresh_alarms(rows, 0.02, 20, mixed=mixed, moving=False)
    early, later = fresh_alarms(rows, 0.02, 20, mixed=mixed)
    assert before > 15
    assert later <= 8.5
    assert early <= 15


def test_nights_by_a_judge_that_does_not_move_keep_their_power() -> None:
    """After three months; three points are the goal, and three are left for chance."""
    before, after = (fresh_power(300, 300, 90, moving=moving) for moving in (False, True))
    assert after >= before - 0.06
