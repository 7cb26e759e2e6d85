"""context_precision: average precision over the grades of context_relevance; played by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import Unanswered
from ragmetrics.metrics import Grade, average_precision as of_weights
from ragmetrics.metrics.bundled.context_precision import context_precision
from ragmetrics.metrics.bundled.context_relevance import context_relevance
from ragmetrics.records import Score, Status
from tests.builders import a_row, end

RELEVANT = st.lists(st.booleans(), min_size=1, max_size=15)


def replies(*grades: int) -> list[Grade]:
    """What the judge says of each context asked about."""
    return [Grade.model_validate({"grade": grade}) for grade in grades]


def score(*grades: int, relevant_from: int = 1) -> Score:
    """The score of a row whose contexts are graded like this, by rank."""
    bound = context_precision.with_parameters({"relevant_from": relevant_from})
    steps = bound.play(a_row(*(f"context {rank}" for rank in range(len(grades)))))
    next(steps)
    return end(steps, *replies(*grades))


def average_precision(relevant: list[bool]) -> Fraction:
    """By the book: the mean of the precision at k over the relevant ranks k, in fractions."""
    at = [
        Fraction(sum(relevant[: k + 1]), k + 1) for k in range(len(relevant)) if relevant[k] is True
    ]
    return sum(at, Fraction(0)) / len(at) if at else Fraction(0)


def test_value_is_average_precision() -> None:
    """Relevant at ranks 1, 3 and 4 of 5: (1/1 + 2/3 + 3/4) / 3."""
    found = score(2, 0, 1, 2, 0)
    assert found.value == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert found.details == {"relevant_ranks": [1, 3, 4]}


def test_reuses_the_grades_of_context_relevance() -> None:
    """The requests are the very ones of context_relevance, so the driver asks them once."""
    row = a_row("one", " ", "two")
    asked, known = next(context_precision.play(row)), next(context_relevance.play(row))
    assert [request.key for request in asked] == [request.key for request in known]


def test_relevant_from_2_counts_full_answers_only() -> None:
    """With `relevant_from` 2 a grade of 1 is not relevant: one relevant at rank 2."""
    assert score(1, 2, 1, relevant_from=2).value == 0.5


# Empty cases


def test_no_relevant_context_is_zero() -> None:
    """Where nothing is relevant there is no rank to average over, and the reason is told."""
    assert score(0, 0) == Score(0.0, "no relevant context", {"relevant_ranks": []})


def test_blank_contexts_take_a_rank_and_are_not_asked() -> None:
    """A blank context pushes what follows down: relevant at rank 2 is 1/2."""
    steps = context_precision.play(a_row(" ", "text"))
    assert [request.data["context"] for request in next(steps)] == ["text"]
    assert end(steps, *replies(2)).value == 0.5


def test_a_missing_grade_leaves_the_row_unanswered() -> None:
    """A ranking with a hole has no average precision: Unanswered goes up."""
    steps = context_precision.play(a_row("one", "two"))
    next(steps)
    with pytest.raises(Unanswered, match="no verdict"):
        steps.send([*replies(2), Unanswered(Status.UNREADABLE, "no verdict")])


# Properties


@given(RELEVANT)
def test_agrees_with_a_naive_implementation(relevant: list[bool]) -> None:
    """The value is the textbook's average precision, to the last digits of a float."""
    assert score(*map(int, relevant)).value == pytest.approx(float(average_precision(relevant)))


@given(st.integers(1, 30), st.integers(0, 30))
def test_a_perfect_ranking_is_exactly_1(relevant: int, others: int) -> None:
    """All relevant contexts before all others: 1.0, not 0.9999999."""
    assert score(*[1] * relevant, *[0] * others).value == 1.0


@given(RELEVANT, st.data())
def test_moving_a_relevant_context_up_never_hurts(
    relevant: list[bool], data: st.DataObject
) -> None:
    """Swapping an irrelevant context with the relevant one right below it raises the value."""
    ranks = [k for k in range(len(relevant) - 1) if not relevant[k] and relevant[k + 1]]
    if ranks:
        k = data.draw(st.sampled_from(ranks))
        better = [*relevant[:k], True, False, *relevant[k + 2 :]]
        assert (score(*map(int, better)).value or 0) > (score(*map(int, relevant)).value or 0)


@given(RELEVANT)
def test_value_is_in_0_1(relevant: list[bool]) -> None:
    """0 only without a relevant context, 1 only where all relevant ones come first."""
    value = score(*map(int, relevant)).value
    assert value is not None
    assert 0 <= value <= 1
    assert (value == 0) == (not any(relevant))
    assert (value == 1) == (any(relevant) and relevant == sorted(relevant, reverse=True))


# Probabilities


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.0]), min_size=1, max_size=7))
def test_with_probabilities_it_is_the_expectation(weights: list[float]) -> None:
    """By the book: the sum over all rankings of what may be relevant, times their probability."""
    expected = 0.0
    for relevant in product([False, True], repeat=len(weights)):
        chances = [w if is_so else 1 - w for w, is_so in zip(weights, relevant, strict=True)]
        expected += prod(chances) * float(average_precision(list(relevant)))
    assert of_weights(weights).value == pytest.approx(expected)


def test_contexts_that_are_surely_of_no_use_are_worth_nothing() -> None:
    """A judge that gives each of ten useless contexts one per cent does not find half of them."""
    assert 0 < (of_weights([0.01] * 10).value or 1) < 0.05
