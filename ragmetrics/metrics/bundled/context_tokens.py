"""How long the retrieved contexts are."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps

_BYTES = 4
"""Bytes of UTF-8 per token: what byte-pair encodings of English text have, by and large."""


@metric(
    version=1,
    display="Context tokens",
    calls="0",
    higher_is_better=None,
    score_range=(0.0, 1e9),
    unit="tokens",
    least_change=0.1,
)
def context_tokens(row: LogRow) -> Steps[Score]:
    """Length of a question's contexts together, in tokens.

        tokens = sum over c in C of bytes(c) / 4,   C = retrieved_contexts, as UTF-8

    Range [0, 1e9], neither direction is better: a rule finds a change in either one. It is an
    estimate that needs no tokenizer, and moves as the true number does. No judge call. Nothing
    retrieved: not applicable, `zero_results` counts it.
    Source: ours.
    """
    yield from ()
    texts = [context for context in row.retrieved_contexts if context.strip()]
    if not texts:
        return Score.not_applicable("nothing retrieved")
    return Score(sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) / _BYTES)
