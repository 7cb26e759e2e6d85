"""id_recall: reference contexts among those retrieved; values by hand and by trec_eval."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragmetrics.metrics.bundled.id_recall import id_recall
from ragmetrics.records import Score
from tests.fakes.rankings import CUT_OFFS, Case, a_row, by_ids, cases, play, trec, value


def test_value_is_the_share_of_the_references_retrieved() -> None:
    """Two of three references; details say where, how it was told, and the value at cut-offs."""
    found = play(id_recall, by_ids(["a", "x", "b", "y"], ["b", "c", "a"]))
    at = {"1": 1 / 3, "3": 2 / 3}
    assert found == Score(2 / 3, details={"matched_by": "ids", "relevant_ranks": [1, 3], "at": at})


@pytest.mark.parametrize(("k", "expected"), [(1, 0), (2, 1 / 2), (3, 1 / 2), (4, 1), (9, 1)])
def test_only_the_first_k_ranks_count(k: int, expected: float) -> None:
    """A cut-off beyond what was retrieved takes all of it."""
    assert value(id_recall, Case(["x", "a", "y", "b"], ["a", "b"]), k) == expected


def test_repeats_count_once_on_either_side() -> None:
    """The same id twice is one reference, and one found."""
    assert value(id_recall, Case(["a", "a", "a"], ["a", "b", "b"])) == 1 / 2


def test_a_context_may_bring_two_references() -> None:
    """By text a large context holds several references, and all of them are found."""
    row = a_row(
        "Snow fell. The tower was opened in 1889. Eiffel's company built it.",
        reference_contexts=("The tower was opened in 1889.", "Eiffel's company built it."),
    )
    assert play(id_recall, row).value == 1.0


@given(cases(least=1), CUT_OFFS)
def test_is_the_recall_of_trec_eval(case: Case, k: int | None) -> None:
    """An independent implementation gives the same value, at every cut-off."""
    expected = trec(f"recall.{k}" if k else "set_recall", case)
    assert value(id_recall, case, k) == pytest.approx(expected)


@given(cases(), CUT_OFFS)
def test_order_of_the_references_changes_nothing(case: Case, k: int | None) -> None:
    """References are a set, and the value stays in [0, 1]."""
    other = case._replace(reference=case.reference[::-1])
    assert 0 <= value(id_recall, case, k) == value(id_recall, other, k) <= 1


@given(cases(), st.integers(1, 14))
def test_never_falls_with_k(case: Case, k: int) -> None:
    """More ranks find no less."""
    assert value(id_recall, case, k) <= value(id_recall, case, k + 1)


@given(cases())
def test_one_more_reference_at_the_end_is_worth_its_share(case: Case) -> None:
    """What was missed and comes last raises the value by 1 / references, what is there by none."""
    more = case._replace(retrieved=[*case.retrieved, case.reference[0]])
    gain = 0 if case.reference[0] in case.retrieved else 1 / len(case.reference)
    assert value(id_recall, more) - value(id_recall, case) == pytest.approx(gain)
