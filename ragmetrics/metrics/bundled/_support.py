"""Shared by several metrics: verdicts on claims, verdicts on contexts, average precision.

A verdict on a claim is 1 if the contexts support it, else 0. A prompt names the field of its data
that holds the claims: `sentences` or `statements`.

A decision model gives probabilities in place of verdicts. The verdict then is the likeliest one,
and its `weights` are the probabilities of its items, which are 0 or 1 with any other judge. Metrics
compute with the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from ragmetrics.errors import UnreadableReply
from ragmetrics.records import (
    Data,
    Distribution,
    Lexicon,
    LogRow,
    Predicate,
    Prompt,
    Score,
    Size,
    Steps,
    ask_each,
    likeliest_level,
)
from ragmetrics.text import sentences

V = TypeVar("V", bound=BaseModel)

SUPPORTED_FROM = 0.75


class Shares(BaseModel):
    """What a decision model adds to a verdict: the probability of each of its items."""

    shares: tuple[float, ...] = Field(exclude=True)

    @classmethod
    def of(cls, distributions: Sequence[Distribution], **likeliest: Any) -> Self:
        """The verdict from the probabilities of its items and its likeliest values."""
        shares = tuple(true for _, true in distributions)
        return cls.model_validate({**likeliest, "shares": shares})

    @property
    def weights(self) -> Sequence[float]:
        """How surely each item is true."""
        return self.shares

    @property
    def strengths(self) -> Sequence[float]:
        """The same, which only a verdict with probabilities has."""
        return self.shares


class Support(BaseModel):
    """One verdict per claim, in order: 1 where the contexts support it, else 0."""

    supported: list[Literal[0, 1]]

    @property
    def weights(self) -> Sequence[float]:
        """How surely each claim is supported."""
        return self.supported


class SupportShares(Shares, Support):
    """The verdicts of a decision model, with their probabilities."""


@dataclass(frozen=True, slots=True)
class _Claims:
    """How the claims in a field of the data are asked and judged."""

    field: str

    def questions(self, data: Data) -> list[Predicate]:
        """A question for each claim. It may be asked of a part of the contexts."""
        return [Predicate(str(n), by_part=True) for n, _ in enumerate(data[self.field], 1)]

    def expect(self, distributions: Sequence[Distribution], data: Data) -> SupportShares:
        """The verdict from the probabilities."""
        return SupportShares.of(distributions, supported=list(map(likeliest_level, distributions)))

    def check(self, verdict: Support, data: Data) -> None:
        """Raise UnreadableReply unless there is one verdict per claim."""
        asked, received = len(data[self.field]), len(verdict.supported)
        if asked != received:
            raise UnreadableReply(f"supported: {received} verdicts for {asked} {self.field}")

    def sizes(self, data: Data) -> Mapping[str, Size]:
        """The size of a reply with one verdict per claim."""
        return {"supported": Size(len(data[self.field]), len(data[self.field]))}

    def evidence(self, data: Data, lexicon: Lexicon) -> list[float]:
        """Share of each claim that all contexts together hold."""
        return [lexicon.coverage(claim, *data["contexts"]) for claim in data[self.field]]

    def baseline(self, data: Data, lexicon: Lexicon) -> Support:
        """The lexical judge's verdicts."""
        shares = self.evidence(data, lexicon)
        return Support(supported=[1 if share >= SUPPORTED_FROM else 0 for share in shares])


def support_prompt(field: str, **words: Any) -> Prompt[Support]:
    """A prompt for one verdict on each of the claims in a field of its data."""
    claims = _Claims(field)
    return Prompt(
        verdict=Support,
        check=claims.check,
        sizes=claims.sizes,
        baseline=claims.baseline,
        evidence=claims.evidence,
        questions=claims.questions,
        expect=claims.expect,
        **words,
    )


def share(weights: Sequence[float], details: dict[str, Any]) -> Score:
    """The share of items that are true; with probabilities, its expectation."""
    return Score(sum(weights) / len(weights), details=with_probabilities(details, weights))


def with_probabilities(details: dict[str, Any], weights: Sequence[float]) -> dict[str, Any]:
    """The details, with the probabilities if there are others than 0 and 1."""
    if all(weight in (0, 1) for weight in weights):
        return details
    return {**details, "probabilities": [round(weight, 6) for weight in weights]}


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


def average_precision(weights: Sequence[float]) -> Score:
    """Score a ranking by how surely each of its contexts, best first, is relevant.

        AP = sum over relevant ranks k of (relevant in the first k / k) / number of relevant

    Range [0, 1]; a perfect ranking is exactly 1. None relevant: 0.0, with a reason. With
    probabilities it is the expectation of AP, with contexts that are relevant independently of each
    other, and 0 where none is.
    """
    ranks = [rank for rank, weight in enumerate(weights, 1) if weight > 0.5]
    details = with_probabilities({"relevant_ranks": ranks}, weights)
    if "probabilities" in details:
        return Score(_expected_precision(weights), details=details)
    if not ranks:
        return Score(0.0, reason="no relevant context", details=details)
    precisions = [count / rank for count, rank in enumerate(ranks, 1)]
    return Score(sum(precisions) / len(ranks), details=details)


def _expected_precision(weights: Sequence[float]) -> float:
    """Sum over ranks k of p_k / k * E[(1 + B) / (1 + B + A)], with B relevant contexts before k and
    A after it: both are Poisson-binomial.
    """
    before, after = [np.ones(1)], [np.ones(1)]
    for weight in weights:
        before.append(np.convolve(before[-1], (1 - weight, weight)))
    for weight in reversed(weights):
        after.append(np.convolve(after[-1], (1 - weight, weight)))
    total = 0.0
    for place, weight in enumerate(weights):
        of_before, of_after = before[place], after[len(weights) - 1 - place]
        above = np.arange(1, len(of_before) + 1)[:, None]
        ratio = above / (above + np.arange(len(of_after)))
        total += weight / (place + 1) * float(of_before @ ratio @ of_after)
    return min(total, 1.0)
