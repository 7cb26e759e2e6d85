"""ragas_context_relevance: ragas 0.4's two grades of all contexts; replies played by hand."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import InputError, Unanswered, UnreadableReply
from ragmetrics.judges import Corpus
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.metrics.bundled.ragas_context_relevance import (
    FIRST,
    SECOND,
    ragas_context_relevance,
)
from ragmetrics.records import Answer, Ask, LogRow, Score, Status, Steps, Text

# What ragas 0.4.3 itself makes of these texts: `template_relevance1.format(...)`, sha256.
AWKWARD = LogRow(
    id="row-1",
    user_input='What does "{answer}" mean, {question}?\n2nd line',
    retrieved_contexts=('Ærø: \\n "quoted" {context}', "塔は{}赤い。\n\ttab"),
)
RAGAS_TEXTS = ["beae45a2211997b7", "3847e1a7dd781c43"]
MUTE = Unanswered(Status.UNREADABLE, "no 2, 1 or 0 in the reply")
GRADES = st.integers(0, 2)


def a_row(*contexts: str, user_input: str = "When did it open?") -> LogRow:
    """A row with two contexts, unless told otherwise."""
    return LogRow(
        id="row-1", user_input=user_input, retrieved_contexts=contexts or ("In 1889.", "In May.")
    )


def answer(reply: Any) -> Answer:
    """A reply as text, or what came in its place."""
    return reply if isinstance(reply, Unanswered) else Text(text=str(reply))


def play(first: Any, second: Any, **parameters: Any) -> Score:
    """The score that two replies give."""
    steps = ragas_context_relevance.with_parameters(parameters).play(a_row())
    next(steps)
    with pytest.raises(StopIteration) as stop:
        steps.send([answer(first), answer(second)])
    return stop.value.value


def at_once(steps: Steps[Score]) -> Score:
    """The score of a row about which nothing is asked."""
    with pytest.raises(StopIteration) as stop:
        next(steps)
    return stop.value.value


def test_asks_twice_about_the_contexts_as_one_text() -> None:
    """Two wordings, one wave; contexts are joined by a line break."""
    data = {"question": "When did it open?", "context": "In 1889.\nIn May."}
    assert next(ragas_context_relevance.play(a_row())) == [Ask(FIRST, data), Ask(SECOND, data)]


def test_sends_the_very_words_of_ragas() -> None:
    """One user turn each, equal byte by byte, braces and quotes in the data included."""
    requests = next(ragas_context_relevance.play(AWKWARD))
    turns = [turn for request in requests for turn in request.prompt.messages(request.data)]
    assert [turn["role"] for turn in turns] == ["user", "user"]
    digests = [hashlib.sha256(turn["content"].encode()).hexdigest()[:16] for turn in turns]
    assert digests == RAGAS_TEXTS


def test_value_is_the_mean_of_the_halved_grades() -> None:
    """Grades 2 and 1: (1 + 1/2) / 2."""
    assert play(2, 1) == Score(0.75, details={"grades": [2, 1]})


# Quirks


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        ("2", 2),
        (" 1]", 1),
        ("The score is 0.", 0),
        ("Between 0 and 2", 2),
        ("0, though the page of 2019 comes close", 2),
        ("10", 1),
        ("0 or 1, I cannot say", 1),
        ("340", 0),
    ],
)
def test_the_first_of_2_1_0_found_anywhere_counts(reply: str, grade: int) -> None:
    """In this order, not in the order of the reply."""
    assert play(reply, reply).details == {"grades": [grade, grade]}


@pytest.mark.parametrize(
    ("first", "second", "either", "of_first"),
    [(2, MUTE, 1.0, 1.0), (0, MUTE, 0.0, 0.0), (MUTE, 1, 0.5, None), (MUTE, 0, 0.0, None)],
)
def test_one_missing_judgement_leaves_the_other(
    first: Any, second: Any, either: float, of_first: float | None
) -> None:
    """ragas.metrics of 0.4.3 loses the second alone: max(nan, x) is NaN."""
    assert play(first, second).value == either
    if of_first is None:
        with pytest.raises(Unanswered):
            play(first, second, alone="first")
    else:
        assert play(first, second, alone="first").value == of_first


def test_both_missing_is_unanswered() -> None:
    """The driver makes it the status unreadable, where ragas gives NaN."""
    with pytest.raises(Unanswered, match="no 2, 1 or 0") as raised:
        play(MUTE, MUTE)
    assert raised.value.status == Status.UNREADABLE


def test_a_judge_that_cannot_be_asked_is_no_missing_judgement() -> None:
    """The row fails, as in ragas."""
    with pytest.raises(Unanswered, match="timeout"):
        play(2, Unanswered(Status.JUDGE_FAILED, "timeout"))


@pytest.mark.parametrize(
    ("question", "contexts"),
    [
        ("", ("In 1889.",)),
        (" \n", ("In 1889.",)),
        ("When?", ("",)),
        ("When?", (" ", "\n")),
        ("The tower.", ("The tower.",)),
        (" The tower.\n", ("\tThe tower. ",)),
        ("Is the tower tall?", ("the tower",)),
        ("Is the\ntower tall?", ("the", "tower ")),
    ],
)
def test_zero_without_a_call(question: str, contexts: tuple[str, ...]) -> None:
    """Empty question or contexts, or contexts that equal the question or stand in it."""
    found = at_once(ragas_context_relevance.play(a_row(*contexts, user_input=question)))
    assert found.value == 0.0
    assert found.reason


def test_nothing_retrieved_is_zero_without_a_call() -> None:
    """As in ragas."""
    row = LogRow(id="row-1", user_input="When?", retrieved_contexts=())
    assert at_once(ragas_context_relevance.play(row)).value == 0.0


def test_a_context_that_holds_the_question_is_asked_about() -> None:
    """Only the other way round is 0 at once."""
    row = a_row("The tower is tall.", user_input="The tower")
    assert len(next(ragas_context_relevance.play(row))) == 2


def test_parameter_out_of_range_is_refused() -> None:
    """With the parameter's name."""
    with pytest.raises(InputError, match="alone"):
        play(2, 2, alone="second")


# Replies


@pytest.mark.parametrize("reply", ["", "I cannot say.", "Three.", "٢", "3"])
def test_a_reply_without_a_grade_is_unreadable(reply: str) -> None:
    """It is asked again."""
    for prompt in (FIRST, SECOND):
        with pytest.raises(UnreadableReply, match="no 2, 1 or 0"):
            prompt.parse(reply, {})


def test_the_embedded_judge_grades() -> None:
    """Its baseline grades all contexts as one."""
    data = {"question": "When did the tower open?", "context": "The tower did open when?"}
    for prompt in (FIRST, SECOND):
        assert prompt.baseline is not None
        assert prompt.baseline(data, Overlap(Corpus())) == Text(text="2")
        assert prompt.baseline(data | {"context": "Cats purr."}, Overlap(Corpus())).text == "0"


# Properties


@given(GRADES, GRADES)
def test_value_is_in_bounds_and_symmetric(first: int, second: int) -> None:
    """In [0, 1]; which wording gave which grade does not matter."""
    assert play(first, second).value == play(second, first).value == (first + second) / 4


@given(st.integers(0, 1), GRADES)
def test_a_better_grade_raises_the_value(first: int, second: int) -> None:
    """One grade more is worth a quarter."""
    assert (play(first + 1, second).value or 0) - (play(first, second).value or 0) == 0.25
