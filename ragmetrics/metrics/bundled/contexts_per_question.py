"""How many contexts were retrieved."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import MAX_CONTEXTS, LogRow, Score, Steps


@metric(
    version=1,
    display="Contexts per question",
    calls="0",
    higher_is_better=None,
    score_range=(0.0, MAX_CONTEXTS),
    least_change=0.1,
)
def contexts_per_question(row: LogRow) -> Steps[Score]:
    """Number of contexts that a question got.

        n = |{c in C : c is not blank}|,   C = retrieved_contexts

    Range [0, 1000], neither direction is better: a rule finds a change in either one. No judge
    call. Nothing retrieved: 0. Where the retriever failed: not applicable.
    Source: ours.
    """
    yield from ()
    return Score(float(sum(bool(context.strip()) for context in row.retrieved_contexts)))
