"""Context relevance (NVIDIA) of ragas 0.4: the same number from the same replies.

The words of the prompts are those of ragas 0.4.3, Apache License 2.0, see NOTICE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from ragmetrics.errors import InputError, Unanswered, UnreadableReply
from ragmetrics.metrics.bundled._ragas import baseline_of, joined
from ragmetrics.metrics.bundled.context_relevance import GRADE
from ragmetrics.metrics.definition import metric
from ragmetrics.records import (
    Answer,
    Ask,
    Data,
    Lexicon,
    LogRow,
    Prompt,
    Score,
    Size,
    Status,
    Steps,
    Text,
)

Alone = Literal["either", "first"]
NO_GRADE = "no 2, 1 or 0 in the reply"


def _grade(reply: str) -> int | None:
    """The first of 2, 1 and 0, tried in this order, that stands anywhere in the reply."""
    return next((grade for grade in (2, 1, 0) if str(grade) in reply), None)


def _check(verdict: Text, data: Data) -> None:
    if _grade(verdict.text) is None:
        raise UnreadableReply(NO_GRADE)


def _sizes(data: Data) -> Mapping[str, Size]:
    return {"text": Size(0, 32)}  # a grade; a longer reply is asked for again, with more room


def _baseline(data: Data, lexicon: Lexicon) -> Text:
    return Text(text=str(baseline_of(GRADE, data, lexicon).grade))


FIRST = Prompt(
    name="ragas_relevance_first",
    version=1,
    verdict=Text,
    verbatim=True,
    instruction="""\
### Instructions

You are a world class expert designed to evaluate the relevance score of a Context in order to \
answer the Question.
Your task is to determine if the Context contains proper information to answer the Question.
Do not rely on your previous knowledge about the Question.
Use only what is written in the Context and in the Question.
Follow the instructions below:
0. If the context does not contains any relevant information to answer the question, say 0.
1. If the context partially contains relevant information to answer the question, say 1.
2. If the context contains any relevant information to answer the question, say 2.
You must provide the relevance score of 0, 1, or 2, nothing else.
Do not explain.
### Question: {question}

### Context: {context}

Do not try to explain.
Analyzing Context and Question, the Relevance score is """,
    check=_check,
    baseline=_baseline,
    sizes=_sizes,
)
SECOND = Prompt(
    name="ragas_relevance_second",
    version=1,
    verdict=Text,
    verbatim=True,
    instruction="""\
As a specially designed expert to assess the relevance score of a given Context in relation to a \
Question, my task is to determine the extent to which the Context provides information necessary \
to answer the Question. I will rely solely on the information provided in the Context and \
Question, and not on any prior knowledge.

Here are the instructions I will follow:
* If the Context does not contain any relevant information to answer the Question, I will \
respond with a relevance score of 0.
* If the Context partially contains relevant information to answer the Question, I will respond \
with a relevance score of 1.
* If the Context contains any relevant information to answer the Question, I will respond with a \
relevance score of 2.

### Question: {question}

### Context: {context}

Do not try to explain.
Based on the provided Question and Context, the Relevance score is  [""",
    check=_check,
    baseline=_baseline,
    sizes=_sizes,
)


@metric(version=1, display="Context relevance (ragas)", prompts=[FIRST, SECOND], calls="2")
def ragas_context_relevance(row: LogRow, alone: Alone = "either") -> Steps[Score]:
    """Relevance of all contexts as one text, graded by two different prompts (ragas 0.4).

        ragas_context_relevance = (grade_1 / 2 + grade_2 / 2) / 2

    Range [0, 1], higher is better; two judge calls per row. As in ragas.metrics of 0.4.3
    (nv_context_relevance), contexts are joined by a line break; a grade is the first of 2, 1 and
    0, in this order, that occurs anywhere in the reply, so "between 0 and 2" is 2 and "10" is 1.
    Empty question, nothing retrieved, or contexts that equal the question or occur in it: 0.0,
    not asked. After a reply without a grade the request is repeated (ragas: up to four times;
    here: `reasks`); if one grade stays missing, the other counts, as in ragas's
    `metrics.collections`. Its `metrics` do so for the first grade only, because max(nan, x) is
    NaN: `alone="first"` gives no score there either.
    Raises InputError for another `alone`; Unanswered if no grade is left or the judge cannot be
    asked.
    Source: ragas 0.4.3, metrics/_nv_metrics.py.
    """
    if alone not in get_args(Alone):
        raise InputError(f"ragas_context_relevance: alone: {alone!r}: either or first")
    context = joined(row)
    question = row.user_input.strip()
    if not question or not context.strip():
        return Score(0.0, reason="empty question or nothing retrieved")
    if context.strip() in question:
        return Score(0.0, reason="the question holds the contexts")
    data = {"question": row.user_input, "context": context}
    first, second = map(_judged, (yield [Ask(FIRST, data), Ask(SECOND, data)]))
    grades = [grade for grade in (first, second) if grade is not None]
    if not grades or (alone == "first" and first is None):
        raise Unanswered(Status.UNREADABLE, NO_GRADE)
    value = sum(grade / 2 for grade in grades) / len(grades)
    return Score(value, details={"grades": [first, second]})


def _judged(answer: Answer) -> int | None:
    """A grade, or None if the judge gave none. Raises Unanswered if it could not be asked."""
    if isinstance(answer, Text):
        return _grade(answer.text)
    if isinstance(answer, Unanswered) and answer.status == Status.UNREADABLE:
        return None
    if isinstance(answer, Unanswered):
        raise Unanswered(answer.status, answer.reason)
    raise TypeError(f"expected Text, was sent {type(answer).__name__}")
