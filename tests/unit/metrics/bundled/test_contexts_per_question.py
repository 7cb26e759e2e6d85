"""contexts_per_question: how many contexts were retrieved."""

from __future__ import annotations

from ragmetrics.metrics.bundled.contexts_per_question import contexts_per_question
from ragmetrics.records import LogRow, Score
from tests.fakes.rankings import play


def test_blank_contexts_are_none() -> None:
    """Only contexts with a text count, and an empty list is 0."""
    assert play(contexts_per_question, LogRow("1", "Q?", ("a", " ", "b"))) == Score(2.0)
    assert play(contexts_per_question, LogRow("1", "Q?", ())) == Score(0.0)


def test_neither_direction_is_better() -> None:
    """Fewer contexts may be a broken filter, more a lost limit."""
    assert contexts_per_question.higher_is_better is None
