"""Relevance of the retrieved contexts to the question, each graded 0, 1 or 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from ragmetrics.metrics.bundled._support import ask_each_context
from ragmetrics.metrics.definition import metric
from ragmetrics.records import (
    Data,
    Distribution,
    Lexicon,
    LogRow,
    Prompt,
    Score,
    ScoreQuestion,
    Steps,
    expected_level,
    likeliest_level,
    strength,
)

HELPS_FROM, ANSWERS_FROM = 0.2, 0.4
LEVELS = (
    "nothing in it helps to answer the question",
    "it helps to answer it in part",
    "it holds all that is needed to answer it",
)
BANDS = ((0.9, "excellent"), (0.7, "good"), (0.5, "moderate"))


class Grade(BaseModel):
    """0: of no use for the question; 1: of some use; 2: answers it."""

    grade: Literal[0, 1, 2]

    @property
    def level(self) -> float:
        """The grade, as metrics compute with it."""
        return float(self.grade)

    def reaches(self, level: int) -> float:
        """How surely the grade is this one or a higher one."""
        return float(self.grade >= level)


class ExpectedGrade(Grade):
    """The likeliest grade of a decision model, with the probabilities of all grades."""

    probabilities: tuple[float, ...] = Field(exclude=True)

    @property
    def level(self) -> float:
        """The expectation of the grade."""
        return expected_level(self.probabilities)

    @property
    def strengths(self) -> Sequence[float]:
        """The expectation as a share of the best grade."""
        return (strength(self.probabilities),)

    def reaches(self, level: int) -> float:
        """Probability of this grade or a higher one."""
        return min(1.0, sum(self.probabilities[level:]))


def expect_grade(distributions: Sequence[Distribution], data: Data) -> ExpectedGrade:
    """The verdict from the probabilities."""
    (probabilities,) = distributions
    grade = likeliest_level(probabilities)
    return ExpectedGrade.model_validate({"grade": grade, "probabilities": probabilities})


def _evidence(data: Data, lexicon: Lexicon) -> list[float]:
    return [lexicon.relevance(data["question"], data["context"])]


def _baseline(data: Data, lexicon: Lexicon) -> Grade:
    (relevance,) = _evidence(data, lexicon)
    return Grade(grade=2 if relevance >= ANSWERS_FROM else 1 if relevance >= HELPS_FROM else 0)


GRADE = Prompt(
    name="grade",
    version=2,
    verdict=Grade,
    instruction="""
Grade how relevant a retrieved context is to a question.
0: nothing in it helps to answer the question. 1: it helps to answer it in part.
2: it holds all that is needed to answer it.
Judge only what the context says; use no other knowledge.
""",
    examples=(
        (
            {"question": "When did the Eiffel Tower open?", "context": "It opened on 15 May 1889."},
            {"grade": 2},
        ),
        (
            {
                "question": "When did the Eiffel Tower open?",
                "context": "It was built for the fair of 1889.",
            },
            {"grade": 1},
        ),
    ),
    baseline=_baseline,
    evidence=_evidence,
    rubric="Relevance of the context to the question, by what the context says alone.",
    questions=lambda data: [ScoreQuestion("", LEVELS)],
    expect=expect_grade,
)


def grades(row: LogRow) -> Steps[list[Grade]]:
    """Grade every context of a row; blank ones get 0 without a request."""
    verdicts = yield from ask_each_context(GRADE, row)
    return [verdict or Grade(grade=0) for verdict in verdicts]


def grade_details(graded: Sequence[Grade]) -> dict[str, Any]:
    """The grades, with the probabilities if a decision model gave them."""
    if not any(isinstance(verdict, ExpectedGrade) for verdict in graded):
        return {"grades": [verdict.grade for verdict in graded]}
    shares = [
        [round(share, 6) for share in verdict.probabilities]
        if isinstance(verdict, ExpectedGrade)
        else None
        for verdict in graded
    ]
    return {"grades": [verdict.grade for verdict in graded], "probabilities": shares}


@metric(
    version=1,
    display="Context relevance (graded)",
    prompts=[GRADE],
    calls="1 per distinct (question, context)",
    label_target="context_relevance",
)
def context_relevance(row: LogRow) -> Steps[Score]:
    """Mean relevance of the retrieved contexts to the question, each graded 0, 1 or 2.

        context_relevance = mean(grade_1 .. grade_k) / 2

    Range [0, 1], higher is better; one judge call per distinct (question, context) pair.
    Bands: excellent from 0.9, good from 0.7, moderate from 0.5, poor below.
    Empty question: not applicable. Nothing retrieved: 0.0, not asked. Blank context: grade 0,
    not asked. Raises Unanswered if a grade cannot be obtained. A decision model's grade is the
    expectation by its probabilities.
    Source: NVIDIA's context relevance as in ragas, graded context by context.
    """
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    if not row.retrieved_contexts:
        return Score(0.0, reason="nothing retrieved")
    graded = yield from grades(row)
    value = sum(verdict.level for verdict in graded) / (2 * len(graded))
    return Score(value, details={**grade_details(graded), "band": band(value)})


def band(value: float) -> str:
    """The word for a value: excellent, good, moderate or poor."""
    return next((name for least, name in BANDS if value >= least), "poor")
