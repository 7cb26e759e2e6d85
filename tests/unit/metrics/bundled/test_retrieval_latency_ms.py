"""retrieval_latency_ms: how long the retriever took."""

from __future__ import annotations

from ragmetrics.metrics.bundled.retrieval_latency_ms import retrieval_latency_ms
from ragmetrics.records import LogRow, Score
from tests.fakes.rankings import play


def test_it_is_the_time_of_the_row() -> None:
    """A row without one has no score, and so has one whose retriever failed."""
    assert play(retrieval_latency_ms, LogRow("1", "Q?", ("a",), retrieval_ms=12.5)) == Score(12.5)
    assert play(retrieval_latency_ms, LogRow("1", "Q?", ("a",))).value is None
    failed = LogRow("1", "Q?", (), retrieval_ms=30_000, retrieval_error="timeout")
    assert play(retrieval_latency_ms, failed).value is None
