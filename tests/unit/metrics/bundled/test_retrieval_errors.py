"""retrieval_errors: questions on which the retriever failed."""

from __future__ import annotations

import pytest

from ragmetrics.metrics.bundled.retrieval_errors import retrieval_errors
from ragmetrics.records import LogRow, Score, read_row
from tests.fakes.rankings import play


def test_a_row_with_an_error_counts_with_its_reason() -> None:
    """Any other row did not fail, whatever it retrieved."""
    row = LogRow("1", "Q?", (), retrieval_error="timeout of the index")
    assert play(retrieval_errors, row) == Score(1.0, "timeout of the index")
    assert play(retrieval_errors, LogRow("1", "Q?", ())) == Score(0.0)


@pytest.mark.parametrize(("logged", "read"), [(True, "failed"), (False, None), ("", None)])
def test_logs_may_say_only_whether_it_failed(logged: object, read: str | None) -> None:
    """A truth value is read, and a row with an error needs no contexts."""
    data = {"user_input": "Q?", "retrieved_contexts": [], "retrieval_error": logged}
    assert read_row(data, "1").retrieval_error == read
    assert read_row({"user_input": "Q?", "retrieval_error": "x"}, "1").retrieved_contexts == ()
