"""How much of the reference answer the retrieved contexts support."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.protocol import Data, Lexicon, Prompt, Score, Steps, ask
from ragmetrics.registry import metric
from ragmetrics.rows import LogRow
from ragmetrics.text import sentences

SUPPORTED_FROM = 0.75


class Support(BaseModel):
    """One verdict per sentence, in order: 1 where the contexts support it, else 0."""

    supported: list[Literal[0, 1]]


def _check(verdict: Support, data: Data) -> None:
    asked, given = len(data["sentences"]), len(verdict.supported)
    if asked != given:
        raise UnreadableReply(f"supported: {given} verdicts for {asked} sentences")


def _evidence(data: Data, lexicon: Lexicon) -> list[float]:
    everything = "\n".join(data["contexts"])
    return [lexicon.coverage(sentence, everything) for sentence in data["sentences"]]


def _baseline(data: Data, lexicon: Lexicon) -> Support:
    return Support(
        supported=[1 if share >= SUPPORTED_FROM else 0 for share in _evidence(data, lexicon)]
    )


SUPPORT = Prompt(
    name="support",
    version=1,
    verdict=Support,
    instruction="""
You check whether the sentences of a reference answer are supported by retrieved contexts.
The input holds a question, contexts and sentences. For each sentence, in order, reply 1 if
the contexts, taken together, say what the sentence says, and 0 if they do not. A sentence that
is supported only in part is 0. Judge only what the contexts say; do not use other knowledge.
Reply with exactly one verdict per sentence.
""",
    examples=(
        (
            {
                "question": "When and by whom was the Eiffel Tower built?",
                "contexts": ["The Eiffel Tower was built from 1887 to 1889."],
                "sentences": ["It was built from 1887 to 1889.", "Eiffel's company built it."],
            },
            {"supported": [1, 0]},
        ),
    ),
    check=_check,
    baseline=_baseline,
    evidence=_evidence,
)


@metric(
    version=1,
    prompts=[SUPPORT],
    needs=("retrieved_contexts", "reference"),
    calls="1",
)
def context_recall(row: LogRow) -> Steps[Score]:
    """Share of the reference's sentences that the retrieved contexts support.

        recall = |{s in S : contexts support s}| / |S|,   S = sentences(reference)

    Range [0, 1], higher is better; at most one judge call per row.
    No reference, or none with a word in it: not applicable. Nothing retrieved: 0.0, not asked.
    Raises Unanswered where the reply stays unreadable: not one verdict per sentence.
    Source: RAGAS context recall, with our own sentences as the denominator.
    """
    claims = [one for one in sentences(row.reference, row.language) if _says_something(one)]
    if not claims:
        return Score.not_applicable("no reference answer")
    if not any(context.strip() for context in row.retrieved_contexts):
        return Score(0.0, reason="nothing retrieved")
    verdict = yield from ask(
        SUPPORT,
        question=row.user_input,
        contexts=list(row.retrieved_contexts),
        sentences=claims,
    )
    return Score(
        sum(verdict.supported) / len(claims),
        details={"attributed": [bool(supported) for supported in verdict.supported]},
    )


def _says_something(sentence: str) -> bool:
    return any(sign.isalnum() for sign in sentence)
