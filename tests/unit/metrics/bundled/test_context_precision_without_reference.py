"""context_precision_without_reference: as with a reference, by the response; played by hand."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.metrics import metric_families
from ragmetrics.metrics.bundled.context_precision_with_reference import (
    USEFUL,
    Useful,
    context_precision_with_reference,
)
from ragmetrics.metrics.bundled.context_precision_without_reference import (
    context_precision_without_reference,
)
from ragmetrics.records import Ask, Score, Status
from tests import builders
from tests.builders import end

QUESTION = "When was the tower opened?"
RESPONSE = "It was opened in 1888."
USEFULNESS = st.lists(st.sampled_from([0, 1]), min_size=1, max_size=15)


a_row = partial(builders.a_row, user_input=QUESTION, response=RESPONSE)


def replies(*verdicts: int) -> list[Useful]:
    """What the judge says of each context asked about."""
    return [Useful.model_validate({"useful": verdict}) for verdict in verdicts]


def score(*verdicts: int) -> Score:
    """The score of a row whose contexts are of use like this, by rank."""
    contexts = (f"context {rank}" for rank in range(len(verdicts)))
    steps = context_precision_without_reference.play(a_row(*contexts))
    next(steps)
    return end(steps, *replies(*verdicts))


def test_asks_about_the_response_and_not_the_reference() -> None:
    """The answer in the request is what was replied, though there is a reference."""
    requests = next(context_precision_without_reference.play(a_row("one", reference="In 1889.")))
    assert requests == [
        Ask(USEFUL, {"question": QUESTION, "context": "one", "answer": RESPONSE}),
    ]


def test_value_is_average_precision() -> None:
    """Useful at ranks 2 and 3 of 3: (1/2 + 2/3) / 2."""
    found = score(0, 1, 1)
    assert found.value == pytest.approx(7 / 12)
    assert found.details == {"relevant_ranks": [2, 3]}


def test_is_one_family_with_the_form_that_has_a_reference() -> None:
    """Where the response is the reference their requests are equal, and are asked once."""
    both = [context_precision_with_reference, context_precision_without_reference]
    assert metric_families(both) == [tuple(both)]
    row = a_row("one", reference=RESPONSE)
    assert next(both[0].play(row)) == next(both[1].play(row))


# Empty cases


def test_no_useful_context_is_zero() -> None:
    """A response that drew on nothing retrieved, and the reason is told."""
    assert score(0, 0) == Score(0.0, "no relevant context", {"relevant_ranks": []})


def test_blank_contexts_take_a_rank_and_are_not_asked() -> None:
    """A blank context pushes what follows down; where all are blank nothing is asked."""
    steps = context_precision_without_reference.play(a_row(" ", "text"))
    assert [request.data["context"] for request in next(steps)] == ["text"]
    assert end(steps, *replies(1)).value == 0.5
    assert end(context_precision_without_reference.play(a_row("", " "))).value == 0.0


def test_a_missing_verdict_leaves_the_row_unanswered() -> None:
    """A ranking with a hole has no average precision: Unanswered goes up."""
    steps = context_precision_without_reference.play(a_row("one"))
    next(steps)
    with pytest.raises(Unanswered, match="no verdict"):
        steps.send([Unanswered(Status.UNREADABLE, "no verdict")])


def test_a_reply_that_is_no_verdict_is_unreadable() -> None:
    """Chat about the context, or a number that is neither 0 nor 1."""
    (request,) = next(context_precision_without_reference.play(a_row("one")))
    for reply in ("Yes, it was.", '{"useful": 3}'):
        with pytest.raises(UnreadableReply):
            USEFUL.parse(reply, request.data)


# Properties


@given(USEFULNESS)
def test_value_is_that_of_the_form_with_a_reference(verdicts: list[int]) -> None:
    """The same verdicts give the same value, in [0, 1]: only the answer asked about differs."""
    contexts = (f"context {rank}" for rank in range(len(verdicts)))
    steps = context_precision_with_reference.play(a_row(*contexts, reference="In 1889."))
    next(steps)
    found = score(*verdicts)
    assert found == end(steps, *replies(*verdicts))
    assert found.value is not None
    assert 0 <= found.value <= 1


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
