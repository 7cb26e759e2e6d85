"""What, where and why: the lines that the page, Slack, mail and the terminal share."""

from __future__ import annotations

from ragmetrics.messages import night_story, text_of
from ragmetrics.records import ComparedMeans, ContributorShare
from ragmetrics.rules import incidents
from tests.fakes.nights import fall, finding, night

MEANS = ComparedMeans(before=0.879, now=0.637, questions=80, paired=True)
FELL = {"level": "breach", "mean": 0.637, "drop": 0.24, "means": MEANS, "limit": 0.05}


def told(*findings: object, **more: object) -> list[tuple[str, list[str]]]:
    """The parts of the story of a night with these findings, as text."""
    manifest = night(findings=list(findings), **more)
    story = night_story(manifest, incidents(manifest.findings, manifest))
    return [(label, [text_of(line) for line in lines]) for label, lines in story.parts]


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
    assert parts["Why"] == ["It came with new index build b7."]


def test_a_whole_metric_is_the_headline_before_a_segment() -> None:
    """Whatever comes first in the manifest."""
    low = finding("context_relevance", level="breach", mean=0.3, limit=0.5)
    manifest = night(findings=[low, finding("context_recall", **FELL)])
    story = night_story(manifest, incidents(manifest.findings, manifest))
    assert story.headline == "Context recall fell from 0.88 to 0.64."


def test_a_quiet_night_has_no_story() -> None:
    """Nothing fell."""
    assert told() == []
