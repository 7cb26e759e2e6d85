"""Names of metrics in front of people."""

from __future__ import annotations

from ragmetrics.messages import in_display_names
from tests.fakes.nights import finding, night


def test_a_stored_text_has_the_name_for_people() -> None:
    """As a whole word; a path, a tag and a longer name keep theirs."""
    told = "context_recall fell; see runs/context_recall/x, metric=context_recall, context_recall_2"
    assert in_display_names(told, night()) == (
        "Context recall fell; see runs/context_recall/x, metric=context_recall, context_recall_2"
    )


def test_a_finding_has_the_name_of_its_metric_alone() -> None:
    """A finding without a metric keeps its text."""
    told = "context_recall fell, and context_precision did not"
    shown = in_display_names(told, finding("context_recall"))
    assert shown == "Context recall fell, and context_precision did not"
    assert in_display_names(told, finding(None)) == told
