"""list_overlap: rank-biased overlap with the last list of the same question."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import InputError
from ragmetrics.metrics.bundled.list_overlap import list_overlap, rank_biased_overlap
from ragmetrics.records import LogRow, Score, Status
from tests.builders import end

LISTS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


def overlap(now: str, last: str | None, **parameters: float) -> Score:
    """The score of a row that retrieved these ids now, and those when it was last asked."""
    row = LogRow("1", "Q?", tuple(now), retrieved_context_ids=tuple(now) or None)
    before = replace(row, retrieved_contexts=tuple(last or ()), retrieved_context_ids=None)
    before = replace(before, retrieved_context_ids=tuple(last) if last else None)
    keys = None if last is None else tuple(before.context_keys)
    asked = replace(row, last_contexts=keys)
    return end(list_overlap.with_parameters(parameters).play(asked))


def test_the_same_list_overlaps_whole() -> None:
    """Also if it is shorter than the depth that the persistence reaches."""
    assert overlap("abc", "abc").value == pytest.approx(1.0)


def test_other_contexts_do_not_overlap() -> None:
    """No context is on both lists."""
    assert overlap("abc", "xyz").value == 0.0


def test_the_value_is_that_of_the_definition() -> None:
    """By hand: X = 0, 2, 2 of two lists of three, p = 0.5."""
    terms = 0 / 1 * 0.5 + 2 / 2 * 0.25 + 2 / 3 * 0.125
    expected = (1 - 0.5) / 0.5 * terms + 2 / 3 * 0.125
    assert overlap("abc", "bad", persistence=0.5).value == pytest.approx(expected)


def test_a_change_at_the_top_counts_for_more() -> None:
    """Users read the first ranks."""
    top, bottom = overlap("xbcde", "abcde").value, overlap("abcdx", "abcde").value
    assert top is not None and bottom is not None and top < bottom


def test_a_shorter_list_that_agrees_so_far_overlaps_whole() -> None:
    """What is beyond its end is not known, and is taken to go on as it did."""
    assert overlap("ab", "abcd").value == pytest.approx(1.0)


def test_empty_lists() -> None:
    """Both empty is no change; one empty is the largest."""
    assert overlap("", "").value == 1.0
    assert overlap("", "ab").value == 0.0


def test_a_question_that_was_not_asked_is_not_applicable() -> None:
    """Nothing is known of its last list."""
    assert overlap("ab", None).status is Status.NOT_APPLICABLE


def test_a_persistence_out_of_range_is_refused() -> None:
    """1 has no weights that add up."""
    with pytest.raises(InputError, match="persistence"):
        overlap("ab", "ab", persistence=1.0)


@given(LISTS, LISTS, st.floats(0.05, 0.95))
def test_overlap_is_symmetric_and_within_its_range(
    one: list[str], other: list[str], p: float
) -> None:
    """Whichever list is now."""
    value = rank_biased_overlap(one, other, p)
    assert 0 <= value <= 1
    assert value == pytest.approx(rank_biased_overlap(other, one, p))
