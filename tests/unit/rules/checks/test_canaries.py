"""rules/checks/canaries: a judge that cannot tell an obvious yes from an obvious no."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.config import AlertSettings
from ragmetrics.records import CanaryReport, Finding, Level, Manifest
from ragmetrics.rules.checks.canaries import canaries
from ragmetrics.testing import findings_of
from tests.fakes.past import a_night, scores

REPORT = CanaryReport(language="en", asked=10, right=10, yes=5)


def night(**reports: CanaryReport) -> Manifest:
    """A night whose judges said this of the canaries."""
    return a_night(scores([0.5, 0.7])).manifest.model_copy(update={"canaries": reports})


def report(asked: int, right: int) -> CanaryReport:
    """The report of a judge with so many right of those that it replied to."""
    return REPORT.model_copy(update={"asked": asked, "right": right})


def found(manifest: Manifest, limit: float | None = None, **more: Any) -> list[Finding]:
    """What the check says, by its default limit or another one."""
    checks = {} if limit is None else {"canaries": limit}
    return findings_of(canaries, manifest, settings=AlertSettings(checks=checks), **more)


@pytest.mark.parametrize(
    ("asked", "right", "level"),
    [(10, 10, "ok"), (10, 8, "ok"), (10, 7, "breach"), (3, 0, "breach"), (4, 4, "no_data")],
)
def test_eight_of_ten_are_needed(asked: int, right: int, level: Level) -> None:
    """Without replies to some, it is not known unless too many are wrong already."""
    (finding,) = found(night(judge=report(asked, right)))
    assert finding.level == level
    assert finding.severity == "warning"


def test_the_message_names_the_judge_of_a_panel_and_what_to_do() -> None:
    """The one that failed alone."""
    (finding,) = found(night(a=report(10, 10), b=report(10, 5)))
    assert finding.message.startswith("b cannot tell an obvious yes from an obvious no: 5 of 10")
    assert "choose another or larger model" in finding.message
    assert "a cannot" not in finding.message


def test_the_limit_can_be_changed() -> None:
    """`alerts: checks: canaries: 6`."""
    (finding,) = found(night(judge=report(10, 6)), limit=6)
    assert finding.level == "ok"


def test_a_night_without_them_has_no_finding() -> None:
    """As those of earlier versions. An alert that is open stays so where all rows failed, and
    resolves where its judge was replaced.
    """
    assert found(night()) == []
    (breach,) = found(night(judge=report(10, 5)))
    firing = breach.model_copy(update={"state": "firing"})
    last = night().model_copy(update={"findings": [firing]})
    assert found(night(), history=[last]) == []
    other = night().judge.model_copy(update={"fingerprint": "another"})
    replaced = night().model_copy(update={"judge": other})
    (finding,) = found(replaced, history=[last])
    assert finding.level == "ok"
