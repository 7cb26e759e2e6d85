"""Whether a metric goes by the day of the week, and which nights are of tonight's day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from ragmetrics.records import Manifest
from ragmetrics.stats import weekly_chance
from ragmetrics.storage import trailing_nights

WEEK = 7
SAME_DAYS = 28
"""Earlier days in which the same days of the week are looked for."""
CYCLE_DAYS = 56
"""Earlier days for the test of a weekly cycle."""
SURE = 0.01
"""Significance level for a weekly cycle."""


def goes_by_weekday(past: Sequence[Manifest], metric: str, day: date) -> bool:
    """Whether the means of the weeks before depend significantly on the day of the week.

    Nights on which the alert fired count: a day that is lower every week may fire each time.
    """
    known = [
        (night.date.weekday(), summary.mean)
        for night in trailing_nights(past, day, CYCLE_DAYS)
        if (summary := night.summary(metric)) and summary.mean is not None
    ]
    return weekly_chance([day for day, _ in known], [mean for _, mean in known]) < SURE


def may_show_cycle(past: Sequence[Manifest]) -> bool:
    """Whether there are enough nights to see a weekly cycle: two weeks."""
    return len({night.date for night in past}) >= 2 * WEEK


def nights_of_day(nights: Sequence[Manifest], day: date) -> list[Manifest]:
    """The nights of the last four weeks that are of the same day of the week."""
    recent = trailing_nights(nights, day, SAME_DAYS)
    return [night for night in recent if night.date.weekday() == day.weekday()]


__all__ = ["SAME_DAYS", "WEEK", "goes_by_weekday", "may_show_cycle", "nights_of_day"]
