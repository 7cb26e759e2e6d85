"""Alarms that hold all year: a small form of `python -m research all-year`.

The bounds leave room for chance at these numbers, and none for a test that ignores the weekday, the
mix of questions or the judge's movement: plain means give one false slow decline a year and more.
"""

from __future__ import annotations

import numpy as np

from research.all_year import (
    BUDGETS,
    SLOW,
    equal_budget,
    false_alarms,
    real_years,
    slow_declines,
    sudden_drops,
)
from research.all_year_world import Fall, years


def test_a_budget_holds_in_quiet_years() -> None:
    """One false alarm a year was allowed; twenty years have less than one each."""
    simulated = years(np.random.default_rng(1), 20, 300)
    _, slow, both = false_alarms(simulated, BUDGETS["1 per year"])
    assert both <= 1
    assert slow <= 0.5


def test_a_budget_holds_where_the_judge_keeps_its_level() -> None:
    """Levels correlated by 0.5 from night to night, which steps over three nights show."""
    simulated = years(np.random.default_rng(1), 20, 1000, correlation=0.5)
    assert false_alarms(simulated, BUDGETS["1 per year"])[2] <= 1


def test_a_budget_holds_in_the_first_weeks_of_a_judge_that_moves() -> None:
    """By 0.02 a night, which few nights cannot show: six weeks have less than one false alarm for
    each nine stores. Where a budget took the estimate, 63 of 400 had one.
    """
    simulated = years(np.random.default_rng(22), 400, 1_000, nights=42, wobble=0.02)
    assert false_alarms(simulated, BUDGETS["1 per year"])[0] <= 42 / 365


def test_a_budget_is_as_fast_as_a_share_of_nights_at_equal_false_alarms() -> None:
    """Of drops of 0.1 in 300 rows on the first night; 0.1 is left for chance."""
    name, budget = equal_budget(years(np.random.default_rng(1), 40, 300))
    budgets = {"0.01": BUDGETS["0.01"], name: budget}
    told = sudden_drops(np.random.default_rng(2), 100, 300, 0.1, budgets)
    assert told[name][0][0] >= told["0.01"][0][0] - 0.1


def test_slow_declines_are_told_within_the_month() -> None:
    """With 300 rows a night nine of ten by the end of the fall; with 100 rows 30 nights later."""
    told = slow_declines(np.random.default_rng(2), 60, 300)["1 per year"]
    assert told[0] >= 0.85
    told = slow_declines(np.random.default_rng(2), 60, 100)["1 per year"]
    assert told[1] >= 0.85


def test_the_rules_of_a_run_tell_a_slow_decline() -> None:
    """The same by `evaluate_rules` and the state machine, night after night."""
    early = Fall(SLOW.by, 50, SLOW.nights)
    (fired,) = real_years(1, 95, BUDGETS["1 per year"], early, 3)
    assert any(kind == "slow_decline" and night >= early.start for night, kind in fired)
