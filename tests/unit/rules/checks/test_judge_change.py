"""What a night says of a change of its judge."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ragmetrics.records import JudgeBridge, JudgeOffset
from ragmetrics.rules.checks.judge_change import judge_change
from ragmetrics.testing import findings_of
from tests.fakes.past import TONIGHT, a_night, scores

OFFSET = JudgeOffset(
    metric="context_recall",
    replaced="a",
    fingerprint="b",
    offset=0.12,
    low=0.1,
    high=0.14,
    error=0.01,
    freedom=99,
    questions=100,
)


def messages(days: int = 0, **fields: Any) -> list[str]:
    """What is said so many days after the change."""
    bridge = JudgeBridge(
        **{"replaced": "old", "since": TONIGHT - timedelta(days), "offsets": [OFFSET], **fields}
    )
    manifest = a_night(scores([0.5] * 40)).manifest.model_copy(update={"bridge": bridge})
    found = findings_of(judge_change, manifest)
    assert all(finding.level == "ok" for finding in found)
    return [finding.message for finding in found]


def test_it_says_by_how_much_earlier_nights_are_moved() -> None:
    """Never as an alarm."""
    (text,) = messages()
    assert "the judge old was replaced on 2026-11-19" in text
    assert (
        "the new judge scores context_recall +0.120 [+0.100, +0.140] (100 questions judged by both)"
        in text
    )


def test_it_says_what_is_not_compared_and_why() -> None:
    """The baseline of that metric starts anew."""
    apart = OFFSET.model_copy(update={"apart": "the rank correlation of both judges is 0.05"})
    (text,) = messages(offsets=[apart], problem="401: no such key")
    assert "not compared with earlier nights: context_recall: the rank correlation" in text
    assert "are moved" not in text
    assert text.endswith("the old judge gave no further verdicts: 401: no such key")


def test_it_names_a_metric_without_an_offset() -> None:
    """No question has verdicts of both judges."""
    (text,) = messages(unpaired=["faithfulness"])
    assert "; not compared with earlier nights: faithfulness: no verdicts of both judges" in text


def test_it_is_said_for_two_weeks() -> None:
    """Then no baseline of a week has nights of the old judge."""
    assert messages(14)
    assert messages(15) == []
    assert findings_of(judge_change, a_night(scores([0.5] * 40)).manifest) == []
