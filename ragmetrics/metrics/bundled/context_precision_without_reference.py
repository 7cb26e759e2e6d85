"""Whether the contexts useful for the response are ranked above the others."""

from __future__ import annotations

from ragmetrics.metrics.bundled.context_precision_with_reference import USEFUL, usefulness
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    display="Context precision (by response)",
    prompts=[USEFUL],
    needs=("user_input", "retrieved_contexts", "response"),
    calls="1 per distinct (question, context, response)",
)
def context_precision_without_reference(row: LogRow) -> Steps[Score]:
    """Average precision of the ranking, by usefulness for the response.

        AP = sum over useful ranks k of (useful in the first k / k) / number of useful

    Range [0, 1], higher is better; a perfect ranking is exactly 1. One judge call per distinct
    (question, context, response). Needs no reference, but a wrong response makes the contexts
    that misled it count as useful. Empty question or no response: not applicable. Nothing
    retrieved: 0.0, not asked. Blank context: not useful, not asked. No context useful: 0.0.
    Raises Unanswered if a verdict cannot be obtained.
    Source: ragas LLMContextPrecisionWithoutReference, without its small term in the denominator.
    """
    return (yield from usefulness(row, row.response, "no response"))
