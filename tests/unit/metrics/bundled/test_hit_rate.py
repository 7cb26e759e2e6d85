"""hit_rate: whether anything relevant was retrieved."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragmetrics.metrics.bundled.hit_rate import hit_rate
from ragmetrics.records import Score
from tests.fakes.rankings import CUT_OFFS, Case, by_ids, cases, play, trec, value


def test_one_relevant_context_is_a_hit() -> None:
    """However many there are, and wherever; details say at which cut-offs."""
    found = play(hit_rate, by_ids(["x", "a", "b"], ["a", "b", "c"]))
    details = {"matched_by": "ids", "relevant_ranks": [2, 3], "at": {"1": 0.0, "3": 1.0}}
    assert found == Score(1.0, details=details)


def test_no_relevant_context_is_a_miss() -> None:
    """0, and the reason says so."""
    details = {"matched_by": "ids", "relevant_ranks": [], "at": {"1": 0.0}}
    assert play(hit_rate, by_ids(["x", "y"], ["a"])) == Score(0.0, "no relevant context", details)


@pytest.mark.parametrize(("k", "expected"), [(1, 0), (2, 0), (3, 1), (9, 1)])
def test_only_the_first_k_ranks_count(k: int, expected: float) -> None:
    """A hit below the cut-off is none."""
    assert value(hit_rate, Case(["x", "y", "a"], ["a"]), k) == expected


@given(cases(least=1), CUT_OFFS)
def test_is_the_success_of_trec_eval(case: Case, k: int | None) -> None:
    """An independent implementation gives the same value, at every cut-off."""
    assert value(hit_rate, case, k) == trec(f"success.{k or len(case.retrieved)}", case)


@given(cases(), CUT_OFFS)
def test_order_of_the_references_changes_nothing(case: Case, k: int | None) -> None:
    """References are a set, and the value is 0 or 1."""
    other = case._replace(reference=case.reference[::-1])
    assert value(hit_rate, case, k) == value(hit_rate, other, k)
    assert value(hit_rate, case, k) in (0, 1)


@given(cases(), st.integers(1, 14))
def test_never_falls_with_k(case: Case, k: int) -> None:
    """A hit stays one at every deeper cut-off."""
    assert value(hit_rate, case, k) <= value(hit_rate, case, k + 1)
