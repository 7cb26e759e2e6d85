"""rules/checks/constant_verdicts: one verdict for all, where that says something of the judge."""

from __future__ import annotations

import pytest

from ragmetrics.records import CanaryReport, Finding, Manifest, VerdictCount
from ragmetrics.rules.checks.constant_verdicts import constant_verdicts
from ragmetrics.testing import findings_of
from tests.fakes.past import a_night, scores

AT_CHANCE = CanaryReport(language="en", asked=10, right=5, yes=10)


def night(levels: dict[int, int], top: int = 2, *, failed: bool = False) -> Manifest:
    """A night in which a judge gave each verdict on a prompt so many times."""
    count = VerdictCount(top=top, levels=levels, replies=sum(levels.values()))
    canaries = {"judge": AT_CHANCE} if failed else {}
    update = {"verdicts": {"judge": {"grade": count}}, "canaries": canaries}
    return a_night(scores([0.5, 0.7])).manifest.model_copy(update=update)


def the(manifest: Manifest) -> Finding:
    """What the check says."""
    (finding,) = findings_of(constant_verdicts, manifest)
    return finding


def test_the_middle_grade_for_all_is_told() -> None:
    """As a model of 135 million parameters gave it: 108 of 112 times."""
    finding = the(night({1: 108, 2: 4}))
    assert finding.level == "breach"
    assert finding.message.startswith("judge: 108 of 112 verdicts on grade are 1 (96%); look at")


@pytest.mark.parametrize(
    "manifest",
    [
        night({0: 950, 1: 30, 2: 20}),  # twenty contexts, one of which answers
        night({2: 98, 1: 2}),  # a good retriever of one context
        night({1: 97, 0: 3}, top=1),  # a recall of 0.97
        night({1: 45, 2: 1}),  # too few to tell
        night({1: 90, 0: 10}),  # not more than the limit
    ],
)
def test_what_a_healthy_log_may_show_is_not(manifest: Manifest) -> None:
    """Verdicts at the ends of a scale, and few of them."""
    assert the(manifest).level == "ok"


@pytest.mark.parametrize(("levels", "top"), [({0: 60}, 2), ({2: 60}, 2), ({1: 60}, 1)])
def test_a_judge_that_failed_the_canaries_has_no_excuse(levels: dict[int, int], top: int) -> None:
    """Then any verdict for all is told."""
    assert the(night(levels, top, failed=True)).level == "breach"


def test_a_night_without_counts_has_no_finding() -> None:
    """As those of earlier versions."""
    assert findings_of(constant_verdicts, a_night(scores([0.5])).manifest) == []
