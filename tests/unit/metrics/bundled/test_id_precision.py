"""id_precision: how much of what was retrieved is known to be relevant."""

from __future__ import annotations

import pytest
from hypothesis import given

from ragmetrics.metrics.bundled.id_precision import id_precision
from ragmetrics.records import Score
from tests.fakes.rankings import CUT_OFFS, POOL, Case, a_row, by_ids, cases, play, trec, value


def test_value_is_the_share_of_the_retrieved_that_is_relevant() -> None:
    """Two of four; details say where, how it was told, and the value at cut-offs."""
    found = play(id_precision, by_ids(["a", "x", "b", "y"], ["b", "c", "a"]))
    at = {"1": 1.0, "3": 2 / 3}
    assert found == Score(1 / 2, details={"matched_by": "ids", "relevant_ranks": [1, 3], "at": at})


@pytest.mark.parametrize(("k", "expected"), [(1, 1), (2, 1 / 2), (3, 2 / 3), (6, 1 / 3)])
def test_the_denominator_is_the_cut_off(k: int, expected: float) -> None:
    """Even where fewer than k were retrieved: the literature's precision at k."""
    assert value(id_precision, Case(["a", "x", "b"], ["a", "b"]), k) == expected


def test_a_repeat_takes_a_rank_and_gains_nothing() -> None:
    """The second copy of a relevant context is of no more use than any other."""
    assert value(id_precision, Case(["a", "a"], ["a"])) == 1 / 2


def test_contexts_that_overlap_are_all_relevant() -> None:
    """By text, two different contexts that hold a reference are both relevant; a copy is not."""
    held = "The tower was opened in 1889."
    row = a_row(f"Before. {held}", f"{held} After.", f"before {held}", reference_contexts=(held,))
    assert play(id_precision, row).value == pytest.approx(2 / 3)


@given(cases(least=1), CUT_OFFS)
def test_is_the_precision_of_trec_eval(case: Case, k: int | None) -> None:
    """An independent implementation gives the same value, at every cut-off."""
    expected = trec(f"P.{k}" if k else "set_P", case)
    assert value(id_precision, case, k) == pytest.approx(expected)


@given(cases(), CUT_OFFS)
def test_order_of_the_references_changes_nothing(case: Case, k: int | None) -> None:
    """References are a set, and the value stays in [0, 1]."""
    other = case._replace(reference=case.reference[::-1])
    assert 0 <= value(id_precision, case, k) == value(id_precision, other, k) <= 1


@given(cases(least=1))
def test_one_more_that_is_irrelevant_never_raises_it(case: Case) -> None:
    """What is of no use at the end dilutes what is."""
    assert "z" not in POOL
    more = case._replace(retrieved=[*case.retrieved, "z"])
    assert value(id_precision, more) <= value(id_precision, case)
