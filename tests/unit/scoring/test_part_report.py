"""What a part says in the log of the task that scored it."""

from __future__ import annotations

from ragmetrics.records import Usage
from ragmetrics.scoring.part_notes import PartReport


def test_a_part_says_what_it_took_and_what_failed() -> None:
    """Rows, requests, tokens; failed calls by kind, and scores that are missing by status."""
    usage = Usage(
        requests=40,
        answered_from_store=12,
        prompt_tokens=5_000,
        completion_tokens=210,
        failures={"timeout": 3},
    )
    assert str(PartReport(50, usage, {"judge_failed": 2})) == (
        "50 rows; 40 requests, 12 answers from the store, 5,210 tokens; "
        "failed: 3 timeout, 2 judge_failed"
    )
    assert str(PartReport(50, usage, {})).endswith("failed: 3 timeout")
    assert str(PartReport(50, Usage(), {})).endswith("0 tokens; failed: none")
