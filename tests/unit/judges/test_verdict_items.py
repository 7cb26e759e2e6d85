"""Verdicts by prompt and level, and replies that copy an example."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from ragmetrics.judges.verdict_items import VerdictCounts
from ragmetrics.metrics import GRADE, NEEDED, SUPPORT
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import Ask, Prompt, VerdictCount

CONTEXT = {"question": "Where?", "context": "Here."}
RESPONSE = {"response": "It stands in Paris.", "language": "en", "n": 2}


class Expected(BaseModel):
    """A grade that is the mean of several probable ones."""

    grade: float


class Odd(BaseModel):
    """Another tool's verdict, whose field has a name of ours."""

    supported: Any


class Choice(BaseModel):
    """A verdict that is chosen, with a reason that is written."""

    verdict: Literal["helpful", "useless"]
    reason: str


def counted(prompt: Prompt[Any], *replies: tuple[dict[str, Any], BaseModel]) -> VerdictCount:
    """What is counted of some verdicts on a prompt."""
    counts = VerdictCounts()
    for data, verdict in replies:
        counts.add(Ask(prompt, data), verdict)
    return VerdictCount.model_validate(counts.notes()[prompt.name])


def verdict(prompt: Prompt[Any], **values: Any) -> BaseModel:
    """A verdict of a prompt."""
    read: BaseModel = prompt.verdict.model_validate(values)
    return read


def test_grades_count_one_a_reply() -> None:
    """With the highest grade that there is."""
    grades = [(CONTEXT, verdict(GRADE, grade=grade)) for grade in (1, 1, 2)]
    count = counted(GRADE, *grades)
    assert (count.top, count.levels, count.replies) == (2, {1: 2, 2: 1}, 3)


def test_an_expected_grade_counts_as_the_nearest() -> None:
    """A judge that says 0.9 to everything says the middle grade to everything."""
    count = counted(GRADE, (CONTEXT, Expected(grade=0.9)), (CONTEXT, Expected(grade=1.4)))
    assert count.levels == {1: 2}


def test_lists_count_by_item() -> None:
    """Each statement is one; of needed sentences also each that is not needed."""
    data = {"question": "Where?", "contexts": ["Here."], "sentences": ["A.", "B."]}
    assert counted(SUPPORT, (data, verdict(SUPPORT, supported=[1, 0]))).levels == {0: 1, 1: 1}
    numbered = {"question": "Where?", "contexts": [{"1": "A.", "2": "B."}, {"3": "C."}]}
    assert counted(NEEDED, (numbered, verdict(NEEDED, needed=[2]))).levels == {0: 2, 1: 1}


@pytest.mark.parametrize("value", ["yes", None, {"a": 1}, ["x", 1], [float("nan")]])
def test_a_field_of_the_same_name_may_hold_anything(value: Any) -> None:
    """What is no number has no level, and costs no row."""
    prompt = Prompt("odd", 1, Odd, "Judge.")
    count = counted(prompt, (CONTEXT, Odd(supported=value)))
    assert count.replies == 1
    assert set(count.levels) <= {1}


def test_a_text_of_the_example_is_a_copy_whatever_its_case() -> None:
    """But not where the row itself has it, and not a question of the judge's own."""
    copy = verdict(QUESTIONS, questions=["when was it OPENED?", "Where?"], noncommittal=False)
    other = verdict(QUESTIONS, questions=["Where is it?", "What?"], noncommittal=False)
    of_row = {**RESPONSE, "response": 'They ask: "When was it opened?"'}
    count = counted(QUESTIONS, (RESPONSE, copy), (RESPONSE, other), (of_row, copy))
    assert (count.copied, count.replies, count.top) == (1, 3, None)


def test_a_choice_that_an_example_has_too_is_no_copy() -> None:
    """Every good verdict is one of the choices; the reason beside it may be copied."""
    example = (CONTEXT, {"verdict": "helpful", "reason": "It names the place."})
    prompt = Prompt("choice", 1, Choice, "Judge.", examples=(example,))
    chosen = Choice(verdict="helpful", reason="It says where.")
    copied = Choice(verdict="useless", reason="It names the place.")
    assert counted(prompt, (CONTEXT, chosen), (CONTEXT, copied)).copied == 1
