"""Which retrieved sentences are needed to answer the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics.bundled._support import Shares, share
from ragmetrics.metrics.definition import metric
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
    ask,
    likeliest_level,
)
from ragmetrics.text import sentences

CONTEXT_SAYS = 0.3
NEEDED_FROM = 0.4
NEAR_BEST = 0.9


class Needed(BaseModel):
    """The numbers of the sentences that are needed."""

    needed: list[int]


class NeededShares(Shares, Needed):
    """The verdict of a decision model, with the probability of each sentence."""


def _numbers(data: Data) -> list[int]:
    return [int(number) for context in data["contexts"] for number in context]


def _questions(data: Data) -> list[Predicate]:
    return [
        Predicate(number, context=place)
        for place, context in enumerate(data["contexts"])
        for number in context
    ]


def _expect(distributions: Sequence[Distribution], data: Data) -> NeededShares:
    likely = zip(_numbers(data), map(likeliest_level, distributions), strict=True)
    return NeededShares.of(distributions, needed=[number for number, level in likely if level])


def _check(verdict: Needed, data: Data) -> None:
    if len(set(verdict.needed)) < len(verdict.needed):
        raise UnreadableReply("needed: a sentence number is repeated")
    if strange := set(verdict.needed) - set(_numbers(data)):
        raise UnreadableReply(f"needed: there is no sentence {min(strange)}")


def _sizes(data: Data) -> Mapping[str, Size]:
    # A power of two: a server compiles each schema that it has not seen.
    sentences = sum(map(len, data["contexts"]))
    return {"needed": Size(0, 1 << sentences.bit_length())}


def relevances(data: Data, lexicon: Lexicon) -> list[tuple[float, float]]:
    """Relevance of each sentence, and of its context by the most relevant sentence."""
    question, texts = data["question"], [list(context.values()) for context in data["contexts"]]
    wholes = [lexicon.relevance(question, *context) for context in texts]
    best = max(wholes, default=0.0) or 1.0
    return [
        (lexicon.relevance(question, sentence), whole / best)
        for context, whole in zip(texts, wholes, strict=True)
        for sentence in context
    ]


def _evidence(data: Data, lexicon: Lexicon) -> list[float]:
    # A sentence rarely repeats the subject of its context: "It was opened in 1889."
    return [
        (1 - CONTEXT_SAYS) * relevance + CONTEXT_SAYS * context
        for relevance, context in relevances(data, lexicon)
    ]


def _baseline(data: Data, lexicon: Lexicon) -> Needed:
    """The sentences of the strongest evidence, if it is strong enough."""
    shares = _evidence(data, lexicon)
    least = max(NEEDED_FROM, NEAR_BEST * max(shares, default=0.0))
    return Needed(
        needed=[n for n, share in zip(_numbers(data), shares, strict=True) if share >= least]
    )


NEEDED = Prompt(
    name="needed",
    version=2,
    verdict=Needed,
    instruction="""
You pick the sentences that are needed to answer a question.
The input holds a question and retrieved contexts, each a mapping from sentence number to
sentence. Reply with the numbers of all sentences that are needed to answer the question, each
once. Sentences that are only about the same subject are not needed. Where nothing in the
contexts helps to answer the question, reply with an empty list.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower opened?",
                "contexts": [
                    {"1": "The Eiffel Tower stands in Paris.", "2": "It was opened in May 1889."},
                    {"3": "The Louvre is the most visited museum of the world."},
                ],
            },
            {"needed": [2]},
        ),
        (
            {
                "question": "How tall is the Eiffel Tower?",
                "contexts": [{"1": "The Louvre is the most visited museum of the world."}],
            },
            {"needed": []},
        ),
    ),
    check=_check,
    sizes=_sizes,
    baseline=_baseline,
    evidence=_evidence,
    rubric="The sentence is needed to answer the question; one about the same subject is not.",
    questions=_questions,
    expect=_expect,
)


def split(row: LogRow) -> list[tuple[str, ...]]:
    """The sentences of each context, split context by context."""
    return [sentences(context, row.language) for context in row.retrieved_contexts]


def needed(row: LogRow, contexts: list[tuple[str, ...]]) -> Steps[list[list[float]]]:
    """Request the needed sentences once; per context, how surely each sentence is needed."""
    numbers = count(1)
    numbered = [{str(next(numbers)): text for text in context} for context in contexts]
    verdict = yield from ask(NEEDED, question=row.user_input, contexts=numbered)
    if isinstance(verdict, NeededShares):
        weights = iter(verdict.weights)
        return [[next(weights) for _ in context] for context in contexts]
    wanted = set(verdict.needed)
    return [[float(int(number) in wanted) for number in context] for context in numbered]


@metric(
    version=1,
    display="Sentences needed",
    prompts=[NEEDED],
    calls="1",
    label_target="context_relevancy",
)
def context_relevancy(row: LogRow) -> Steps[Score]:
    """Share of the retrieved sentences that are needed to answer the question.

        context_relevancy = |needed sentences| / |sentences of all contexts|

    Range [0, 1], higher is better; one judge call per row. The judge names sentences by our
    numbers and never rewrites text. Empty question: not applicable. Nothing retrieved, or no
    sentence in it: 0.0, not asked. Raises Unanswered if the reply stays unreadable: a number
    out of range, or one repeated. It falls when chunks grow: see context_relevancy_chunks.
    Source: RAGAS (Es et al. 2023), context relevance, with our own denominator.
    """
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    contexts = split(row)
    if not any(contexts):
        return Score(0.0, reason="no sentence retrieved")
    weights_of = yield from needed(row, contexts)
    flat = [weight for weights in weights_of for weight in weights]
    details = {
        "needed": [[i for i, weight in enumerate(w) if weight > 0.5] for w in weights_of],
        "sentences": [len(context) for context in contexts],
    }
    return share(flat, details)
