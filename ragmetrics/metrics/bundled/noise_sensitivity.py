"""Share of the response that is wrong because of the retrieved contexts. Lower is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ragmetrics.errors import InputError
from ragmetrics.metrics.bundled._support import claims
from ragmetrics.metrics.bundled.faithfulness import GROUNDED, STATEMENTS, statements
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps, ask_each

MODES = ("relevant", "irrelevant")


class _Context(NamedTuple):
    place: int
    is_relevant: bool
    holds: Sequence[int]
    """One verdict per wrong statement."""


@metric(
    higher_is_better=False,
    version=1,
    prompts=[STATEMENTS, GROUNDED],
    needs=("retrieved_contexts", "response", "reference"),
    calls="2, one of them that of faithfulness; where a statement is wrong, 1 more per context",
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
    unreadable or a verdict cannot be obtained.
    Source: ragas 0.4 NoiseSensitivity, with the reference in our own sentences.
    """
    if mode not in MODES:
        raise InputError(f"noise_sensitivity: mode: {mode!r} is none of {', '.join(MODES)}")
    if not (row.response or "").strip():
        return Score.not_applicable("no response")
    truths = claims(row.reference, row.language)
    if not truths:
        return Score.not_applicable("no reference answer")
    if not any(context.strip() for context in row.retrieved_contexts):
        return Score.not_applicable("nothing retrieved")
    stated = yield from statements(row)
    if not stated:
        return Score.not_applicable("no statement in the response")
    (correct,) = yield from _supported(row, [row.reference or ""], stated)
    wrong = [n for n, verdict in enumerate(correct) if not verdict]
    contexts = (yield from _look_up(row, [stated[n] for n in wrong], truths)) if wrong else []
    misled = [n for i, n in enumerate(wrong) if _misleads(contexts, i, mode)]
    details: dict[str, Any] = {"statements": stated, "wrong": wrong, "misled": misled}
    if wrong:
        details["relevant_contexts"] = [one.place for one in contexts if one.is_relevant]
    return Score(len(misled) / len(stated), details=details)


def _supported(row: LogRow, texts: Sequence[str], claims: Sequence[str]) -> Steps[list[list[int]]]:
    """One round of requests: per text, one verdict per statement."""
    verdicts = yield from ask_each(
        GROUNDED,
        [
            {"question": row.user_input, "contexts": [text], "statements": list(claims)}
            for text in texts
        ],
    )
    return [list(verdict.supported) for verdict in verdicts]


def _look_up(row: LogRow, wrong: Sequence[str], truths: Sequence[str]) -> Steps[list[_Context]]:
    """Which wrong statements and reference sentences each context supports."""
    texts = {place: text for place, text in enumerate(row.retrieved_contexts) if text.strip()}
    supported = yield from _supported(row, list(texts.values()), [*wrong, *truths])
    return [
        _Context(place, any(verdicts[len(wrong) :]), verdicts[: len(wrong)])
        for place, verdicts in zip(texts, supported, strict=True)
    ]


def _misleads(contexts: Sequence[_Context], statement: int, mode: str) -> bool:
    """Whether a context that counts supports this wrong statement."""
    kinds = {context.is_relevant for context in contexts if context.holds[statement]}
    return True in kinds if mode == "relevant" else kinds == {False}
