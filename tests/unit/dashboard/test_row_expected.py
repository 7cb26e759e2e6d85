"""The passages that a question needs: where they are named, their texts and their ranks."""

from __future__ import annotations

from datetime import date
from typing import Any

from ragmetrics.dashboard.formatting import TextBudget
from ragmetrics.dashboard.row_expected import ExpectedPassage, expected_passages
from ragmetrics.dashboard.row_selection import EarlierNight
from ragmetrics.records import LostPassage, MovedContext
from tests.fakes.nights import SPLIT, worst_row


def expected(*lost: LostPassage, **row: Any) -> list[ExpectedPassage]:
    """What is expected of a question that retrieved kb-1 and kb-2."""
    return list(expected_passages(worst_row("q-1", "How?", **row), lost, TextBudget(9_000)))


def told(passages: list[ExpectedPassage]) -> list[tuple[str, int | None, str]]:
    """Ids, ranks and texts."""
    return [
        (one.id, one.rank, one.passage.pieces[0].text if one.passage else "") for one in passages
    ]


LOST = LostPassage(
    stage="not_in_index",
    evidence="no question retrieves it",
    id="kb-9",
    text="Invoices cannot be changed.",
    night=date(2026, 11, 9),
    rank=1,
)
THEN = EarlierNight(
    date(2026, 11, 9),
    "idx-1",
    {},
    (
        MovedContext(text="Gone.", id="kb-9", rank_a=1, rank_b=None),
        MovedContext(text=SPLIT[1], id="kb-2", rank_a=2, rank_b=2),
    ),
)


def test_ids_of_the_reference_have_their_ranks() -> None:
    """What is not retrieved comes first; texts are those of tonight or of a night before."""
    passages = expected(reference_context_ids=("kb-2", "kb-9", "kb-7"), earlier=(THEN,))
    assert told(passages) == [("kb-9", None, "Gone."), ("kb-7", None, ""), ("kb-2", 2, SPLIT[1])]
    assert all(one.needed for one in passages)


def test_texts_of_the_reference_are_found_by_text() -> None:
    """Where the log has no ids of them."""
    passages = expected(reference_contexts=("Elsewhere.", SPLIT[0]))
    assert told(passages) == [("", None, "Elsewhere."), ("", 1, SPLIT[0])]


def test_ids_and_texts_belong_together_if_there_are_as_many() -> None:
    """Else the texts may be of other passages."""
    both = expected(reference_context_ids=("kb-9",), reference_contexts=("Its text.",))
    assert told(both) == [("kb-9", None, "Its text.")]
    odd = expected(reference_context_ids=("kb-9",), reference_contexts=("One.", "Two."))
    assert told(odd) == [("kb-9", None, "")]


def test_a_lost_passage_says_what_became_of_it() -> None:
    """Once, though the reference names it too."""
    (passage,) = expected(LOST, reference_context_ids=("kb-9",))
    assert passage.told == "probably gone from the index; was rank 1 on 9 Nov"
    assert told([passage]) == [("kb-9", None, "Invoices cannot be changed.")]


def test_a_lost_passage_of_a_trace_says_which_hop_lost_it() -> None:
    """That hop is where to look."""
    (passage,) = expected(LOST.model_copy(update={"hop": 2}))
    assert passage.told == "lost by hop 2: probably gone from the index; was rank 1 on 9 Nov"


def test_without_a_name_what_left_since_the_night_before_is_shown() -> None:
    """Nobody says that the question needs it."""
    (passage,) = expected(earlier=(THEN,))
    assert (passage.id, passage.told, passage.needed) == ("kb-9", "was rank 1 on 9 Nov", False)


def test_nothing_is_expected_of_a_question_that_nothing_is_known_of() -> None:
    """Neither reference nor an earlier night."""
    assert expected() == []
