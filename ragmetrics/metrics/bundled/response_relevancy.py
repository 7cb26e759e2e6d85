"""Whether the response answers the question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import BaseModel

from ragmetrics.errors import InputError, UnreadableReply
from ragmetrics.metrics.bundled.context_relevance import Grade, expect_grade, grade_details
from ragmetrics.metrics.definition import metric
from ragmetrics.records import (
    Data,
    Lexicon,
    LogRow,
    Prompt,
    Score,
    ScoreQuestion,
    Size,
    Status,
    Steps,
    Vector,
    ask,
    embed_each,
)
from ragmetrics.text import normalise, sentences

# Phrases by which the lexical judge recognises a noncommittal response.
_EVASIVE = re.compile(
    r"\b(i (do not|don't|could not|couldn't|can't|cannot) (know|find|answer|say|help)"
    r"|i(?:'m| am) (not sure|sorry|unable)|no information (on|about|was|is))",
    re.IGNORECASE,
)


class Questions(BaseModel):
    """Questions that the response answers, and whether it avoids to answer any."""

    questions: list[str]
    noncommittal: bool


def _check(verdict: Questions, data: Data) -> None:
    distinct = {normalise(question) for question in verdict.questions if question.strip()}
    if not verdict.noncommittal and not len(distinct) == len(verdict.questions) == data["n"]:
        raise UnreadableReply(f"questions: {len(distinct)} distinct ones, {data['n']} asked for")


def _sizes(data: Data) -> Mapping[str, Size]:
    return {"questions": Size(data["n"], data["n"], Size(0, 300))}


def _baseline(data: Data, lexicon: Lexicon) -> Questions:
    response = data["response"]
    offered = sentences(response, data["language"])[: data["n"]] or (response,)
    return Questions(questions=list(offered), noncommittal=bool(_EVASIVE.search(response)))


QUESTIONS = Prompt(
    name="questions",
    version=2,
    verdict=Questions,
    instruction="""
Write the questions that an assistant's response answers: exactly `n` different ones, short, in the
language of the response, each of which it answers as a whole. `noncommittal`: whether the response
is evasive, vague or says that it does not know.
""",
    examples=(
        (
            {"response": "It was opened on 15 May 1889.", "language": "en", "n": 2},
            {
                "questions": ["When was it opened?", "What happened on 15 May 1889?"],
                "noncommittal": False,
            },
        ),
        (
            {"response": "I am not sure about that.", "language": "en", "n": 1},
            {"questions": ["Do you know about that?"], "noncommittal": True},
        ),
    ),
    check=_check,
    sizes=_sizes,
    baseline=_baseline,
)


ANSWERED = Prompt(
    name="answered",
    version=1,
    verdict=Grade,
    instruction="""
Grade how far a response answers the question.
0: it does not answer it, is evasive or says that it does not know. 1: it answers it in part.
2: it answers it. Whether what it says is right does not matter.
""",
    rubric="How far the response answers the question, be it right or wrong.",
    questions=lambda data: [
        ScoreQuestion(
            "",
            (
                "it does not answer it, is evasive or says that it does not know",
                "it answers it in part",
                "it answers it",
            ),
        )
    ],
    expect=expect_grade,
)


@metric(version=1, prompts=[ANSWERED], calls="1", score_range=(0.0, 1.0))
def _by_decisions(row: LogRow, questions: int = 3) -> Steps[Score]:
    """For a decision model, which writes no questions: half of the grade of the response."""
    if problem := _problem(row, questions):
        return problem
    verdict = yield from ask(ANSWERED, question=row.user_input, response=row.response)
    return Score(verdict.level / 2, details=grade_details([verdict]))


def _problem(row: LogRow, questions: int) -> Score | None:
    """Why a row has no score. Raises InputError for a number of questions that cannot be."""
    if questions < 1:
        raise InputError(f"response_relevancy: questions: {questions} is less than 1")
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    if not (row.response or "").strip():
        return Score.not_applicable("no response")
    return None


@metric(
    version=1,
    display="Answer relevance",
    prompts=[QUESTIONS],
    needs=("user_input", "response"),
    score_range=(-1.0, 1.0),
    calls="1, and an embedding of the question and of each generated question",
    embeds=True,
    by_decisions=_by_decisions,
)
def response_relevancy(row: LogRow, questions: int = 3) -> Steps[Score]:
    """Mean similarity of the question to questions that the response would answer.

        response_relevancy = mean_i cos(e(question_i), e(user_input)),  0 if noncommittal

    Range [-1, 1], higher is better; one judge call per row for `questions` distinct questions,
    then one embedding per distinct text. Empty question or no response: not applicable.
    Noncommittal response: 0.0, nothing embedded. An embedding of length 0: no score (unreadable).
    Raises Unanswered if the reply stays unreadable or an embedding fails. With the lexical
    judge the response's own sentences replace generated questions. A decision model writes no
    questions: it grades 0, 1 or 2 how far the response answers the question, and the score is half
    of the expected grade, in [0, 1].
    Source: RAGAS answer relevance (Es et al. 2023).
    """
    if problem := _problem(row, questions):
        return problem
    verdict = yield from ask(
        QUESTIONS, response=row.response, language=row.language or "en", n=questions
    )
    details: dict[str, Any] = {"questions": verdict.questions, "noncommittal": verdict.noncommittal}
    if verdict.noncommittal:
        return Score(0.0, reason="noncommittal response", details=details)
    asked, *offered = yield from embed_each([row.user_input, *verdict.questions])
    norms = [float(np.linalg.norm(asked) * np.linalg.norm(vector)) for vector in offered]
    if not all(0 < norm < np.inf for norm in norms):
        return Score(None, "an embedding has no direction", details, status=Status.UNREADABLE)
    pairs = zip(offered, norms, strict=True)
    cosines = [round(_cosine(asked, vector, norm), 6) for vector, norm in pairs]
    return Score(float(np.mean(cosines)), details={**details, "cosines": cosines})


def _cosine(a: Vector, b: Vector, norm: float) -> float:
    return float(np.clip(np.dot(a, b) / norm, -1.0, 1.0))
