"""mrr: how far down the first relevant context stands."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragmetrics.metrics.bundled.mrr import mrr
from ragmetrics.records import Score
from tests.fakes.rankings import CUT_OFFS, Case, by_ids, cases, play, swapped, trec, value


def test_value_is_the_reciprocal_of_the_first_relevant_rank() -> None:
    """What comes after the first makes no difference."""
    found = play(mrr, by_ids(["x", "y", "a", "b"], ["b", "a"]))
    details = {"matched_by": "ids", "relevant_ranks": [3, 4], "at": {"1": 0.0, "3": 1 / 3}}
    assert found == Score(1 / 3, details=details)


@pytest.mark.parametrize(("k", "expected"), [(1, 0), (2, 1 / 2), (9, 1 / 2)])
def test_only_the_first_k_ranks_count(k: int, expected: float) -> None:
    """Nothing relevant above the cut-off: 0."""
    assert value(mrr, Case(["x", "a", "b"], ["a", "b"]), k) == expected


@given(cases(least=1), CUT_OFFS)
def test_is_the_reciprocal_rank_of_trec_eval(case: Case, k: int | None) -> None:
    """An independent implementation gives the same value, at every cut-off."""
    expected = trec("recip_rank", case._replace(retrieved=case.retrieved[:k]))
    assert value(mrr, case, k) == pytest.approx(expected)


@given(cases(), CUT_OFFS)
def test_order_of_the_references_changes_nothing(case: Case, k: int | None) -> None:
    """References are a set, and the value stays in [0, 1]."""
    other = case._replace(reference=case.reference[::-1])
    assert 0 <= value(mrr, case, k) == value(mrr, other, k) <= 1


@given(cases(least=2), st.data(), CUT_OFFS)
def test_a_relevant_context_moved_up_never_lowers_it(
    case: Case, data: st.DataObject, k: int | None
) -> None:
    """Swap a rank with the next: better or equal if the next was relevant, else no better."""
    upper = data.draw(st.integers(0, len(case.retrieved) - 2))
    before, after = value(mrr, case, k), value(mrr, swapped(case, upper), k)
    relevant = case.retrieved[upper + 1] in case.reference
    assert after >= before if relevant else after <= before
