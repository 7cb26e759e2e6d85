"""Whether levels go by the day of the week, or by the night: checked against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ragmetrics.rules.weekly_cycle import same_level_chance, weekly_chance

WEEKDAYS = [number % 7 for number in range(28)]


def test_a_weekly_cycle_is_scipys_analysis_of_variance() -> None:
    """Four weeks by seven days."""
    levels = np.random.default_rng(1).random(28)
    oracle = stats.f_oneway(*(levels[day::7] for day in range(7)))
    assert weekly_chance(WEEKDAYS, levels.tolist()) == pytest.approx(oracle.pvalue)


def test_nights_of_one_level_are_scipys_analysis_of_variance() -> None:
    """Three nights of other sizes; one without questions says nothing."""
    random = np.random.default_rng(2)
    nights = [random.random(count) for count in (20, 30, 10)]
    oracle = stats.f_oneway(*nights)
    assert same_level_chance([*nights, np.array([])]) == pytest.approx(oracle.pvalue)


@pytest.mark.parametrize("count", [0, 1, 7, 13])
def test_less_than_two_weeks_show_no_cycle(count: int) -> None:
    """A day that was seen once has nothing to be like."""
    levels = [float(day == 5) for day in WEEKDAYS[:count]]
    assert weekly_chance(WEEKDAYS[:count], levels) == 1


def test_equal_nights_and_perfect_cycles() -> None:
    """No spread at all: no cycle where all are equal, a sure one where the days differ."""
    assert weekly_chance(WEEKDAYS, [0.5] * 28) == 1
    assert weekly_chance(WEEKDAYS, [day / 7 for day in WEEKDAYS]) == 0
    assert same_level_chance([np.full(3, 0.5), np.full(3, 0.5)]) == 1
    assert same_level_chance([np.full(3, 0.5), np.full(3, 0.75)]) == 0
    assert same_level_chance([np.full(3, 0.5)]) == 1
