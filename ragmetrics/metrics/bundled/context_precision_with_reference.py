"""Whether the contexts useful for the reference answer are ranked above the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel

from ragmetrics.metrics.bundled._support import Shares, ask_each_context, average_precision
from ragmetrics.metrics.definition import metric
from ragmetrics.records import (
    Data,
    Distribution,
    Lexicon,
    LogRow,
    Predicate,
    Prompt,
    Score,
    Steps,
    likeliest_level,
)

USEFUL_FROM = 0.5


class Useful(BaseModel):
    """1: the context was useful in arriving at the answer; 0: it was not."""

    useful: Literal[0, 1]

    @property
    def weights(self) -> Sequence[float]:
        """How surely it was useful."""
        return (self.useful,)


class UsefulShare(Shares, Useful):
    """The verdict of a decision model, with its probability."""


def _expect(distributions: Sequence[Distribution], data: Data) -> UsefulShare:
    return UsefulShare.of(distributions, useful=likeliest_level(*distributions))


def _evidence(data: Data, lexicon: Lexicon) -> list[float]:
    """Mean of the shares of the question and of the answer that the context covers.

    The answer alone is weak evidence if it is a single word; the question alone is weak if all
    contexts are about it.
    """
    texts = (data["question"], data["answer"])
    return [sum(lexicon.coverage(text, data["context"]) for text in texts) / len(texts)]


def _baseline(data: Data, lexicon: Lexicon) -> Useful:
    (covered,) = _evidence(data, lexicon)
    return Useful(useful=1 if covered >= USEFUL_FROM else 0)


USEFUL = Prompt(
    name="useful",
    version=2,
    verdict=Useful,
    instruction="""
You decide whether a retrieved context was useful in arriving at a given answer to a question.
Reply 1 if the context says something of what the answer says in reply to the question, be it
only a part or a step towards it. Reply 0 if the answer could not draw on the context, even
where both are about the same subject. Judge only what the context says; do not use other
knowledge, and take the answer as given, right or wrong.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower opened, and how tall is it?",
                "context": "The Eiffel Tower was opened to the public on 15 May 1889.",
                "answer": "It was opened in May 1889 and is 330 metres tall.",
            },
            {"useful": 1},
        ),
        (
            {
                "question": "How tall is the Eiffel Tower?",
                "context": "The Eiffel Tower is painted every seven years.",
                "answer": "330 metres.",
            },
            {"useful": 0},
        ),
    ),
    baseline=_baseline,
    evidence=_evidence,
    rubric="The context says something of what the answer, right or wrong, says in reply to the "
    "question, be it only a part.",
    questions=lambda data: [Predicate()],
    expect=_expect,
)


def usefulness(row: LogRow, answer: str | None, missing: str) -> Steps[Score]:
    """Average precision by usefulness for an answer. `missing` is the reason if there is none.

    Blank contexts are not useful, and no request is made for them.
    """
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    if not (answer and answer.strip()):
        return Score.not_applicable(missing)
    if not row.retrieved_contexts:
        return Score(0.0, reason="nothing retrieved")
    verdicts = yield from ask_each_context(USEFUL, row, answer=answer)
    return average_precision([verdict.weights[0] if verdict else 0.0 for verdict in verdicts])


@metric(
    version=1,
    display="Context precision (by reference)",
    prompts=[USEFUL],
    needs=("user_input", "retrieved_contexts", "reference"),
    calls="1 per distinct (question, context, reference)",
)
def context_precision_with_reference(row: LogRow) -> Steps[Score]:
    """Average precision of the ranking, by usefulness for the reference answer.

        AP = sum over useful ranks k of (useful in the first k / k) / number of useful

    Range [0, 1], higher is better; a perfect ranking is exactly 1. One judge call per distinct
    (question, context, reference). Empty question or no reference: not applicable. Nothing
    retrieved: 0.0, not asked. Blank context: not useful, not asked. No context useful: 0.0.
    Raises Unanswered if a verdict cannot be obtained.
    Source: ragas LLMContextPrecisionWithReference, without its small term in the denominator.
    """
    return (yield from usefulness(row, row.reference, "no reference answer"))
