"""response_relevancy: does the response answer the question asked; replies played by hand."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from hypothesis.extra import numpy as hnp

from ragmetrics.errors import InputError, Unanswered, UnreadableReply
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS, Questions, response_relevancy
from ragmetrics.records import Ask, Embed, Score, Status, Vector
from tests import builders
from tests.builders import end

ASKED = "When was the tower opened?"
THREE = ["When did it open?", "In which year was it opened?", "What happened in 1889?"]
DATA = {"response": "In 1889.", "language": "en", "n": 3}
VECTORS = hnp.arrays(np.float32, (4, 5), elements=st.floats(-1e3, 1e3, width=32))


a_row = partial(builders.a_row, user_input=ASKED, response="It was opened in 1889.")


def verdict(*questions: str, noncommittal: bool = False) -> Questions:
    """The judge's reply."""
    return Questions(questions=list(questions), noncommittal=noncommittal)


def play(*vectors: Vector | list[float]) -> Score:
    """The score for an embedding of the question asked and of three generated ones."""
    steps = response_relevancy.play(a_row())
    next(steps)
    steps.send([verdict(*THREE)])
    return end(steps, *[np.asarray(vector, dtype=np.float32) for vector in vectors])


def test_asks_for_three_questions_then_for_embeddings() -> None:
    """First one request about the response alone, then a wave of one embedding per question."""
    steps = response_relevancy.play(a_row(language="de"))
    data = {"response": "It was opened in 1889.", "language": "de", "n": 3}
    assert next(steps) == [Ask(QUESTIONS, data)]
    assert steps.send([verdict(*THREE)]) == [Embed(ASKED), *map(Embed, THREE)]


def test_value_is_the_mean_cosine() -> None:
    """Cosines 1, 0 and 3/5 have the mean 8/15; lengths of vectors do not matter."""
    found = play([2, 0], [1, 0], [0, 7], [3, 4])
    assert found.value == pytest.approx(8 / 15)
    assert found.details == {
        "questions": THREE,
        "noncommittal": False,
        "cosines": [1.0, 0.0, 0.6],
    }


def test_opposite_meaning_is_minus_1() -> None:
    """The range is [-1, 1], not [0, 1]."""
    assert play([1, 0], [-1, 0], [-2, 0], [-3, 0]).value == -1.0


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_a_vector_without_a_direction_gives_no_score(zero: int) -> None:
    """Zero is close to nothing and far from nothing: unreadable, and never 0.0."""
    vectors = [[1.0, 0.0]] * 4
    vectors[zero] = [0.0, 0.0]
    found = play(*vectors)
    assert (found.value, found.status) == (None, Status.UNREADABLE)
    assert found.reason == "an embedding has no direction"


def test_the_number_of_questions_is_a_parameter() -> None:
    """`questions: 1` asks for one, and the value is its cosine."""
    steps = response_relevancy.with_parameters({"questions": 1}).play(a_row())
    (request,) = next(steps)
    steps.send([verdict("When?")])
    assert request.data["n"] == 1
    assert end(steps, np.array([1, 0]), np.array([1, 1])).value == pytest.approx(0.5**0.5, 1e-5)


def test_no_questions_is_an_input_error() -> None:
    """A mean of nothing would be NaN: the parameter is refused before anything is asked."""
    with pytest.raises(InputError, match="questions: 0 is less than 1"):
        next(response_relevancy.with_parameters({"questions": 0}).play(a_row()))


# Empty cases


def test_noncommittal_response_is_zero_and_nothing_is_embedded() -> None:
    """A response that avoids to answer is 0 whatever questions it would answer."""
    steps = response_relevancy.play(a_row())
    next(steps)
    found = end(steps, verdict("What do you know?", noncommittal=True))
    assert (found.value, found.status) == (0.0, Status.SCORED)
    assert found.reason == "noncommittal response"


@pytest.mark.parametrize("wave", ["verdict", "embedding"])
def test_what_cannot_be_had_leaves_the_row_unanswered(wave: str) -> None:
    """Without the verdict, or without one of the embeddings, there is no score."""
    lost = Unanswered(Status.JUDGE_FAILED, f"no {wave}")
    steps = response_relevancy.play(a_row())
    next(steps)
    if wave == "embedding":
        steps.send([verdict(*THREE)])
    with pytest.raises(Unanswered, match=f"no {wave}"):
        steps.send([lost] if wave == "verdict" else [*[np.ones(2)] * 3, lost])


# Replies


def reply(*questions: str, noncommittal: bool = False) -> str:
    """A reply as the judge writes it."""
    return json.dumps({"questions": questions, "noncommittal": noncommittal})


@pytest.mark.parametrize("text", [reply(*THREE), f"Here you are: {reply(*THREE)} Good luck!"])
def test_reads_the_questions_with_prose_around_them(text: str) -> None:
    """Chatty models are understood."""
    assert QUESTIONS.parse(text, DATA).questions == THREE


def test_a_noncommittal_reply_may_hold_any_number_of_questions() -> None:
    """No question is read from a noncommittal response, so none is missed."""
    assert QUESTIONS.parse(reply(noncommittal=True), DATA).noncommittal


@pytest.mark.parametrize(
    "text",
    [
        reply("When?", "Where?"),
        reply("When?", "Where?", "Why?", "How?"),
        reply("When?", "Where?", "  WHERE "),
        reply("When?", "Where?", " "),
        reply(),
        '{"questions": ["When?", "Where?", "Why?"]}',
        '{"questions": ["When?", "Where?", "Why?"], "noncommittal": "perhaps"}',
        '{"questions": ["When?", "Where?", 3], "noncommittal": false}',
        "When? Where? Why?",
    ],
)
def test_any_other_reply_is_unreadable(text: str) -> None:
    """Too few, too many, repeated, blank or untyped questions are refused."""
    with pytest.raises(UnreadableReply):
        QUESTIONS.parse(text, DATA)


# Properties


@given(VECTORS)
def test_value_is_in_minus_1_to_1(vectors: np.ndarray) -> None:
    """Whatever the embeddings are, rounding does not push the value out of range."""
    assume(all(np.linalg.norm(vector) for vector in vectors))
    value = play(*vectors).value
    assert value is not None
    assert -1 <= value <= 1


@given(VECTORS, st.permutations([1, 2, 3]))
def test_order_of_the_questions_does_not_matter(vectors: np.ndarray, order: list[int]) -> None:
    """The mean is the same whichever question the judge names first."""
    expected = play(*vectors).value
    assert play(vectors[0], *(vectors[i] for i in order)).value == pytest.approx(expected)
