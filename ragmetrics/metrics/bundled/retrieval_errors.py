"""Questions on which the retriever failed."""

from __future__ import annotations

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps
from ragmetrics.text import shorten


@metric(
    version=1,
    display="Retrieval errors",
    calls="0",
    needs=("retrieval_error | retrieval_ms",),
    higher_is_better=False,
    unit="%",
    least_change=0.01,
)
def retrieval_errors(row: LogRow) -> Steps[Score]:
    """Whether the retriever failed on a question.

        error = 1 if retrieval_error is set, else 0

    Range [0, 1], 0 or 1 for a row; its mean is the share of questions whose retrieval failed. Lower
    is better. No judge call. The other metrics do not apply to such a row. A row that says nothing
    of errors did not fail: 0.
    Source: ours.
    """
    yield from ()
    failed = row.retrieval_error
    return Score(1.0 if failed else 0.0, shorten(failed) if failed else "")
