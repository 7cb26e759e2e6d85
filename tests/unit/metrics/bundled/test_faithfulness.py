"""faithfulness: statements of the response that the contexts support; replies played by hand."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.metrics import GROUNDED, Support
from ragmetrics.metrics.bundled.faithfulness import STATEMENTS, Statements, faithfulness
from ragmetrics.records import Ask, Data, Prompt, Score, Status
from tests import builders
from tests.builders import end

QUESTION = "Who built it, and when?"
RESPONSE = "Eiffel's company built it in 1889. I hope that helps!"
SAID = ["Eiffel's company built it in 1889.", "I hope that helps!"]
STATED = ["Eiffel's company built the tower.", "The tower was built in 1889."]
TAKEN_APART = Statements(statements=[STATED, []])
VERDICTS = st.lists(st.sampled_from([0, 1]), min_size=1, max_size=8)


a_row = partial(builders.a_row, user_input=QUESTION, response=RESPONSE)


def supported(*verdicts: int) -> Support:
    """One verdict per statement."""
    return Support.model_validate({"supported": verdicts})


def play(verdicts: list[int]) -> Score:
    """The score of a response of so many statements."""
    steps = faithfulness.play(a_row("context"))
    next(steps)
    steps.send([Statements(statements=[["It is so."] * len(verdicts), []])])
    return end(steps, supported(*verdicts))


def test_asks_for_statements_then_for_verdicts() -> None:
    """First our sentences are taken apart, then all statements meet all contexts, in one call."""
    steps = faithfulness.play(a_row("one", " ", "two"))
    assert next(steps) == [Ask(STATEMENTS, {"question": QUESTION, "sentences": SAID})]
    data = {"question": QUESTION, "contexts": ["one", "two"], "statements": STATED}
    assert steps.send([TAKEN_APART]) == [Ask(GROUNDED, data)]


def test_value_is_the_share_of_supported_statements() -> None:
    """One of two statements is supported; the details hold the judge's statements."""
    steps = faithfulness.play(a_row("context"))
    next(steps)
    steps.send([TAKEN_APART])
    details = {"statements": STATED, "supported": [True, False]}
    assert end(steps, supported(1, 0)) == Score(0.5, details=details)


def test_sentences_are_those_of_the_rows_language() -> None:
    """The response is split by the rules of the row's language."""
    (request,) = next(faithfulness.play(a_row("x", response="塔很高。它是红色的。", language="zh")))
    assert request.data["sentences"] == ["塔很高。", "它是红色的。"]


# Empty cases


def test_no_response_comes_before_nothing_retrieved() -> None:
    """What the row lacks to be scored comes before what the retriever lacks."""
    assert end(faithfulness.play(a_row(response=None))).status == Status.NOT_APPLICABLE


@pytest.mark.parametrize("statements", [[[], []], [[""], [" \n"]]])
def test_no_statement_is_not_applicable(statements: list[list[str]]) -> None:
    """A response that claims nothing is neither faithful nor not; a blank is no statement."""
    steps = faithfulness.play(a_row("context"))
    next(steps)
    found = end(steps, Statements(statements=statements))
    assert found == Score(None, "no statement in the response", status=Status.NOT_APPLICABLE)


def test_a_response_without_words_has_no_statement_and_is_not_asked_about() -> None:
    """Where no sentence holds a letter or digit there is nothing to take apart."""
    found = end(faithfulness.play(a_row("context", response="?! ...")))
    assert found == Score(None, "no statement in the response", status=Status.NOT_APPLICABLE)


def test_an_empty_question_is_scored_all_the_same() -> None:
    """The question only helps to understand the response: the metric does not need it."""
    steps = faithfulness.play(a_row("context", user_input=""))
    next(steps)
    steps.send([TAKEN_APART])
    assert end(steps, supported(1, 1)).value == 1.0
    assert faithfulness.needs == ("retrieved_contexts", "response")


@pytest.mark.parametrize("earlier", [[], [TAKEN_APART]])
def test_no_verdict_leaves_the_row_unanswered(earlier: list[Statements]) -> None:
    """Unanswered goes up to the driver, from either call."""
    steps = faithfulness.play(a_row("context"))
    next(steps)
    for answer in earlier:
        steps.send([answer])
    with pytest.raises(Unanswered, match="timed out"):
        steps.send([Unanswered(Status.JUDGE_FAILED, "timed out")])


# Replies


def test_reads_one_list_per_sentence() -> None:
    """Prose around the object is passed over; a sentence may have no statement."""
    reply = 'Here:\n```json\n{"statements": [["It was built in 1889."], []]}\n```'
    found = STATEMENTS.parse(reply, {"question": "?", "sentences": SAID})
    assert found.statements == [["It was built in 1889."], []]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"statements": [["a"]]}', "1 lists for 2 sentences"),
        ('{"statements": [["a"], [], ["b"]]}', "3 lists for 2 sentences"),
        ('{"statements": []}', "0 lists for 2 sentences"),
        ('{"statements": ["a", "b"]}', "valid array"),
        ('{"statements": [["a"], [1]]}', "valid string"),
        ("{}", "not there"),
        ("It was built in 1889.", "Invalid JSON"),
    ],
)
def test_other_statements_are_unreadable(reply: str, reason: str) -> None:
    """Not one list per sentence of ours, no verdict at all."""
    with pytest.raises(UnreadableReply, match=reason):
        STATEMENTS.parse(reply, {"question": "?", "sentences": SAID})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"supported": [1]}', "1 verdicts for 2 statements"),
        ('{"supported": [1, 0, 1]}', "3 verdicts for 2 statements"),
        ('{"supported": [1, 2]}', "should be 0 or 1"),
        ('{"supported": ["yes", "no"]}', "should be 0 or 1"),
        ("{}", "not there"),
        ("Both are supported.", "Invalid JSON"),
    ],
)
def test_other_verdicts_are_unreadable(reply: str, reason: str) -> None:
    """Not one verdict per statement, no verdict at all."""
    with pytest.raises(UnreadableReply, match=reason):
        GROUNDED.parse(reply, {"question": "?", "contexts": ["x"], "statements": STATED})


# The lexical judge


def verdict(prompt: Prompt[Any], data: Data) -> Any:
    """What the lexical judge says, having seen no corpus."""
    return asyncio.run(LexicalJudge(Corpus()).reply(Ask(prompt, data), 0)).verdict


def test_the_embedded_judge_takes_each_sentence_as_a_statement() -> None:
    """It cannot take apart, and does not try to."""
    found = verdict(STATEMENTS, {"question": "?", "sentences": SAID})
    assert found == Statements(statements=[[SAID[0]], [SAID[1]]])


def test_the_embedded_judge_supports_what_the_contexts_hold_together() -> None:
    """A statement is supported by words of several contexts; one of other words is not."""
    data = {
        "question": "?",
        "contexts": ["The company of Eiffel built", "the tower in 1889"],
        "statements": ["Eiffel built the tower in 1889.", "Visitors pay at the entrance."],
    }
    assert verdict(GROUNDED, data) == supported(1, 0)
    strengths = LexicalJudge(Corpus()).evidence(Ask(GROUNDED, data))
    assert strengths is not None
    assert strengths[0] == 1.0 > strengths[1]


# Properties


@settings(deadline=None)
@given(VERDICTS)
def test_value_is_the_mean_verdict(verdicts: list[int]) -> None:
    """In [0, 1]: 0 where nothing is supported, 1 where all is."""
    assert play(verdicts).value == sum(verdicts) / len(verdicts)


@settings(deadline=None)
@given(VERDICTS.flatmap(lambda some: st.tuples(st.just(some), st.permutations(some))))
def test_the_order_of_statements_does_not_matter(both: tuple[list[int], list[int]]) -> None:
    """The same verdicts in another order give the same value."""
    assert play(both[0]).value == play(both[1]).value


@settings(deadline=None)
@given(VERDICTS, st.data())
def test_one_more_supported_statement_raises_the_value(
    verdicts: list[int], data: st.DataObject
) -> None:
    """Support for a statement that had none is worth 1 / n."""
    place = data.draw(st.integers(0, len(verdicts) - 1))
    better = [1 if i == place else verdict for i, verdict in enumerate(verdicts)]
    gain = (play(better).value or 0) - (play(verdicts).value or 0)
    assert gain == pytest.approx((1 - verdicts[place]) / len(verdicts))
