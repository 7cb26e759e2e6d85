"""query_drift: the share of a question's words that are new."""

from __future__ import annotations

from ragmetrics.metrics.bundled.query_drift import query_drift
from ragmetrics.records import LogRow, Status
from tests.builders import end


def test_the_value_is_the_share_of_new_words() -> None:
    """Staging has counted them."""
    assert end(query_drift.play(LogRow("1", "Q?", (), new_words=0.5))).value == 0.5


def test_in_a_first_week_it_is_not_applicable() -> None:
    """Too few nights: nearly every word would be new."""
    assert end(query_drift.play(LogRow("1", "Q?", ()))).status is Status.NOT_APPLICABLE
