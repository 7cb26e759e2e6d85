"""Whether the relevant contexts are ranked above the others."""

from __future__ import annotations

from typing import Literal

from ragmetrics.metrics.bundled._support import average_precision
from ragmetrics.metrics.bundled.context_relevance import GRADE, grades
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    display="Context precision",
    prompts=[GRADE],
    calls="0: reuses the grades of context_relevance",
    label_target="context_relevance",
)
def context_precision(row: LogRow, relevant_from: Literal[1, 2] = 1) -> Steps[Score]:
    """Average precision of the ranking: 1 if all relevant contexts come first.

    A context is relevant from grade `relevant_from` on.

        AP = sum over relevant ranks k of (relevant in the first k / k) / number of relevant

    Range [0, 1], higher is better; a perfect ranking is exactly 1. No calls beyond those of
    context_relevance. Empty question: not applicable. Nothing retrieved, or nothing of it
    relevant: 0.0. Raises Unanswered if a grade cannot be obtained. With a decision model it is the
    expectation of AP by its probabilities.
    Source: Manning, Raghavan, Schuetze 2008, "Introduction to Information Retrieval", 8.4.
    """
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    if not row.retrieved_contexts:
        return Score(0.0, reason="nothing retrieved")
    graded = yield from grades(row)
    return average_precision([verdict.reaches(relevant_from) for verdict in graded])
