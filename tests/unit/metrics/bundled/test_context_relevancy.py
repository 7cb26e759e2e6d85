"""context_relevancy: needed sentences over retrieved sentences; replies played by hand."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics import NEEDED
from ragmetrics.metrics.bundled.context_relevancy import Needed, context_relevancy
from ragmetrics.records import Ask, Score
from tests import builders
from tests.builders import end

QUESTION = "When was the tower opened?"
TOWER = "The tower stands in Paris. It was opened in May 1889."
LOUVRE = "The Louvre is a museum."
DATA = {
    "question": QUESTION,
    "contexts": [
        {"1": "The tower stands in Paris.", "2": "It was opened in May 1889."},
        {"3": "x"},
    ],
}
CONTEXTS = st.lists(st.lists(st.booleans(), max_size=4), min_size=1, max_size=5)
"""Per context, which of its sentences are needed."""


a_row = partial(builders.a_row, user_input=QUESTION)


def needs(*numbers: int) -> Needed:
    """The judge needs the sentences of these numbers."""
    return Needed(needed=list(numbers))


def play(contexts: list[list[bool]]) -> Score:
    """The score of made-up contexts by a judge that knows which sentences are needed."""
    texts = [
        " ".join("This one is needed." if needed else "This one is not." for needed in context)
        for context in contexts
    ]
    steps = context_relevancy.play(a_row(*texts))
    try:
        (request,) = next(steps)
    except StopIteration as stop:
        return stop.value
    numbered = {int(n): text for context in request.data["contexts"] for n, text in context.items()}
    return end(steps, needs(*(n for n, text in numbered.items() if text == "This one is needed.")))


def test_asks_once_with_sentences_numbered_throughout() -> None:
    """One request holds all contexts; our numbers run from 1 across them."""
    requests = next(context_relevancy.play(a_row(TOWER, LOUVRE)))
    contexts = [
        {"1": "The tower stands in Paris.", "2": "It was opened in May 1889."},
        {"3": "The Louvre is a museum."},
    ]
    assert requests == [Ask(NEEDED, {"question": QUESTION, "contexts": contexts})]


def test_value_is_the_share_of_needed_sentences() -> None:
    """One needed sentence of three; details say which, by context and from 0."""
    steps = context_relevancy.play(a_row(TOWER, LOUVRE))
    next(steps)
    details = {"needed": [[1], []], "sentences": [2, 1]}
    assert end(steps, needs(2)) == Score(1 / 3, details=details)


def test_order_of_the_numbers_does_not_matter() -> None:
    """Indices come out ascending, however the judge lists them."""
    steps = context_relevancy.play(a_row(TOWER, LOUVRE))
    next(steps)
    assert end(steps, needs(3, 2, 1)).details["needed"] == [[0, 1], [0]]


def test_nothing_needed_is_zero() -> None:
    """An empty list is a verdict: none of the sentences helps."""
    steps = context_relevancy.play(a_row(TOWER))
    next(steps)
    assert end(steps, needs()).value == 0.0


def test_sentences_are_those_of_the_rows_language() -> None:
    """Chinese stops end sentences where the row says it is Chinese."""
    (request,) = next(context_relevancy.play(a_row("塔在巴黎。它于1889年开放。", language="zh")))
    assert request.data["contexts"] == [{"1": "塔在巴黎。", "2": "它于1889年开放。"}]


# Empty cases


def test_a_blank_context_has_no_numbers() -> None:
    """Blank contexts keep their place in the request and hold no sentence."""
    (request,) = next(context_relevancy.play(a_row(LOUVRE, " ", LOUVRE)))
    assert [list(context) for context in request.data["contexts"]] == [["1"], [], ["2"]]


# Replies


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ('{"needed": [2]}', [2]),
        ('{"needed": []}', []),
        ('Sure! ```json\n{"needed": [3, 1]}\n``` These help.', [3, 1]),
    ],
)
def test_reads_numbers_with_prose_around_them(reply: str, numbers: list[int]) -> None:
    """Any of our numbers, each once, in any order, is a verdict."""
    assert NEEDED.parse(reply, DATA).needed == numbers


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"needed": [4]}', "there is no sentence 4"),
        ('{"needed": [0, 1]}', "there is no sentence 0"),
        ('{"needed": [-1]}', "there is no sentence -1"),
        ('{"needed": [2, 2]}', "repeated"),
        ('{"needed": [1, 2, 3, 1]}', "repeated"),
        ('{"needed": ["It was opened in May 1889."]}', "valid integer"),
        ('{"needed": [1.5]}', "valid integer"),
        ('{"needed": 2}', "valid array"),
        ('{"needed": null}', "valid array"),
        ("{}", "not there"),
        ("Insufficient Information", "Invalid JSON"),
    ],
)
def test_any_other_reply_is_unreadable(reply: str, reason: str) -> None:
    """Numbers out of range, repeated ones, and text in place of numbers are refused."""
    with pytest.raises(UnreadableReply, match=reason):
        NEEDED.parse(reply, DATA)


# Properties


@settings(deadline=None)
@given(CONTEXTS)
def test_value_is_needed_over_all(contexts: list[list[bool]]) -> None:
    """The value counts sentences whatever context they stand in; it is in [0, 1]."""
    flat = [needed for context in contexts for needed in context]
    assert play(contexts).value == (sum(flat) / len(flat) if flat else 0.0)


@settings(deadline=None)
@given(CONTEXTS.flatmap(lambda contexts: st.tuples(st.just(contexts), st.permutations(contexts))))
def test_order_of_the_contexts_does_not_matter(
    both: tuple[list[list[bool]], list[list[bool]]],
) -> None:
    """The same contexts in another order give the same value."""
    assert play(both[0]).value == play(both[1]).value


@settings(deadline=None)
@given(CONTEXTS)
def test_a_useless_context_lowers_the_value(contexts: list[list[bool]]) -> None:
    """One more context without a needed sentence never raises the value."""
    assert (play([*contexts, [False]]).value or 0) <= (play(contexts).value or 0)
