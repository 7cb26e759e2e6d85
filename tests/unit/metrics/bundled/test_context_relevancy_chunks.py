"""context_relevancy_chunks: contexts with a needed sentence over contexts; played by hand."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from ragmetrics.metrics.bundled.context_relevancy import Needed, context_relevancy
from ragmetrics.metrics.bundled.context_relevancy_chunks import context_relevancy_chunks
from ragmetrics.records import Score
from tests.builders import a_row, end

LARGE = "The tower stands in Paris. It was opened in May 1889. It is tall. It is red."
SMALL = "The Louvre is a museum."
CONTEXTS = st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=5)
"""Per context, which of its sentences are needed."""


def needs(*numbers: int) -> Needed:
    """The judge needs the sentences of these numbers."""
    return Needed(needed=list(numbers))


def play(contexts: list[list[bool]]) -> Score:
    """The score of made-up contexts by a judge that knows which sentences are needed."""
    steps = context_relevancy_chunks.play(a_row(*("A sentence. " * len(one) for one in contexts)))
    next(steps)
    flat = [needed for context in contexts for needed in context]
    return end(steps, needs(*(number for number, needed in enumerate(flat, 1) if needed)))


def test_value_is_the_share_of_contexts_with_a_needed_sentence() -> None:
    """Sentences 2 and 4 stand in the first of three contexts, 6 in the last: 2/3."""
    steps = context_relevancy_chunks.play(a_row(LARGE, SMALL, SMALL))
    next(steps)
    assert end(steps, needs(2, 4, 6)) == Score(2 / 3, details={"relevant_contexts": [0, 2]})


def test_a_large_chunk_with_a_short_answer_counts_in_full() -> None:
    """One needed sentence of four: 1.0 here, where context_relevancy says 0.25."""
    row = a_row(LARGE)
    values = []
    for metric in (context_relevancy_chunks, context_relevancy):
        steps = metric.play(row)
        next(steps)
        values.append(end(steps, needs(2)).value)
    assert values == [1.0, 0.25]


def test_reuses_the_verdict_of_context_relevancy() -> None:
    """The request is the very one of context_relevancy, so the driver asks it once."""
    row = a_row(LARGE, " ", SMALL)
    (asked,), (known,) = next(context_relevancy_chunks.play(row)), next(context_relevancy.play(row))
    assert asked.key == known.key


# Empty cases


def test_nothing_needed_is_zero() -> None:
    """No context with a needed sentence: 0, with the details to show it."""
    steps = context_relevancy_chunks.play(a_row(LARGE, SMALL))
    next(steps)
    assert end(steps, needs()) == Score(0.0, details={"relevant_contexts": []})


def test_a_blank_context_counts_as_one_without_use() -> None:
    """A blank context was retrieved all the same: it stands in the denominator."""
    steps = context_relevancy_chunks.play(a_row(SMALL, " "))
    next(steps)
    assert end(steps, needs(1)).value == 0.5


# Properties


@settings(deadline=None)
@given(CONTEXTS)
def test_value_counts_contexts(contexts: list[list[bool]]) -> None:
    """The value is the share of contexts with any needed sentence, in [0, 1]."""
    assert play(contexts).value == sum(any(context) for context in contexts) / len(contexts)


@settings(deadline=None)
@given(CONTEXTS.flatmap(lambda contexts: st.tuples(st.just(contexts), st.permutations(contexts))))
def test_order_of_the_contexts_does_not_matter(
    both: tuple[list[list[bool]], list[list[bool]]],
) -> None:
    """The same contexts in another order give the same value."""
    assert play(both[0]).value == play(both[1]).value


@settings(deadline=None)
@given(CONTEXTS)
def test_is_1_exactly_where_every_context_is_of_use(contexts: list[list[bool]]) -> None:
    """A padded chunk does not matter, a useless one does."""
    assert (play(contexts).value == 1.0) == all(any(context) for context in contexts)
