"""What two sides, or the builds of a gate, are told by: the count, what fell, where and why."""

from __future__ import annotations

from ragmetrics.messages import comparison_story, contribution, gate_story, text_of
from ragmetrics.records import LostPassages, Segment
from tests.fakes.comparisons import change, comparison
from tests.fakes.gated import gate, metric_verdict


def test_segments_that_contribute_most_are_named_first() -> None:
    """By loss and questions; not those that fell no further than their metric."""
    segments = [
        change(by=by, questions=questions, segment=Segment(tag="section", value=name))
        for name, by, questions in (("small", -0.9, 4), ("large", -0.5, 30), ("usual", -0.2, 40))
    ]
    found = comparison(segments=segments)
    whole = {one.metric: one for one in found.metrics}
    assert [round(contribution(one, whole), 3) for one in segments] == [0.045, 0.188, 0.1]
    (where,) = comparison_story(found).where
    assert text_of(where) == "section=large (0.90 → 0.40), section=small (0.90 → 0.00)."


def test_a_gate_counts_as_the_comparison_of_its_builds() -> None:
    """What is significantly worse, also within its limit."""
    within = metric_verdict("context_relevance", drop=0.03, verdict="promote")
    story = gate_story(gate(metrics=[metric_verdict(), within]))
    assert story.headline == "Hold: 2 of 2 metrics are significantly worse, 1 by more than allowed."


def test_an_inconclusive_gate_says_how_many_questions_would_decide() -> None:
    """In the last line of what it says."""
    story = gate_story(gate(verdict="inconclusive", further=1_200))
    assert story.what[-1] == "About 1,200 more questions would decide."


def test_lost_passages_are_counted_over_questions_that_are_named() -> None:
    """A night looks at several nights before and two sides at each other, so counts may differ."""
    gone = "9 passages are gone from the index"
    lost = LostPassages(questions=20, needed=20, fallen=9, lost=9, sentence=gone)
    told = {
        runs: text_of(*comparison_story(comparison(lost_passages=several)).why)
        for runs in (0, 1, 7)
        if (several := lost.model_copy(update={"earlier_runs": runs}))
    }
    assert told == {
        0: f"{gone}.",
        1: f"Counting only questions of both sides, {gone}.",
        7: f"Compared with the 7 nights before, {gone}.",
    }
