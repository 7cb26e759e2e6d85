"""What, where and why: the lines that the page, Slack, mail and the terminal share."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ragmetrics.messages import NightStory, night_story, text_of
from ragmetrics.records import (
    ComparedMeans,
    ContributorShare,
    DatedChange,
    FallenTopic,
    LostPassages,
    Manifest,
    Segment,
    TopicReport,
)
from ragmetrics.rules import incidents
from tests.fakes.nights import fall, finding, night

MEANS = ComparedMeans(before=0.879, now=0.637, questions=80, paired=True)
FELL = {"level": "breach", "mean": 0.637, "drop": 0.24, "means": MEANS, "limit": 0.05}

QUARANTINE = {
    "kind": "quarantine",
    "level": "breach",
    "key": "helpdesk/quarantine",
    "rule": "at most 5% quarantined",
    "message": "60 of 200 rows are in quarantine, limit 5%",
}
LOST = LostPassages(
    questions=9, needed=9, fallen=3, lost=3, sentence="3 passages are gone from the index"
)


def story_of(*findings: object, **more: object) -> NightStory:
    """The story of a night with these findings."""
    manifest: Manifest = night(findings=list(findings), **more)
    return night_story(manifest, incidents(manifest.findings, manifest))


def told(*findings: object, **more: object) -> list[tuple[str, list[str]]]:
    """Its parts as text."""
    parts = story_of(*findings, **more).parts
    return [(label, [text_of(line) for line in lines]) for label, lines in parts]


def test_one_sentence_a_line_with_two_digits() -> None:
    """What fell over how many questions, and what fell beside it."""
    (what,) = told(finding("context_recall", **FELL), falls=[fall("faithfulness", 0.9, 0.6)])
    assert what == (
        "What",
        [
            "Context recall fell from 0.88 to 0.64 over the same 80 questions (allowed drop 0.05).",
            "Faithfulness also fell, by 0.30 (no alert rule).",
        ],
    )


def test_a_limit_that_is_a_share_of_the_mean_is_short() -> None:
    """A quarter of a third has no end of digits."""
    ((_, (what,)),) = told(finding("context_recall", **FELL | {"limit": 1 / 12}))
    assert what.endswith("(allowed drop 0.0833).")


def test_places_have_their_means_and_no_shares() -> None:
    """Shares of several tags overlap. The build is why."""
    carriers = [
        ContributorShare(tag="index_build", value="b7", share=1.0, questions=80, is_new=True),
        ContributorShare(
            tag="section", value="billing", share=0.4, questions=7, before=0.95, now=0.05
        ),
        ContributorShare(tag="section", value="api", share=0.4, questions=7),
    ]
    parts = dict(told(finding("context_recall", carriers=carriers, **FELL)))
    assert parts["Where"] == ["section=billing (0.95 → 0.05), section=api."]
    assert parts["Why"] == ["It came with the new index build b7."]


def test_a_whole_metric_is_the_headline_before_a_segment() -> None:
    """Whatever comes first in the manifest."""
    low = finding("context_relevance", level="breach", mean=0.3, limit=0.5)
    story = story_of(low, finding("context_recall", **FELL))
    assert story.headline == "Context recall fell from 0.88 to 0.64."
    assert story.metric == "context_recall"


def test_a_drop_without_a_comparison_is_told_by_its_reason() -> None:
    """Its limit is an allowed drop, and no limit of the mean."""
    firing = finding(
        level="breach",
        mean=0.7,
        limit=0.05,
        key="helpdesk/context_recall/all/max_drop 0.05 versus trailing:7",
        message="context_recall: nothing to compare with yet: no earlier night",
    )
    reason = "Context recall: nothing to compare with yet: no earlier night."
    assert dict(told(firing))["What"] == [reason]
    assert story_of(firing).headline == reason


def test_a_drop_of_an_earlier_version_is_told_by_its_message() -> None:
    """It stored no means of the compared questions."""
    firing = finding(
        level="breach",
        mean=0.7,
        drop=0.2,
        limit=0.05,
        key="helpdesk/context_recall/all/max_drop 0.05 versus previous",
        message="context_recall fell from 0.900 to 0.700",
    )
    assert dict(told(firing))["What"] == ["Context recall fell from 0.900 to 0.700."]


@pytest.mark.parametrize(
    "beside",
    [
        {
            "findings": [
                finding("context_recall", **FELL | {"level": "suspect", "state": "pending"})
            ]
        },
        {"findings": [], "falls": [fall("faithfulness")]},
    ],
)
def test_what_fires_is_the_headline(beside: dict[str, Any]) -> None:
    """Before what is pending, and what no rule watches, also where no number measured it."""
    pending, more = beside["findings"], {k: v for k, v in beside.items() if k != "findings"}
    told = story_of(*pending, finding(None, **QUARANTINE), **more)
    assert told.headline == "60 of 200 rows are in quarantine, limit 5%."
    assert told.metric == ""


def test_a_firing_segment_is_the_headline_before_a_pending_metric() -> None:
    """The state counts more than how many rows it is about."""
    pending = finding("mrr", **FELL | {"level": "suspect", "state": "pending"})
    segment = Segment(tag="section", value="billing")
    firing = finding("context_recall", segment=segment, key="billing/min", **FELL)
    story = story_of(pending, firing)
    assert story.headline == "Context recall in section=billing fell from 0.88 to 0.64."
    assert story.metric == "context_recall"


def test_an_old_build_is_no_reason() -> None:
    """Only a new one came with the fall."""
    build = ContributorShare(tag="index_build", value="b1", share=1.0, questions=80)
    assert "Why" not in dict(told(finding("context_recall", carriers=[build], **FELL)))


def test_what_was_lost_without_a_fall_explains_nothing() -> None:
    """It is told beside, and as the reason where something fell."""
    line = ["3 passages are gone from the index."]
    assert told(lost_passages=LOST) == [("Also", line)]
    assert dict(told(finding("context_recall", **FELL), lost_passages=LOST))["Why"] == line


def test_a_topic_has_the_display_name_of_its_metric() -> None:
    """As everywhere in front of people."""
    topic = FallenTopic(
        metric="context_recall",
        topic="payroll",
        drop=0.31,
        low=0.2,
        high=0.42,
        before=0.9,
        now=0.59,
        questions=38,
        p_value=0.001,
    )
    topics = TopicReport(model=night().date, topics=9, fallen=[topic])
    (line,) = dict(told(finding("context_recall", **FELL), topics=topics))["Why"]
    assert line.startswith("Context recall of topic payroll fell by 0.31")


def test_a_fall_is_no_second_one_beside_a_low_mean() -> None:
    """A mean below its limit has not fallen."""
    low = finding("context_recall", level="breach", mean=0.3, limit=0.5)
    what = dict(told(low, falls=[fall("faithfulness", 0.9, 0.6)]))["What"]
    assert what[1] == "Faithfulness fell by 0.30, 0.90 → 0.60 (no alert rule)."


def test_a_quiet_night_has_no_story() -> None:
    """Nothing fell."""
    assert told() == []


@pytest.mark.parametrize(
    ("since", "change", "when"),
    [
        (19, None, ["Firing since 2026-11-19, this night."]),
        (17, None, ["Firing since 2026-11-17."]),
        (17, [16, 17], ["Fell on 2026-11-17 (possibly 2026-11-16)."]),
        (18, [17], ["Fell on 2026-11-17.", "Firing since 2026-11-18."]),
        (None, None, None),
    ],
)
def test_since_when(since: int | None, change: list[int] | None, when: list[str] | None) -> None:
    """When it fell, and since when its alert fires if that is another night."""
    nights = [date(2026, 11, day) for day in change or ()]
    firing = finding(
        "context_recall",
        since=since and date(2026, 11, since),
        change=DatedChange(first=nights[-1], nights=nights) if nights else None,
        **FELL,
    )
    parts = dict(told(firing, date=date(2026, 11, 19)))
    assert parts.get("When") == when
    assert "since" not in parts["What"][0]


def test_another_alert_says_its_night_itself() -> None:
    """Where it is not that of the headline."""
    first = finding("context_recall", since=date(2026, 11, 17), **FELL)
    second = finding("mrr", key="mrr/drop", since=date(2026, 11, 18), **FELL)
    (_, recall_and_mrr), when = told(first, second, date=date(2026, 11, 19))
    assert [line.endswith("Firing since 2026-11-18.") for line in recall_and_mrr] == [False, True]
    assert when == ("When", ["Firing since 2026-11-17."])


def test_a_fall_without_an_alert_is_dated() -> None:
    """By the night itself, or by the first night of the drop."""
    tonight = fall("faithfulness")
    earlier = tonight.model_copy(update={"since": date(2026, 11, 17)})
    for fell, day in ((tonight, 19), (earlier, 17)):
        parts = dict(told(falls=[fell], date=date(2026, 11, 19)))
        assert parts["When"] == [f"Fell on 2026-11-{day}."]
