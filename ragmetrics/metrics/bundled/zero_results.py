"""Whether nothing was retrieved."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    display="Zero results",
    calls="0",
    higher_is_better=False,
    unit="%",
    least_change=0.01,
)
def zero_results(row: LogRow) -> Steps[Score]:
    """Whether a question got no context.

        zero = 1 if all of C are blank, else 0,   C = retrieved_contexts

    Range [0, 1], 0 or 1 for a row; its mean is the share of questions with nothing retrieved. Lower
    is better. No judge call. No context, or only blank ones: 1. Where the retriever failed: not
    applicable, `retrieval_errors` counts it.
    Source: zero-result rate, as in search analytics; ours.
    """
    yield from ()
    found = any(context.strip() for context in row.retrieved_contexts)
    return Score(0.0 if found else 1.0, "" if found else "nothing retrieved")
