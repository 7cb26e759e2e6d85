"""The error of an offset between judges: what it adds to a drop, and what both have in common."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragmetrics.stats import Drop, OffsetError, compare

SIDE = dict[str, float]


def side(values: np.ndarray, prefix: str = "q") -> SIDE:
    """A value of each question."""
    return {f"{prefix}{place}": float(value) for place, value in enumerate(values)}


def drop_of(before: SIDE, now: SIDE) -> Drop:
    """The drop between two sides."""
    one, other = ({name: [value] for name, value in values.items()} for values in (before, now))
    drop = compare(one, other)
    assert drop
    return drop


RANDOM = np.random.default_rng(3)
OLD = RANDOM.uniform(0.2, 0.6, 200)
NEW = OLD + RANDOM.normal(0.2, 0.1, 200)
BOTH = side(OLD - NEW)
ERROR = float((OLD - NEW).std(ddof=1)) / math.sqrt(200)


def test_without_common_questions_the_variances_are_added() -> None:
    """Of other questions on every side, the offset knows nothing."""
    before, now = side(OLD, "a"), side(OLD, "b")
    drop = drop_of(before, now)
    found = OffsetError(1.0, 0.03, 199, {"c": 0.1, "d": 0.2}).added_to(drop, before, now)
    assert found.error == pytest.approx(math.hypot(drop.error, 0.03))
    assert found.drop == drop.drop
    assert found.low < drop.low < drop.high < found.high


def test_differences_that_are_not_known_count_as_independent() -> None:
    """As for nights whose rows were pruned."""
    before, now = side(OLD), side(NEW)
    drop = drop_of(before, now)
    found = OffsetError(0.5, 0.02, 99, {}).added_to(drop, before, now)
    assert found.error == pytest.approx(math.hypot(drop.error, 0.01))


def test_a_night_that_both_judged_has_the_error_of_the_old_judge() -> None:
    """All questions of tonight by both judges: the new verdicts cancel."""
    random = np.random.default_rng(4)
    earlier = side(OLD + random.normal(0, 0.2, 200) - (OLD - NEW).mean())
    drop = drop_of(earlier, side(NEW))
    found = OffsetError(1.0, ERROR, 199, BOTH).added_to(drop, earlier, side(NEW))
    by_old = drop_of(
        {name: value + (OLD - NEW).mean() for name, value in earlier.items()}, side(OLD)
    )
    assert found.error == pytest.approx(by_old.error, rel=0.15)
    assert found.error < drop.error


def test_verdicts_that_agree_leave_half_a_question_of_error() -> None:
    """The error is never 0."""
    before = side(OLD - (OLD - NEW).mean())
    drop = drop_of(before, side(NEW))
    found = OffsetError(1.0, ERROR, 199, BOTH).added_to(drop, before, side(NEW))
    assert 0 < found.error <= 2 / 201


def test_a_side_without_moved_nights_is_unchanged_but_for_its_test() -> None:
    """No share, no error of an offset."""
    before, now = side(OLD, "a"), side(OLD - 0.1, "b")
    drop = drop_of(before, now)
    found = OffsetError(0.0, 0.5, 199, BOTH).added_to(drop, before, now)
    assert found.error == pytest.approx(drop.error)


def test_a_certain_drop_of_few_questions_stays_certain() -> None:
    """Half a question is the least that common verdicts leave, and no error that a drop without
    them must have.
    """
    before, now = side(np.full(20, 0.9), "a"), side(np.linspace(0.79, 0.81, 20), "b")
    drop = drop_of(before, now)
    found = OffsetError(0.1, 0.001, 199, {"c": 0.1, "d": 0.2}).added_to(drop, before, now)
    assert drop.error < found.error < 1 / 21
    assert found.error == pytest.approx(math.hypot(drop.error, 0.0001))
