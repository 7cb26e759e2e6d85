"""records/judging: when a judge failed the canaries, and which verdict is its usual one."""

from __future__ import annotations

import pytest

from ragmetrics.records import CanaryReport, VerdictCount


@pytest.mark.parametrize(
    ("asked", "right", "fails"),
    [(10, 8, False), (10, 7, True), (10, 5, True), (6, 4, False), (6, 3, True), (0, 0, False)],
)
def test_what_was_not_replied_to_may_have_been_right(asked: int, right: int, fails: bool) -> None:
    """It fails once eight of ten cannot be right any more."""
    assert CanaryReport(language="en", asked=asked, right=right, yes=0).fails(8) is fails


def test_the_text_says_why_a_verdict_is_missing() -> None:
    """Beside the number of right ones."""
    report = CanaryReport(language="en", asked=4, right=2, yes=4, problem="429: slow down")
    assert report.text == "2 of 4 obvious questions right (yes to 4); 429: slow down"


def test_counts_of_two_parts_add_up() -> None:
    """Also where one part has no verdict on the prompt."""
    first = VerdictCount(top=2, levels={1: 3}, replies=3)
    both = VerdictCount() + first + VerdictCount(top=2, levels={0: 1, 1: 1}, replies=2, copied=1)
    assert both == VerdictCount(top=2, levels={0: 1, 1: 4}, replies=5, copied=1)
    assert both.usual == (1, 0.8)
    assert VerdictCount().usual == (0, 0.0)
