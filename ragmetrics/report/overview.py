"""The first page: whether the newest night was fine, every metric over the nights, and all nights.

index.html, nights.js
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from ragmetrics.model import Manifest
from ragmetrics.report.costs import paid
from ragmetrics.report.figure_layout import BAND, SERIES, Figure, count_axis, days_axis, frame
from ragmetrics.report.night_status import (
    LABELS,
    NightState,
    NightStatus,
    explained_rules,
    find_night_status,
    metric_states,
    shown_rules,
)
from ragmetrics.report.night_tables import STATUS
from ragmetrics.report.templating import render_page
from ragmetrics.report.trend_figure import trend_figure
from ragmetrics.report.trends import trends
from ragmetrics.storage import Files

PAGE = "index.html"


def write_overview(
    site: Files,
    nights: Sequence[Manifest],
    calibrations: str | None = None,
    builds: str | None = None,
    died: Collection[date] = (),
) -> str:
    """Write the page of all nights, oldest first as given, and their list; return its path.

    The newest is whole, of the others an outline is enough. `calibrations` and `builds` are the
    pages of the calibrations and of the index builds, where there are such; `died` the days on
    which a run began that left no night.
    """
    if not nights:
        site.write(PAGE, render_page("empty.html", 0, calibrations=calibrations, builds=builds))
        return PAGE
    found = [(night, find_night_status(night)) for night in nights]
    newest, state = found[-1]
    drawn, rules = trends(nights), shown_rules(newest, nights[:-1])
    page = render_page(
        "overview.html",
        0,
        manifest=newest,
        condition=state,
        findings=rules,
        explained=explained_rules(newest, rules),
        trends=drawn,
        has_builds=any(point.builds for trend in drawn for point in trend.points),
        states=metric_states(newest),
        figure=trend_figure,
        nights=found[::-1],
        latest=by_night(found),
        rows_figure=rows_figure,
        requests_figure=requests_figure,
        money_figure=money_figure,
        months=months((one for _, one in found), died),
        shown_states=[name for name in LABELS if any(name == one.state for _, one in found)],
        weekdays=WEEKDAYS,
        died=bool(died),
        calibrations=calibrations,
        builds=builds,
    )
    # Before the page: whoever is sent to a night from there can go on to the next one.
    dates = json.dumps([str(night.date) for night in nights], separators=(",", ":"))
    states = json.dumps([one.state for _, one in found], separators=(",", ":"))
    site.write("nights.js", f"const NIGHTS = {dates};\nconst STATES = {states};\n".encode())
    site.write(PAGE, page)
    return PAGE


NIGHTS = 60


@dataclass(frozen=True)
class Lost:
    """Rows without a score for one reason, in the metric that has the most of them."""

    status: str
    rows: int
    metric: str


@dataclass(frozen=True)
class NightLine:
    """One night's data and costs."""

    manifest: Manifest
    condition: NightStatus
    lost: dict[str, Lost]

    @property
    def reason(self) -> str:
        """The commonest reason of quarantine."""
        reasons = self.manifest.source.reasons
        return max(reasons, key=lambda reason: (reasons[reason], reason), default="")

    @property
    def money(self) -> str:
        """What the night cost; a dash where no price is set."""
        return paid(self.manifest.usage)


@dataclass(frozen=True)
class ByNight:
    """The newest nights, oldest first."""

    lines: tuple[NightLine, ...]

    @property
    def statuses(self) -> list[str]:
        """Why rows have no score in any of these nights."""
        return [name for name in STATUS if any(name in line.lost for line in self.lines)]

    @property
    def asked(self) -> bool:
        """Whether anything was asked over a network."""
        return any(
            one.manifest.usage.requests or one.manifest.usage.answered_from_store
            for one in self.lines
        )

    @property
    def priced(self) -> bool:
        """Whether the price of anything is known."""
        return any(one.manifest.usage.usd for one in self.lines)

    @property
    def unpriced(self) -> bool:
        """Whether something was asked whose price is not set."""
        usages = [one.manifest.usage for one in self.lines]
        return any(usage.usd is None and usage.tokens for usage in usages)

    @property
    def read(self) -> bool:
        """Whether there was any row, of whatever kind."""
        sources = [one.manifest.source for one in self.lines]
        return any(source.rows or source.quarantined for source in sources)


def by_night(nights: Sequence[tuple[Manifest, NightStatus]]) -> ByNight:
    """The newest nights of those given, which are oldest first."""
    return ByNight(tuple(_line(*one) for one in nights[-NIGHTS:]))


def _line(manifest: Manifest, condition: NightStatus) -> NightLine:
    lost: dict[str, Lost] = {}
    for summary in manifest.metrics:
        for status, rows in summary.status.items():
            most = lost[status].rows if status in lost else 0
            if status != "scored" and rows > most:
                lost[status] = Lost(status, rows, summary.metric)
    return NightLine(manifest, condition, lost)


def rows_figure(nights: ByNight) -> Figure:
    """Rows read, with those in quarantine on top of them."""
    sources = [one.manifest.source for one in nights.lines]
    rows, lost = [one.rows for one in sources], [one.quarantined for one in sources]
    above = _bars(nights, lost, "var(--firing)", "quarantined")
    return _stacked(nights, _bars(nights, rows, SERIES, "rows"), above)


def requests_figure(nights: ByNight) -> Figure:
    """Requests asked, with those answered from the store on top of them."""
    usages = [one.manifest.usage for one in nights.lines]
    asked, kept = [one.requests for one in usages], [one.answered_from_store for one in usages]
    above = _bars(nights, kept, BAND, "from the store")
    return _stacked(nights, _bars(nights, asked, SERIES, "asked"), above)


def money_figure(nights: ByNight) -> Figure:
    """Dollars per night, where they are known."""
    dollars = [one.manifest.usage.usd or 0.0 for one in nights.lines]
    told = [one.money for one in nights.lines]
    bars = _bars(nights, dollars, "var(--series-2)", "")
    hover = {"customdata": told, "hovertemplate": "%{x|%Y-%m-%d}<br>%{customdata}<extra></extra>"}
    return _figure(
        nights, [bars | hover], {"rangemode": "tozero", "nticks": 4, "tickformat": "$~g"}
    )


def _stacked(nights: ByNight, below: Figure, above: Figure) -> Figure:
    """Counts, and others on top of them where there are any."""
    bars = [below, above] if any(above["y"]) else [below]
    top = max(map(sum, zip(below["y"], above["y"], strict=True)))
    return _figure(nights, bars, count_axis(top))


def _bars(nights: ByNight, values: Sequence[float], colour: str, noun: str) -> Figure:
    return {
        "type": "bar",
        "x": [str(one.manifest.date) for one in nights.lines],
        "y": list(values),
        "width": 0.76 * 86_400_000,
        "marker": {"color": colour},
        "hovertemplate": f"%{{x|%Y-%m-%d}}<br>%{{y:,}} {noun}<extra></extra>",
    }


def _figure(nights: ByNight, bars: list[Figure], axis: Figure) -> Figure:
    layout = frame(margin={"l": 40, "r": 8, "t": 8, "b": 24})
    layout["barmode"] = "stack"
    layout["xaxis"] |= days_axis([one.manifest.date for one in nights.lines])
    layout["yaxis"] |= axis
    return {"data": bars, "layout": layout}


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
