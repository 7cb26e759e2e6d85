"""Whether users clicked what was retrieved."""

from __future__ import annotations

from ragmetrics.metrics.bundled._clicks import NEEDS, clicked_ranks
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(version=1, needs=NEEDS, calls="0", least_change=0.05)
def click_rate(row: LogRow) -> Steps[Score]:
    """Share of rows of which users clicked a retrieved context.

        click rate = 1 if a context of the row was clicked, else 0

    Range [0, 1], higher is better, where users have to click: an answer that needs none is
    good too. No judge call. An empty list of clicks: 0.0. No list of clicks, no ids or nothing
    retrieved: not applicable. Clicks on other ids do not count.
    Source: Radlinski, Kurup and Joachims 2008, "How does clickthrough data reflect retrieval
    quality?" (1 - abandonment rate).
    """
    yield from ()
    ranks = clicked_ranks(row)
    if isinstance(ranks, str):
        return Score.not_applicable(ranks)
    return Score(float(bool(ranks)), details={"clicked_ranks": ranks})
