"""click_rate: whether users clicked what was retrieved."""

from __future__ import annotations

import pytest

from ragmetrics.metrics.bundled.click_rate import click_rate
from ragmetrics.records import LogRow, Score, Status
from tests.fakes.rankings import a_row, play


def clicked(*ids: str, shown: tuple[str, ...] = ("a", "b", "c")) -> LogRow:
    """A row of three contexts, and the ids that were clicked."""
    return a_row(*shown, retrieved_context_ids=shown, clicked_context_ids=ids)


@pytest.mark.parametrize(
    ("ids", "value", "ranks"),
    [(("b",), 1, [2]), (("c", "a", "c"), 1, [1, 3]), ((), 0, []), (("elsewhere",), 0, [])],
)
def test_a_click_on_any_context_counts_once(
    ids: tuple[str, ...], value: float, ranks: list[int]
) -> None:
    """Clicks on what was not retrieved, as a link in the answer, do not count."""
    assert play(click_rate, clicked(*ids)) == Score(value, details={"clicked_ranks": ranks})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (a_row("a", retrieved_context_ids=("a",)), "no clicks in the log"),
        (a_row("a", clicked_context_ids=("a",)), "contexts without ids"),
        (clicked(shown=()), "nothing retrieved: nothing to click"),
    ],
)
def test_unknown_clicks_are_no_zero(row: LogRow, reason: str) -> None:
    """A log without clicks says nothing of users."""
    score = play(click_rate, row)
    assert (score.value, score.status, score.reason) == (None, Status.NOT_APPLICABLE, reason)
