"""Users noticed: the line that says in users' own words what a fall of their feedback is."""

from __future__ import annotations

from ragmetrics.dashboard.night_notes import night_notes
from ragmetrics.messages import answered_notes
from ragmetrics.records import ComparedMeans, ContributorShare, Segment
from tests.fakes.nights import fall, finding, night, summary
from tests.unit.messages.test_story import told

MEANS = ComparedMeans(before=0.969, now=0.946, questions=900)
FELL = {"level": "breach", "mean": 0.946, "drop": 0.023, "means": MEANS, "limit": 0.01}
THUMBS = [20, 0, 0, 0, 0, 0, 0, 0, 0, 380]
RATINGS = [20, 0, 30, 0, 0, 0, 0, 0, 0, 350]


def lines(*findings: object, histogram: list[int] = THUMBS, **more: object) -> list[str]:
    """What happened, with a night of such feedback."""
    feedback = summary("user_feedback", 0.946, histogram=histogram)
    return dict(told(*findings, metrics=[feedback], **more))["What"]


def test_a_fall_of_feedback_is_told_as_thumbs_down() -> None:
    """Beside the sentence of its rule."""
    assert lines(finding("user_feedback", **FELL)) == [
        "User feedback fell from 0.97 to 0.95 over 900 questions (allowed drop 0.01).",
        "Users noticed: thumbs down 3.1% → 5.4%.",
    ]


def test_the_place_that_fell_most_is_named() -> None:
    """With the numbers of that place; a rule of a segment has its own."""
    place = ContributorShare(
        tag="section", value="billing", share=0.9, questions=90, before=0.97, now=0.75
    )
    whole = lines(finding("user_feedback", carriers=[place], **FELL))
    assert whole[-1] == "Users noticed: thumbs down 3.0% → 25.0% in billing."
    segment = Segment(tag="section", value="billing")
    part = lines(finding("user_feedback", segment=segment, **FELL))
    assert part[-1] == "Users noticed: thumbs down 3.1% → 5.4% in billing."


def test_ratings_are_no_thumbs() -> None:
    """Where a value is between the worst and the best."""
    told = lines(finding("user_feedback", **FELL), histogram=RATINGS)
    assert told[-1] == "Users noticed: negative feedback 3.1% → 5.4%."


def test_a_fall_without_a_rule_is_noticed_too() -> None:
    """Once, also where it has a rule that allows it."""
    told = lines(falls=[fall("user_feedback", 0.969, 0.946)])
    assert [line for line in told if line.startswith("Users")] == [
        "Users noticed: thumbs down 3.1% → 5.4%."
    ]


def test_other_metrics_are_no_users() -> None:
    """A judge is none, nor are clicks."""
    for metric in ("context_recall", "click_rate"):
        assert not any("Users" in line for line in lines(finding(metric, **FELL)))


def test_a_page_says_how_many_answered_and_of_whom_the_interval_speaks() -> None:
    """Self-selection cannot be corrected without a model, so it is told."""
    status = {"scored": 60, "not_applicable": 1_140}
    feedback = summary("user_feedback", 0.946, scored=60, status=status)
    (note,) = answered_notes(night(metrics=[feedback, summary("click_rate", 0.5)]))
    assert note == (
        "User feedback: on 5.0% of rows. Its interval speaks of users who answer; if content "
        "users answer more or less often than others, it is not that of all users."
    )
    assert note in night_notes(night(metrics=[feedback]), no_data=False)
