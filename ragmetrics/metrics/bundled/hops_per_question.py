"""Number of retrievals that an answer took."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import MAX_CONTEXTS, LogRow, Score, Steps


@metric(
    version=1,
    display="Hops per question",
    needs=("user_input", "retrieved_contexts", "hop_sizes"),
    calls="0",
    higher_is_better=False,
    score_range=(1.0, float(MAX_CONTEXTS)),
)
def hops_per_question(row: LogRow) -> Steps[Score]:
    """Number of retrievals that the answer to a question took.

        hops = number of retrievals in the trace of the question

    Range [1, 1000], lower is better; no judge call. A row that is no trace of several retrievals
    has 1. An agent that needs more hops for the same questions finds less with each.
    Source: our own; the hops of a row are those of its trace, by start time.
    """
    yield from ()
    return Score(float(min(len(row.hops), MAX_CONTEXTS)))
