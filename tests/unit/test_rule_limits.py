"""Limits of rules: one that no drop can reach would watch nothing, and look as if it did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragmetrics.errors import InputError
from ragmetrics.gates.rules import gate_rules
from ragmetrics.night import check_settings
from ragmetrics.protocol import Score, Steps
from ragmetrics.registry import metrics
from ragmetrics.rows import LogRow
from ragmetrics.settings import Settings, make_settings

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
        check_settings(watching("alerts", 5))
    check_settings(watching("alerts", 0.99))


def test_a_metric_of_another_package_may_have_another_scale() -> None:
    """A drop of 5 in one of 100 is a small one."""
    replace(metrics()[RECALL], name="hits", steps=elsewhere).check_limit(5, "gate")
