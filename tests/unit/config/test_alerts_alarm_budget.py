"""`false_alarms` as a budget in time: how it is read, and what it changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.records import Finding
from ragmetrics.rules.dependent_tests import chance_of_any, rule_links
from tests.fakes.past import a_night, fallen, metric_findings, recall, scores, story, uneven

YEAR = "1 per year"


@given(st.integers(1, 100), st.sampled_from([("year", 365.25), ("month", 30.4375)]))
def test_a_budget_is_shared_by_rules_and_slow_declines(
    count: int, period: tuple[str, float]
) -> None:
    """Both levels of a night together are the budget, spread evenly over the nights."""
    name, nights = period
    if count >= nights:
        with pytest.raises(ValidationError):
            AlertSettings(false_alarms=f"{count} per {name}")
        return
    found = AlertSettings(false_alarms=f"{count} per {name}")
    assert found.per_time
    assert found.rules_level + found.decline_level == pytest.approx(count / nights)


def test_a_number_leaves_the_rules_their_level() -> None:
    """The rules of settings without a budget in time decide as before."""
    found = AlertSettings(false_alarms=0.02)
    assert not found.per_time
    assert found.rules_level == 0.02
    assert AlertSettings.model_validate({"false_alarms": "0.02"}) == found


@pytest.mark.parametrize(
    "wrong", [0, 1, -0.1, "1", "a per year", "0 per year", "8 per week", "1 per decade", "1/year"]
)
def test_what_is_no_rate_is_refused(wrong: object) -> None:
    """With the forms that are meant."""
    with pytest.raises(ValidationError, match="false_alarms"):
        AlertSettings.model_validate({"false_alarms": wrong})


def test_a_budget_asks_for_more_evidence() -> None:
    """A drop that is significant at 5% a night is a suspect under one false alarm a year."""
    tonight, before = a_night(scores(uneven(0.2))), a_night(scores(uneven(0.0, shift=1)), ago=1)
    rule = recall(max_drop=0.05, **{"for": 1})
    levels = [
        metric_findings(rule, tonight, before, false_alarms=rate)[0].level for rate in (0.4, YEAR)
    ]
    assert levels == ["breach", "suspect"]


def test_a_certain_drop_fires_under_any_budget() -> None:
    """What no chance explains is told at once."""
    tonight, before = a_night(scores(fallen(0.3))), a_night(scores(fallen(0.0)), ago=1)
    (found,) = metric_findings(recall(max_drop=0.05), tonight, before, false_alarms=YEAR)
    assert found.level == "breach"


@pytest.mark.parametrize("nights", [1, 2, 3])
def test_comparisons_count_by_their_correlation_under_a_budget(nights: int) -> None:
    """Their number multiplies p only where false alarms are a share of nights."""
    tonight, before = a_night(scores(uneven(0.2))), a_night(scores(uneven(0.0, shift=1)), ago=1)

    def p_value(count: int, false_alarms: float | str) -> float:
        rule = recall(max_drop=0.05, **{"for": count})
        return _p(metric_findings(rule, tonight, before, false_alarms=false_alarms)[0])

    alone = p_value(1, 0.01)
    assert p_value(nights, 0.01) == pytest.approx((2 * nights - 1) * alone)
    expected = chance_of_any(np.array(alone), rule_links(nights, 1))
    assert p_value(nights, YEAR) == pytest.approx(float(expected))


def low(spread: float = 0.2) -> list[float]:
    """A mean of 0.67, its error as large as its distance from 0.7."""
    return [0.67 + (spread if n % 2 else -spread) for n in range(40)]


def test_a_mean_just_below_its_min_fires_by_counting_nights_only_without_a_budget() -> None:
    """Two nights below a line are no evidence at one false alarm a year."""
    rule = [Rule(metric="context_recall", min=0.7)]
    states = [story(rule, low(), low(), false_alarms=one)[-1].state for one in (0.01, YEAR)]
    assert states == ["firing", "pending"]


def test_a_mean_far_below_its_min_fires_under_a_budget() -> None:
    """Its p counts in the family of the night."""
    (found,) = metric_findings(recall(min=0.7), a_night(scores([0.3, 0.5] * 20)), false_alarms=YEAR)
    assert found.level == "breach"
    assert found.p_value is not None
    assert found.p_value < 0.001


def test_nights_below_a_min_add_up() -> None:
    """The pending night before makes the same mean more significant."""
    rule = [Rule(metric="context_recall", min=0.7)]
    first, second = story(rule, low(), low(), false_alarms=YEAR)
    assert _p(second) < _p(first)


def test_the_movement_of_nights_counts_under_a_budget() -> None:
    """Where levels move from night to night by more than their questions explain, the same drop is
    less significant.
    """
    rule = [Rule(metric="context_recall", max_drop=0.02, versus="trailing:7")]
    values = [[0.7 + (0.03 if n % 2 else -0.03)] * 40 for n in range(20)]
    steady = [[0.7 + 0.001 * (n % 2)] * 40 for n in range(20)]
    tonight = [0.6] * 40
    moving, still = (_p(_unpaired(rule, nights, tonight)) for nights in (values, steady))
    assert moving > 100 * still


def _unpaired(rule: list[Rule], nights: list[list[float]], tonight: list[float]) -> Finding:
    """The finding of tonight; no question recurs."""
    past = []
    for place, values in enumerate([*nights, tonight]):
        one = scores([value + 0.05 * (-1) ** n for n, value in enumerate(values)])
        one.table["question"] = [f"n{place}q{n}" for n in range(len(values))]
        past.append(a_night(one, ago=len(nights) - place))
    (found,) = metric_findings(rule, past[-1], *past[:-1], false_alarms=YEAR)
    return found


def _p(finding: Finding) -> float:
    assert finding.p_value is not None
    return finding.p_value
