"""Share of the response that is wrong because of the retrieved contexts. Lower is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragmetrics.errors import InputError
from ragmetrics.metrics.bundled._support import claims, share
from ragmetrics.metrics.bundled.faithfulness import GROUNDED, STATEMENTS, by_sentences, statements
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps, ask_each

MODES = ("relevant", "irrelevant")


class _Context(NamedTuple):
    place: int
    relevant: float
    """How surely it is relevant."""
    holds: Sequence[float]
    """How surely it supports each wrong statement."""


@metric(version=1, prompts=[GROUNDED], calls="1; where a statement is wrong, 1 more per context")
def _by_decisions(row: LogRow, mode: str = "relevant") -> Steps[Score]:
    """For a decision model, which writes no statements: each sentence of the response is one."""
    return (yield from _misled(row, mode, by_sentences))


@metric(
    higher_is_better=False,
    version=1,
    display="Noise sensitivity",
    prompts=[STATEMENTS, GROUNDED],
    needs=("retrieved_contexts", "response", "reference"),
    calls="2, one of them that of faithfulness; where a statement is wrong, 1 more per context",
    by_decisions=_by_decisions,
)
def noise_sensitivity(row: LogRow, mode: str = "relevant") -> Steps[Score]:
    """Share of the response's statements that are wrong and supported by a retrieved context.

        noise_sensitivity = |{s in W : a context of this mode supports s}| / |S|
        S = statements of the response,   W = those that the reference does not support

    A context is relevant if it supports a sentence of the reference. Mode `relevant` counts
    statements supported by a relevant context, `irrelevant` those by irrelevant ones only.

    Range [0, 1], LOWER is better. Calls per row: one for the statements, that of faithfulness;
    one for their support by the reference; then, only if a statement is wrong, one per distinct
    context, on the wrong statements and the reference's sentences at once. Both modes make the
    same requests. The question may be empty: it only gives context. No response, no statement
    in it, no reference, or nothing retrieved: not applicable. No statement wrong: 0.0. Blank
    context: not asked. Raises InputError for another mode, Unanswered if a reply stays
    unreadable or a verdict cannot be obtained. With a decision model each sentence of the response
    is a statement, and counts with the probability that it is wrong and that a context misled.
    Source: ragas 0.4 NoiseSensitivity, with the reference in our own sentences.
    """
    return (yield from _misled(row, mode, statements))


def _misled(row: LogRow, mode: str, split: Callable[[LogRow], Steps[list[str]]]) -> Steps[Score]:
    """The share of the response's statements, as `split` gives them, that are wrong and misled."""
    if mode not in MODES:
        raise InputError(f"noise_sensitivity: mode: {mode!r} is none of {', '.join(MODES)}")
    if not (row.response or "").strip():
        return Score.not_applicable("no response")
    truths = claims(row.reference, row.language)
    if not truths:
        return Score.not_applicable("no reference answer")
    if not any(context.strip() for context in row.retrieved_contexts):
        return Score.not_applicable("nothing retrieved")
    stated = yield from split(row)
    if not stated:
        return Score.not_applicable("no statement in the response")
    (correct,) = yield from _supported(row, [row.reference or ""], stated)
    wrong = [n for n, weight in enumerate(correct) if weight < 1]
    contexts = (yield from _look_up(row, [stated[n] for n in wrong], truths)) if wrong else []
    weights = {n: (1 - correct[n]) * _misleads(contexts, i, mode) for i, n in enumerate(wrong)}
    details: dict[str, Any] = {
        "statements": stated,
        "wrong": [n for n in wrong if correct[n] <= 0.5],
        "misled": [n for n, weight in weights.items() if weight > 0.5],
    }
    if wrong:
        details["relevant_contexts"] = [one.place for one in contexts if one.relevant > 0.5]
    return share([weights.get(n, 0.0) for n in range(len(stated))], details)


def _supported(
    row: LogRow, texts: Sequence[str], claims: Sequence[str]
) -> Steps[list[list[float]]]:
    """One round of requests: per text, one verdict per statement."""
    verdicts = yield from ask_each(
        GROUNDED,
        [
            {"question": row.user_input, "contexts": [text], "statements": list(claims)}
            for text in texts
        ],
    )
    return [list(verdict.weights) for verdict in verdicts]


def _look_up(row: LogRow, wrong: Sequence[str], truths: Sequence[str]) -> Steps[list[_Context]]:
    """Which wrong statements and reference sentences each context supports."""
    texts = {place: text for place, text in enumerate(row.retrieved_contexts) if text.strip()}
    supported = yield from _supported(row, list(texts.values()), [*wrong, *truths])
    return [
        _Context(place, max(verdicts[len(wrong) :]), verdicts[: len(wrong)])
        for place, verdicts in zip(texts, supported, strict=True)
    ]


def _misleads(contexts: Sequence[_Context], statement: int, mode: str) -> float:
    """How surely a context that counts supports this wrong statement: by the surest one."""
    relevant = max(one.relevant * one.holds[statement] for one in contexts)
    if mode == "relevant":
        return relevant
    return (1 - relevant) * max((1 - one.relevant) * one.holds[statement] for one in contexts)
