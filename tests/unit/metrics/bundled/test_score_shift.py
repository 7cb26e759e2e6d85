"""score_shift: the place of a row's best score among those of the nights before."""

from __future__ import annotations

from ragmetrics.metrics.bundled.score_shift import score_shift
from ragmetrics.records import LogRow, Score, Status
from tests.builders import end


def shift(scores: tuple[float, ...] | None, place: float | None) -> Score:
    """The score of a row with these scores of the retriever."""
    row = LogRow("1", "Q?", ("a",), retrieved_context_scores=scores, score_place=place)
    return end(score_shift.play(row))


def test_the_value_is_the_place() -> None:
    """Staging has found it."""
    assert shift((0.8,), 0.25).value == 0.25


def test_without_scores_it_is_not_applicable() -> None:
    """With the reason: the log has none, or the nights before have too few."""
    assert shift(None, None).reason == "no score of the retriever"
    few = shift((0.8,), None)
    assert few.status is Status.NOT_APPLICABLE
    assert few.reason == "too few scores on the nights before"
