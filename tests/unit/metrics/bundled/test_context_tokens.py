"""context_tokens: how long the retrieved contexts are."""

from __future__ import annotations

from ragmetrics.metrics.bundled.context_tokens import context_tokens
from ragmetrics.records import LogRow, Score
from tests.fakes.rankings import play


def test_four_bytes_are_a_token() -> None:
    """The bytes of all contexts together, so that any script counts."""
    assert play(context_tokens, LogRow("1", "Q?", ("12345678", "1234"))) == Score(3.0)
    assert play(context_tokens, LogRow("1", "Q?", ("ééé",))) == Score(1.5)


def test_nothing_retrieved_has_no_length() -> None:
    """Empty lists would look like shorter contexts."""
    assert play(context_tokens, LogRow("1", "Q?", ())).value is None
