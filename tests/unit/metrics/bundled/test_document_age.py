"""document_age: how old the retrieved documents are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ragmetrics.metrics.bundled.document_age import document_age
from ragmetrics.records import LogRow, Score
from tests.fakes.rankings import play

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def test_the_median_age_of_the_dates() -> None:
    """A document of the future is 0 days old, and one without a date does not count."""
    dates = tuple(NOW - timedelta(days=days) for days in (1, 3, 40, -2))
    row = LogRow("1", "Q?", ("a",), NOW, retrieved_context_dates=(*dates, None))
    assert play(document_age, row) == Score(2.0)


def test_ids_may_have_the_dates() -> None:
    """The last date of each id that is one."""
    ids = ("news/2026-11-18/4", "faq_20261116", "id-2026-02-31", "12026111899")
    assert play(document_age, LogRow("1", "Q?", ("a",), NOW, retrieved_context_ids=ids)).value == 3


def test_without_a_date_or_a_time_there_is_no_age() -> None:
    """The reason says what lacks."""
    dated = LogRow("1", "Q?", ("a",), retrieved_context_dates=(NOW,))
    assert play(document_age, dated).reason == "no timestamp"
    assert play(document_age, LogRow("1", "Q?", ("a",), NOW)).reason == "no date of a context"
