"""Limits of rules: one that no drop can reach would watch nothing, and look as if it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.comparison.gate.staging import gate_rules
from ragmetrics.config import Rule, Settings, make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.metrics import metrics
from ragmetrics.pipeline import Night
from ragmetrics.pipeline.init.rule_limits import rule_limit
from ragmetrics.records import LogRow, Score, Steps, Summary
from ragmetrics.rules import DEFAULT_RULES, Known, why_it_cannot_fire

RECALL = "context_recall"


def watching(key: str, max_drop: float) -> Settings:
    """Settings whose gate or alerts watch recall."""
    rules = [{"metric": RECALL, "max_drop": max_drop}]
    return make_settings({"metrics": [RECALL], key: {"rules": rules}})


def elsewhere(row: LogRow) -> Steps[Score]:
    """A metric of another package, on a scale of its own."""
    return Score(float(len(row.retrieved_contexts)))
    yield


@pytest.mark.parametrize("max_drop", [1, 5])
def test_a_gate_that_nothing_could_hold_is_refused(max_drop: float) -> None:
    """Five hundredths are 0.05."""
    with pytest.raises(
        InputError, match=f"gate: rules: max_drop of 'context_recall' is {max_drop},"
    ):
        gate_rules(watching("gate", max_drop))
    assert gate_rules(watching("gate", 0.99))


def test_an_alert_that_nothing_could_fire_is_refused() -> None:
    """The same of a night."""
    with pytest.raises(InputError, match="alerts: rules: max_drop of 'context_recall' is 5,"):
        Night(watching("alerts", 5)).check()
    Night(watching("alerts", 0.99)).check()


def test_a_metric_of_another_package_may_have_another_scale() -> None:
    """A drop of 5 in one of 100 is a small one."""
    replace(metrics()[RECALL], name="hits", steps=elsewhere).check_limit(5, "gate")


@pytest.mark.parametrize("least", [-0.1, 0, 1.8])
def test_a_mean_that_is_always_or_never_below_is_refused(least: float) -> None:
    """The one fires every night, the other on none."""
    rules = [{"metric": RECALL, "min": least}]
    with pytest.raises(InputError, match="alerts: rules: min of 'context_recall' is"):
        Night(make_settings({"metrics": [RECALL], "alerts": {"rules": rules}})).check()


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"min": 0.7, "clear": 0.8}, True),
        ({"min": 0.7, "clear": 0.6}, False),
        ({"max_drop": 0.05, "clear": 0.01}, True),
        ({"max_drop": 0.05, "clear": 0.1}, False),
        ({"min": 0.7, "max_drop": 0.05, "clear": 0.01}, True),
        ({"min": 0.7, "max_drop": 0.05, "clear": 0.3}, False),
    ],
)
def test_a_clear_value_lies_on_the_good_side_of_its_limit(
    rule: dict[str, float], fits: bool
) -> None:
    """On the other it would say nothing, and nobody would know."""
    rules = {"alerts": {"rules": [{"metric": RECALL, **rule}]}}
    if fits:
        make_settings(rules)
    else:
        with pytest.raises(SettingsError, match="clear should be at min or above it, or at"):
            make_settings(rules)


@pytest.mark.parametrize(
    "alerts", [{}, {"alerts": {}}, {"alerts": None}, {"alerts": {"rules": None}}]
)
def test_no_rules_are_the_default_rules(alerts: dict[str, Any]) -> None:
    """Every default metric is watched, without the key and with an empty one."""
    assert make_settings(alerts).alerts.rules is None
    assert {rule.metric for rule in DEFAULT_RULES} == set(DEFAULT_METRICS)


def test_no_limit_stands_twice() -> None:
    """Two alerts of one key would count each night twice; a tag, or a limit, tells them apart."""
    drop = {"metric": RECALL, "max_drop": 0.05}
    others = [{**drop, "by": "section"}, {**drop, "max_drop": 0.1}, {**drop, "versus": "serving"}]
    make_settings({"alerts": {"rules": [drop, *others]}})
    twice = [drop, {**drop, "severity": "warning"}]
    with pytest.raises(SettingsError, match=r"duplicate rule: .*trailing:7 of context_recall"):
        make_settings({"alerts": {"rules": twice}})


def summary(mean: float, mde: float, rows: int) -> Summary:
    """A mean with its detectable drop."""
    return Summary(
        metric="context_relevance",
        mean=mean,
        low=None,
        high=None,
        mde=mde,
        scored=rows,
        questions=rows,
        status={"scored": rows},
        fingerprint="f",
    )


@given(mde=st.floats(0.0, 0.3), rows=st.integers(20, 50_000), share=st.floats(0.001, 0.05))
def test_limits_follow_from_the_variance(mde: float, rows: int, share: float) -> None:
    """A rule never promises more false alarms than the settings allow, and detects more than its
    limit."""
    found = rule_limit([summary(0.6, mde, rows)], rows, DEFAULT_RULES[0], false_alarms=share)
    assert found is not None
    assert found.false_alarms <= 365 * share + 1e-9
    assert found.detects >= min(found.max_drop, 0.6 * found.max_share) >= 0.03


@given(
    mean=st.floats(0.001, 1.0),
    mde=st.floats(0.0, 0.3),
    rows=st.integers(20, 50_000),
    rule=st.sampled_from(DEFAULT_RULES),
)
def test_no_limit_is_more_than_what_can_fall(
    mean: float, mde: float, rows: int, rule: Rule
) -> None:
    """Whatever the mean, the rule that is written can fire, and its `min` is at least half of the
    mean and at most 85% of it.
    """
    found = rule_limit([summary(mean, mde, rows)], rows, rule, false_alarms=0.01)
    assert found is not None
    written = Rule(metric=rule.metric, max_drop=found.max_drop, max_share=found.max_share)
    assert not why_it_cannot_fire(written, Known(mean=mean, rows=rows))
    assert found.sees or found.detects >= mean
    assert found.least is None or mean / 2 - 0.01 <= found.least <= 0.85 * mean + 1e-9


def test_a_floor_is_where_the_metric_would_hurt() -> None:
    """A fall of recall from 0.86 to 0.69 is below it: once it was four drops below, at 0.45. Nights
    that differ much have a lower one.
    """
    steady = [summary(0.86, 0.05, 200)]
    found = rule_limit(steady, 200, DEFAULT_RULES[0], false_alarms=0.01)
    assert found is not None
    assert found.least == 0.73
    restless = [summary(mean, 0.05, 200) for mean in (0.94, 0.86, 0.78)]
    found = rule_limit(restless, 200, DEFAULT_RULES[0], false_alarms=0.01)
    assert found is not None
    assert found.least == pytest.approx(0.86 - 3 * 0.08)


@pytest.mark.parametrize(
    ("a_year", "text"),
    [
        (1.234, "at most 1.2 false alarms a year"),
        (0.1, "at most 0.1 false alarms a year"),
        (0.03, "less than one false alarm in 30 years"),
        (0.0028, "less than one false alarm in 300 years"),
        (0.0, "less than one false alarm in 1,000 years"),
    ],
)
def test_rare_false_alarms_are_told_in_years(a_year: float, text: str) -> None:
    """No rule has "0.0 false alarms a year"."""
    found = rule_limit([summary(0.6, 0.05, 1000)], 1000, DEFAULT_RULES[0], false_alarms=0.01)
    assert found is not None
    assert replace(found, false_alarms=a_year).false_alarms_text == text


def test_a_metric_whose_fall_to_0_is_found_can_see_a_regression() -> None:
    """A night that fell to 0 has no spread of its own; one with a larger spread stays blind."""
    for mde, sees in ((0.06, True), (0.07, False)):
        found = rule_limit([summary(0.07, mde, 100)], 100, DEFAULT_RULES[0], false_alarms=0.01)
        assert found is not None
        assert found.detects > found.mean
        assert found.sees is sees


def test_more_rows_a_night_see_smaller_drops() -> None:
    """A sample of ten nights says less of each night than a night of all its rows."""
    nights = [summary(0.6, 0.05, 1000)]
    one, ten = (rule_limit(nights, n, DEFAULT_RULES[0], false_alarms=0.01) for n in (1000, 100))
    assert one is not None and ten is not None
    assert one.detects < ten.detects
