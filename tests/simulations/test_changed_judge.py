"""A judge that replaces another one: a small form of `python -m research judge-change`."""

from __future__ import annotations

import numpy as np
import pytest

from research.judge_change import ROWS, Values, weeks


@pytest.fixture(scope="module")
def pairs() -> Values:
    """Rows that a lenient judge and a strict one score in halves, alike in two of three."""
    random = np.random.default_rng(7)
    old = random.choice([0.0, 0.5, 1.0], size=400, p=[0.2, 0.2, 0.6])
    other = random.choice([0.0, 0.5, 1.0], size=400, p=[0.5, 0.3, 0.2])
    return np.stack([old, np.where(random.random(400) < 0.33, other, old)], axis=1)


@pytest.mark.parametrize("world", ROWS)
def test_the_interval_over_a_change_covers_no_change_of_the_product(
    pairs: Values, world: str
) -> None:
    """In 95% of the nights; the rest is left for chance."""
    found = weeks(pairs, world, 50, changes=True, fallen=False)
    assert found.coverage >= 0.88
    assert found.below <= 0.08


def test_an_unchanged_product_fires_no_more_than_without_the_change(pairs: Values) -> None:
    """One alarm of 15 weeks is left for chance; the level is below 1%."""
    found = weeks(pairs, "fresh", 15, changes=True, fallen=False, ruled=True)
    assert found.fired[-1] <= 1 / 15


def test_questions_that_recur_tell_a_drop_as_soon_as_without_the_change(pairs: Values) -> None:
    """Both judges score all of them, so it is the test of the old judge."""
    changed, without = (
        weeks(pairs, "golden", 6, changes=changes, fallen=True, ruled=True)
        for changes in (True, False)
    )
    assert changed.fired == without.fired
    assert changed.fired[0] >= 0.5
