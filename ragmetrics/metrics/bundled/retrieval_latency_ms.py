"""How long the retriever took."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    display="Retrieval latency",
    calls="0",
    needs=("retrieval_ms",),
    higher_is_better=False,
    score_range=(0.0, 1e9),
    unit="ms",
    least_change=0.2,
)
def retrieval_latency_ms(row: LogRow) -> Steps[Score]:
    """Milliseconds that the retriever took for a question.

        latency = retrieval_ms;   a night has its mean, and p50, p95 and p99 with their intervals

    Range [0, 1e9], lower is better. No judge call. A row without retrieval_ms, or whose retriever
    failed: not applicable. Longer than 1e9: that.
    Source: ours; the interval of a quantile is that of order statistics (David and Nagaraja 2003).
    """
    yield from ()
    if row.retrieval_ms is None:
        return Score.not_applicable("no retrieval_ms")
    return Score(min(row.retrieval_ms, 1e9))
