"""zero_results: whether nothing was retrieved."""

from __future__ import annotations

from ragmetrics.metrics.bundled.zero_results import zero_results
from ragmetrics.records import LogRow, Score
from tests.fakes.rankings import play


def test_an_empty_list_and_a_blank_one_are_no_result() -> None:
    """1 with the reason; any text is a result."""
    nothing = Score(1.0, "nothing retrieved")
    assert play(zero_results, LogRow("1", "Q?", ())) == nothing
    assert play(zero_results, LogRow("1", "Q?", (" ",))) == nothing
    assert play(zero_results, LogRow("1", "Q?", (" ", "a text"))) == Score(0.0)


def test_a_retriever_that_failed_has_no_result_to_count() -> None:
    """It is counted by retrieval_errors, once."""
    row = LogRow("1", "Q?", (), retrieval_error="timeout")
    assert play(zero_results, row) == Score.not_applicable("the retriever failed")
