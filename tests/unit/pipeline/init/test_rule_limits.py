"""Limits of rules: one that no drop can reach would watch nothing, and look as if it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragmetrics.comparison.gate.staging import gate_rules
from ragmetrics.config import Settings, make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.metrics import metrics
from ragmetrics.pipeline import Night
from ragmetrics.records import LogRow, Score, Steps
from ragmetrics.rules import DEFAULT_RULES

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
