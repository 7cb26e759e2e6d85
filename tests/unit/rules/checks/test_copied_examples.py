"""rules/checks/copied_examples: replies that repeat the example of their prompt."""

from __future__ import annotations

import pytest

from ragmetrics.records import Level, Manifest, VerdictCount
from ragmetrics.rules.checks.copied_examples import copied_examples
from ragmetrics.testing import findings_of
from tests.fakes.past import a_night, scores


def night(copied: int, replies: int) -> Manifest:
    """A night in which a judge copied so many of its replies."""
    count = VerdictCount(replies=replies, copied=copied)
    verdicts = {"verdicts": {"judge": {"questions": count}}}
    return a_night(scores([0.5, 0.7])).manifest.model_copy(update=verdicts)


@pytest.mark.parametrize(
    ("copied", "replies", "level"),
    [(3, 7, "breach"), (2, 2, "ok"), (5, 100, "ok"), (6, 100, "breach"), (0, 50, "ok")],
)
def test_more_than_one_in_twenty_is_told(copied: int, replies: int, level: Level) -> None:
    """But not one or two, which may be rows about the same subject."""
    (finding,) = findings_of(copied_examples, night(copied, replies))
    assert finding.level == level


def test_the_message_says_how_many_of_which_prompt() -> None:
    """And what to do."""
    (finding,) = findings_of(copied_examples, night(7, 9))
    assert finding.message.startswith(
        "judge: 7 of 9 replies to questions copy an example of the prompt; the scores of"
    )


def test_a_night_without_counts_has_no_finding() -> None:
    """As those of earlier versions."""
    assert findings_of(copied_examples, a_night(scores([0.5])).manifest) == []
