"""What became of the contexts of a question: left, came, another rank, another text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, strategies as st

from ragmetrics.comparison import moved_contexts
from ragmetrics.comparison.changed_questions import LONGEST
from ragmetrics.records import LogRow

TEXTS = st.lists(st.sampled_from("abcde"), max_size=7)


def row(contexts: list[str], ids: list[str] | None = None) -> LogRow:
    """A row with these contexts."""
    values: dict[str, Any] = {"retrieved_context_ids": tuple(ids)} if ids is not None else {}
    return LogRow(id="r", user_input="q", retrieved_contexts=tuple(contexts), **values)


def ranks(a: LogRow, b: LogRow) -> list[tuple[str, int | None, int | None]]:
    """Text and rank on both sides of each context."""
    return [(context.text, context.rank_a, context.rank_b) for context in moved_contexts(a, b)]


def test_contexts_are_told_by_rank() -> None:
    """By the rank that they have now; what left stands where it was."""
    assert ranks(row(["x", "y", "z"]), row(["z", "y", "w"])) == [
        ("z", 3, 1),
        ("x", 1, None),
        ("y", 2, 2),
        ("w", None, 3),
    ]


def test_equal_ids_are_the_same_context() -> None:
    """Whatever its text is by now: that it was rewritten is said, with the text of now."""
    (one,) = moved_contexts(row(["old"], ["kb-1"]), row(["new"], ["kb-1"]))
    assert (one.id, one.rank_a, one.rank_b, one.text, one.rewritten) == ("kb-1", 1, 1, "new", True)


def test_without_ids_on_both_sides_texts_count() -> None:
    """As for a log whose older rows have none."""
    (one,) = moved_contexts(row(["same"]), row(["same"], ["kb-1"]))
    assert (one.rank_a, one.rank_b, one.id, one.rewritten) == (1, 1, "kb-1", False)


def test_ids_that_do_not_fit_are_not_used() -> None:
    """A row with fewer ids than contexts says nothing of which is which."""
    found = moved_contexts(row(["x", "y"], ["kb-1"]), row(["x", "y"], ["kb-1", "kb-2"]))
    assert [(one.text, one.rank_a, one.rank_b) for one in found] == [("x", 1, 1), ("y", 2, 2)]


def test_long_texts_are_cut_and_say_so() -> None:
    """The beginning is enough to know a context by."""
    (one,) = moved_contexts(row([]), row(["x" * 2 * LONGEST]))
    assert one.text == "x" * (LONGEST - 1) + "…"


@given(TEXTS, TEXTS)
def test_every_context_is_told_once(old: list[str], new: list[str]) -> None:
    """Each rank of both sides stands on exactly one line, and equal texts stay together."""
    found = moved_contexts(row(old), row(new))
    assert sorted(one.rank_a for one in found if one.rank_a) == list(range(1, len(old) + 1))
    assert sorted(one.rank_b for one in found if one.rank_b) == list(range(1, len(new) + 1))
    both = Counter(one.text for one in found if one.rank_a and one.rank_b)
    assert both == Counter(old) & Counter(new)
    assert not any(one.rewritten for one in found)


@given(TEXTS, TEXTS)
def test_exchanged_sides_exchange_what_left_and_what_came(old: list[str], new: list[str]) -> None:
    """What left one way came the other."""
    there, back = ranks(row(old), row(new)), ranks(row(new), row(old))
    assert sorted(there, key=str) == sorted(((t, b, a) for t, a, b in back), key=str)
