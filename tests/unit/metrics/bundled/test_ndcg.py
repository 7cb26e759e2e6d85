"""ndcg: whether the relevant contexts were retrieved and stand first."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given, strategies as st

from ragmetrics.metrics.bundled.ndcg import ndcg
from tests.fakes.rankings import CUT_OFFS, Case, a_row, by_ids, cases, play, swapped, trec, value

SECOND, THIRD = 1 / log2(3), 1 / 2
OPENED, BUILT = "The tower was opened in 1889.", "Eiffel's company built it."


def test_value_is_the_gain_over_the_best_gain() -> None:
    """Relevant at ranks 1 and 3 of three references: 1.5 of 1 + 0.63 + 0.5."""
    found = play(ndcg, by_ids(["a", "x", "b"], ["a", "b", "c"]))
    assert (
        found.value == pytest.approx(1.5 / (1 + SECOND + THIRD)) == pytest.approx(0.7039, abs=1e-4)
    )
    assert found.details["relevant_ranks"] == [1, 3]
    assert found.details["at"] == {"1": 1.0, "3": found.value}


@pytest.mark.parametrize(
    ("k", "expected"),
    [(1, 0), (2, SECOND / (1 + SECOND)), (3, (SECOND + THIRD) / (1 + SECOND)), (9, None)],
)
def test_the_best_gain_is_that_of_k_ranks(k: int, expected: float | None) -> None:
    """No more relevant contexts are asked for than the cut-off lets in, or than there are."""
    case = Case(["x", "a", "b"], ["a", "b"])
    assert value(ndcg, case, k) == pytest.approx(value(ndcg, case, 3) if k == 9 else expected)


def test_without_a_cut_off_what_was_missed_counts() -> None:
    """One context, relevant, of two references: not a perfect ranking."""
    assert value(ndcg, Case(["a"], ["a", "b"])) == pytest.approx(1 / (1 + SECOND))
    assert value(ndcg, Case(["a"], ["a", "b"]), k=1) == 1.0


def test_a_repeat_takes_a_rank_and_gains_nothing() -> None:
    """The copy pushes the second reference down to rank 3."""
    assert value(ndcg, Case(["a", "a", "b"], ["a", "b"])) == pytest.approx(1.5 / (1 + SECOND))


@pytest.mark.parametrize(
    "contexts",
    [
        (f"{OPENED} {BUILT}",),
        (OPENED, BUILT),
        (f"{OPENED} {BUILT}", "Snow fell.", f"Again: {OPENED}"),
    ],
)
def test_by_text_a_perfect_ranking_is_one(contexts: tuple[str, ...]) -> None:
    """However the references are spread over contexts, and whatever repeats them below."""
    assert play(ndcg, a_row(*contexts, reference_contexts=(OPENED, BUILT))).value == 1.0


@given(st.integers(1, 12), CUT_OFFS)
def test_a_perfect_ranking_is_exactly_one(size: int, k: int | None) -> None:
    """No rounding keeps it below, nor lifts it above."""
    names = [str(n) for n in range(size)]
    assert value(ndcg, Case([*names, "x"], names), k) == 1.0


@given(cases(least=1), CUT_OFFS)
def test_is_the_ndcg_of_trec_eval(case: Case, k: int | None) -> None:
    """An independent implementation gives the same value, at every cut-off."""
    expected = trec(f"ndcg_cut.{k}" if k else "ndcg", case)
    assert value(ndcg, case, k) == pytest.approx(expected)


@given(cases(), CUT_OFFS)
def test_order_of_the_references_changes_nothing(case: Case, k: int | None) -> None:
    """References are a set, and the value stays in [0, 1]."""
    other = case._replace(reference=case.reference[::-1])
    assert 0 <= value(ndcg, case, k) == value(ndcg, other, k) <= 1


@given(cases(least=2), st.data(), CUT_OFFS)
def test_a_relevant_context_moved_up_never_lowers_it(
    case: Case, data: st.DataObject, k: int | None
) -> None:
    """Swap a rank with the next: better or equal if the next was relevant, else no better."""
    upper = data.draw(st.integers(0, len(case.retrieved) - 2))
    before, after = value(ndcg, case, k), value(ndcg, swapped(case, upper), k)
    relevant = case.retrieved[upper + 1] in case.reference
    assert after >= before if relevant else after <= before
