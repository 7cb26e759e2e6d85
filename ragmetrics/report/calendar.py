"""The calendar: all nights by month, so that a night of any age is a click away."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from ragmetrics.report.night_status import NightState, NightStatus

WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")


@dataclass(frozen=True)
class Day:
    """A day of the calendar; without a state nothing of it was published."""

    date: date
    state: NightState | None
    words: str
    died: bool = False
    """Whether a run began on it that did not end."""


@dataclass(frozen=True)
class Month:
    """A month's weeks, Monday first; None stands outside the month, or outside all nights."""

    first: date
    weeks: tuple[tuple[Day | None, ...], ...]

    @property
    def name(self) -> str:
        """`November 2026`."""
        return f"{self.first:%B %Y}"


def months(found: Iterable[NightStatus], died: Collection[date] = ()) -> list[Month]:
    """The months that have a night, newest first, without the weeks before all nights and after.

    A day between the first night and the last that has none is there and says so; `died` are those
    on which a run began and did not end.
    """
    days = {one.date: Day(one.date, one.state, one.words) for one in found}
    if not days:
        return []
    for day in sorted(died):
        days.setdefault(day, Day(day, None, "a run began and did not end", died=True))
    span = min(days), max(days)
    firsts = sorted({day.replace(day=1) for day in days}, reverse=True)
    return [Month(first, tuple(_weeks(first, days, span))) for first in firsts]


def _weeks(
    first: date, days: dict[date, Day], span: tuple[date, date]
) -> Iterable[tuple[Day | None, ...]]:
    monday = first - timedelta(days=first.weekday())
    while monday < first or monday.month == first.month:
        week = (monday + timedelta(days=i) for i in range(7))
        found = tuple(_day(day, days, span) if day.month == first.month else None for day in week)
        if any(found):
            yield found
        monday += timedelta(days=7)


def _day(day: date, days: dict[date, Day], span: tuple[date, date]) -> Day | None:
    if day in days or not span[0] <= day <= span[1]:
        return days.get(day)
    return Day(day, None, "no night")
