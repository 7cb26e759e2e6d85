"""context_precision_with_reference: average precision over usefulness; played by hand."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.metrics import Grade
from ragmetrics.metrics.bundled.context_precision import context_precision
from ragmetrics.metrics.bundled.context_precision_with_reference import (
    USEFUL,
    Useful,
    context_precision_with_reference,
)
from ragmetrics.records import Ask, Score, Status
from tests import builders
from tests.builders import end

QUESTION = "When was the tower opened?"
ANSWER = "In May 1889."
USEFULNESS = st.lists(st.sampled_from([0, 1]), min_size=1, max_size=15)


a_row = partial(builders.a_row, user_input=QUESTION, reference=ANSWER)


def replies(*verdicts: int) -> list[Useful]:
    """What the judge says of each context asked about."""
    return [Useful.model_validate({"useful": verdict}) for verdict in verdicts]


def score(*verdicts: int) -> Score:
    """The score of a row whose contexts are of use like this, by rank."""
    contexts = (f"context {rank}" for rank in range(len(verdicts)))
    steps = context_precision_with_reference.play(a_row(*contexts))
    next(steps)
    return end(steps, *replies(*verdicts))


def test_asks_once_per_context_in_one_wave() -> None:
    """Each context is judged on its own, with the question and the reference answer."""
    requests = next(context_precision_with_reference.play(a_row("one", "two")))
    assert requests == [
        Ask(USEFUL, {"question": QUESTION, "context": "one", "answer": ANSWER}),
        Ask(USEFUL, {"question": QUESTION, "context": "two", "answer": ANSWER}),
    ]


def test_value_is_average_precision() -> None:
    """Useful at ranks 1, 3 and 4 of 5: (1/1 + 2/3 + 3/4) / 3."""
    found = score(1, 0, 1, 1, 0)
    assert found.value == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert found.details == {"relevant_ranks": [1, 3, 4]}


def test_equal_contexts_make_equal_requests() -> None:
    """A context retrieved twice has one key, so that the driver asks once."""
    first, second = next(context_precision_with_reference.play(a_row("same", "same")))
    assert first.key == second.key


# Empty cases


def test_no_useful_context_is_zero() -> None:
    """Where nothing is of use there is no rank to average over, and the reason is told."""
    assert score(0, 0) == Score(0.0, "no relevant context", {"relevant_ranks": []})


def test_blank_contexts_take_a_rank_and_are_not_asked() -> None:
    """A blank context pushes what follows down: useful at rank 2 is 1/2."""
    steps = context_precision_with_reference.play(a_row(" ", "text"))
    assert [request.data["context"] for request in next(steps)] == ["text"]
    assert end(steps, *replies(1)).value == 0.5


def test_a_missing_verdict_leaves_the_row_unanswered() -> None:
    """A ranking with a hole has no average precision: Unanswered goes up."""
    steps = context_precision_with_reference.play(a_row("one", "two"))
    next(steps)
    with pytest.raises(Unanswered, match="no verdict"):
        steps.send([*replies(1), Unanswered(Status.UNREADABLE, "no verdict")])


# Replies


@pytest.mark.parametrize(
    "reply",
    ['{"useful": 1}', 'It was:\n```json\n{"useful": 1}\n```', '{"useful": true}'],
)
def test_reads_a_verdict(reply: str) -> None:
    """Prose around the object is passed over, and true is as good as 1."""
    assert USEFUL.parse(reply, {}).useful == 1


@pytest.mark.parametrize(
    "reply",
    ["", "1", "useful", '{"useful": 2}', '{"useful": 0.5}', '{"useful": "yes"}', '{"verdict": 1}'],
)
def test_any_other_reply_is_unreadable(reply: str) -> None:
    """Only one object with the verdict 0 or 1 is a verdict."""
    with pytest.raises(UnreadableReply):
        USEFUL.parse(reply, {})


def test_the_embedded_judge_weighs_question_and_answer_alike() -> None:
    """Half of what is covered of each, by weight: of use from a mean of 0.5 on."""
    judge = LexicalJudge(Corpus())
    asked = [
        Ask(USEFUL, {"question": "Tower opened?", "answer": "Spring 1889", "context": context})
        for context in ("The tower opened in spring 1889.", "The tower opened.", "Tower.", "Sea.")
    ]
    assert [judge.evidence(one) for one in asked] == [[1.0], [0.5], [0.25], [0.0]]
    found = [asyncio.run(judge.reply(one, 0)).verdict for one in asked]
    assert found == replies(1, 1, 0, 0)


# Properties


@given(USEFULNESS)
def test_agrees_with_a_naive_implementation(verdicts: list[int]) -> None:
    """The mean of the precision at k over the useful ranks k, in fractions."""
    at = [Fraction(sum(verdicts[: k + 1]), k + 1) for k, useful in enumerate(verdicts) if useful]
    expected = float(sum(at, Fraction(0)) / len(at)) if at else 0.0
    assert score(*verdicts).value == pytest.approx(expected)


@given(USEFULNESS)
def test_values_are_those_of_context_precision(verdicts: list[int]) -> None:
    """The same contexts counting gives the same value: the arithmetic is shared."""
    steps = context_precision.play(a_row(*(f"context {k}" for k in range(len(verdicts)))))
    next(steps)
    grades: list[Any] = [Grade.model_validate({"grade": verdict}) for verdict in verdicts]
    assert end(steps, *grades) == score(*verdicts)


@given(st.integers(1, 30), st.integers(0, 30))
def test_a_perfect_ranking_is_exactly_1(useful: int, others: int) -> None:
    """All useful contexts before all others: 1.0, not 0.9999999."""
    assert score(*[1] * useful, *[0] * others).value == 1.0


@given(USEFULNESS, st.data())
def test_moving_a_useful_context_up_raises_the_value(
    verdicts: list[int], data: st.DataObject
) -> None:
    """Swapping a useless context with the useful one right below it."""
    ranks = [k for k in range(len(verdicts) - 1) if verdicts[k : k + 2] == [0, 1]]
    if ranks:
        k = data.draw(st.sampled_from(ranks))
        better = [*verdicts[:k], 1, 0, *verdicts[k + 2 :]]
        assert (score(*better).value or 0) > (score(*verdicts).value or 0)


@given(USEFULNESS)
def test_value_is_in_0_1(verdicts: list[int]) -> None:
    """0 only without a useful context."""
    value = score(*verdicts).value
    assert value is not None
    assert 0 <= value <= 1
    assert (value == 0) == (not any(verdicts))
