"""What movement of a level from night to night adds to a drop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.stats import (
    Drop,
    LevelError,
    MeanDifference,
    compare,
    step_between,
    widen_difference,
    with_movement,
)
from tests.fakes.examples import examples


def a_drop(by: float, questions: int = 100, seed: int = 1) -> Drop:
    """Of questions that fell by so much on average."""
    random = np.random.default_rng(seed)
    before = random.uniform(0.4, 0.6, questions)
    lost = random.normal(0, 0.1, questions)
    now = before - lost + lost.mean() - by
    sides = ({f"q{n}": [float(x)] for n, x in enumerate(side)} for side in (before, now))
    found = compare(*sides)
    assert found is not None
    return found


def test_a_step_is_of_the_questions_of_both_nights() -> None:
    """Twenty of them at least; its error is that of their mean difference."""
    before = {f"q{n}": [0.5] for n in range(30)}
    now = {f"q{n}": [0.5 + 0.1 * (n % 2)] for n in range(5, 40)}
    step = step_between(before, now)
    assert step is not None
    assert step.difference == pytest.approx(0.052, abs=1e-6)
    assert step.error == pytest.approx(0.1 * math.sqrt(13 * 12 / 25 / 24) / 5, rel=1e-6)
    assert step_between(before, {f"q{n}": [0.5] for n in range(19)}) is None


# What it adds to a drop


@given(st.floats(-0.1, 0.1), st.floats(0.0001, 0.1), st.floats(1, 30))
@hypothesis_settings(max_examples=examples(60), deadline=None)
def test_a_drop_is_never_surer_for_it(by: float, error: float, freedom: float) -> None:
    """Its interval is wider on both sides, p nearer to a half, and it stays what it is."""
    drop = a_drop(by)
    found = with_movement(drop, LevelError(error, freedom))
    assert found.drop == drop.drop
    assert found.low <= drop.low <= drop.drop <= drop.high <= found.high
    assert abs(found.p_value - 0.5) <= abs(drop.p_value - 0.5) + 1e-12
    assert found.error > drop.error
    assert found.mde > drop.mde


def test_a_judge_that_does_not_move_leaves_the_drop_as_it_is() -> None:
    """So nothing is lost where verdicts are computed here."""
    drop = a_drop(0.05)
    assert with_movement(drop, None) is drop
    assert with_movement(drop, LevelError(0.0, 10.0)) is drop
    contrast = MeanDifference(0.1, 0.02, 10)
    assert widen_difference(contrast, None) is contrast


def test_p_is_that_of_both_errors() -> None:
    """With a p of the t test it is the t test with the error of both."""
    drop = a_drop(0.03)
    own = 0.1 / math.sqrt(100)
    found = with_movement(drop, LevelError(0.015, 1e9))
    expected = widen_difference(MeanDifference(drop.drop, own, 99), LevelError(0.015, 1e9))
    assert found.p_value == pytest.approx(expected.p_value, rel=0.2)
