"""worst_hop: the hop whose contexts fit its own query worst; replies played by hand."""

from __future__ import annotations

from dataclasses import replace

from ragmetrics.metrics import GRADE, Grade
from ragmetrics.metrics.bundled.worst_hop import worst_hop
from ragmetrics.records import Ask, Status
from tests.builders import end
from tests.fakes.rankings import a_row, play

TRACE = a_row("a", "b", "c", hop_queries=("who?", "where?"), hop_sizes=(1, 2))


def test_the_best_context_of_the_worst_hop_counts() -> None:
    """Each context is graded against what its hop asked: grades 2 | 0, 1 are min(1, 0.5)."""
    steps = worst_hop.play(TRACE)
    pairs = [("who?", "a"), ("where?", "b"), ("where?", "c")]
    asked = [Ask(GRADE, {"question": query, "context": context}) for query, context in pairs]
    assert next(steps) == asked
    score = end(steps, *(Grade.model_validate({"grade": grade}) for grade in (2, 0, 1)))
    assert (score.value, score.details) == (0.5, {"hops": [1.0, 0.5], "worst": 2})


def test_a_hop_that_retrieved_nothing_is_the_worst() -> None:
    """Without a request for it."""
    steps = worst_hop.play(a_row("a", hop_queries=("who?", "where?"), hop_sizes=(1, 0)))
    assert len(next(steps)) == 1
    assert end(steps, Grade(grade=2)).details == {"hops": [1.0, 0.0], "worst": 2}


def test_nothing_retrieved_is_zero_and_an_empty_question_does_not_apply() -> None:
    """Neither is asked."""
    assert play(worst_hop, a_row()).value == 0.0
    assert play(worst_hop, replace(a_row("a"), user_input=" ")).status is Status.NOT_APPLICABLE
