"""Shared by several metrics: verdicts on claims, verdicts on contexts, average precision.

A verdict on a claim is 1 if the contexts support it, else 0. A prompt names the field of its data
that holds the claims: `sentences` or `statements`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.records import Data, Lexicon, LogRow, Prompt, Score, Size, Steps, ask_each
from ragmetrics.text import sentences

V = TypeVar("V", bound=BaseModel)

SUPPORTED_FROM = 0.75


class Support(BaseModel):
    """One verdict per claim, in order: 1 where the contexts support it, else 0."""

    supported: list[Literal[0, 1]]


def one_each(field: str) -> Callable[[Support, Data], None]:
    """Check that there is one verdict per claim."""

    def check(verdict: Support, data: Data) -> None:
        asked, received = len(data[field]), len(verdict.supported)
        if asked != received:
            raise UnreadableReply(f"supported: {received} verdicts for {asked} {field}")

    return check


def one_verdict_each(field: str) -> Callable[[Data], Mapping[str, Size]]:
    """The size of a reply with one verdict per claim."""

    def sizes(data: Data) -> Mapping[str, Size]:
        return {"supported": Size(len(data[field]), len(data[field]))}

    return sizes


def covered(field: str) -> Callable[[Data, Lexicon], list[float]]:
    """Share of each claim that all contexts together hold."""

    def evidence(data: Data, lexicon: Lexicon) -> list[float]:
        return [lexicon.coverage(claim, *data["contexts"]) for claim in data[field]]

    return evidence


def by_coverage(field: str) -> Callable[[Data, Lexicon], Support]:
    """The lexical judge's verdicts."""
    evidence = covered(field)

    def baseline(data: Data, lexicon: Lexicon) -> Support:
        shares = evidence(data, lexicon)
        return Support(supported=[1 if share >= SUPPORTED_FROM else 0 for share in shares])

    return baseline


def ask_each_context(prompt: Prompt[V], row: LogRow, **more: Any) -> Steps[list[V | None]]:
    """The verdict on each context of a row, in rank order. Blank contexts are not asked: None."""
    items = [
        {"question": row.user_input, "context": context, **more}
        for context in row.retrieved_contexts
        if context.strip()
    ]
    verdicts = iter((yield from ask_each(prompt, items)) if items else [])
    return [next(verdicts) if context.strip() else None for context in row.retrieved_contexts]


def claims(text: str | None, language: str | None) -> list[str]:
    """The sentences of a text that hold at least one letter or digit."""
    return [one for one in sentences(text, language) if any(sign.isalnum() for sign in one)]


def average_precision(relevant: Sequence[bool]) -> Score:
    """Score a ranking by which of its contexts, best first, are relevant.

        AP = sum over relevant ranks k of (relevant in the first k / k) / number of relevant

    Range [0, 1]; a perfect ranking is exactly 1. None relevant: 0.0, with a reason.
    """
    ranks = [rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant]
    if not ranks:
        return Score(0.0, reason="no relevant context", details={"relevant_ranks": []})
    precisions = [count / rank for count, rank in enumerate(ranks, 1)]
    return Score(sum(precisions) / len(ranks), details={"relevant_ranks": ranks})
