"""The state of the newest night, each metric over the nights, the rules, data and cost, all nights.

index.html, nights.js
"""

from __future__ import annotations

import json
from calendar import Calendar
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from ragmetrics.dashboard.costs import night_money, paid
from ragmetrics.dashboard.figure_layout import (
    ALARM,
    BAND,
    SECOND,
    SERIES,
    Figure,
    count_axis,
    days_axis,
    frame,
)
from ragmetrics.dashboard.incident_lines import incident_lines
from ragmetrics.dashboard.night_status import (
    LABELS,
    NightState,
    NightStatus,
    explained_rules,
    find_night_status,
    has_numbers,
    metric_states,
    shown_rules,
)
from ragmetrics.dashboard.night_tables import STATUS
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.templating import PLACES, render_page
from ragmetrics.dashboard.tiles import tiles
from ragmetrics.dashboard.trend_figure import trend_figure
from ragmetrics.dashboard.trends import trends
from ragmetrics.records import Manifest
from ragmetrics.scoring import plan_costs

RECENT = 14
"""Days of which pages that are missing are written again, and runs that did not end are shown."""
_NIGHTS = 60
"""Newest nights in the tables of data and costs."""
_PLANNED_FROM = 7
"""Newest nights that the line of money looks at, as `ragmetrics plan` does."""
_HALF_WIDTH = 0.02


def render(shown: Shown) -> bytes:
    """The page, after the list of nights: a night that it links to reads the next one from that."""
    nights = shown.nights
    if nights:
        shown.site.write("nights.js", night_list(nights))
    places = {address for _, address in PLACES}
    links = [(words, address) for words, address in shown.links if address not in places]
    return overview_page(nights, links, _died(shown))


def night_list(nights: Sequence[Manifest]) -> bytes:
    """The nights and their states as a script, oldest first."""
    lists = {
        "NIGHTS": [str(night.date) for night in nights],
        "STATES": [find_night_status(night).state for night in nights],
    }
    lines = (f"const {name} = {json.dumps(lists[name], separators=(',', ':'))};" for name in lists)
    return "".join(f"{line}\n" for line in lines).encode()


def overview_page(
    nights: Sequence[Manifest], links: Sequence[tuple[str, str]] = (), died: Collection[date] = ()
) -> bytes:
    """The page of all nights, oldest first as given.

    The newest night is complete; of the others an outline is enough. `links` are the words and
    addresses of the site's other pages. `died` are the days on which a run began and no night was
    published.
    """
    if not nights:
        return render_page("empty.html", 0, links=links)
    judged = [(night, find_night_status(night)) for night in nights]
    newest, state = judged[-1]
    drawn, rules = trends(nights), shown_rules(newest, nights[:-1])
    return render_page(
        "overview.html",
        0,
        manifest=newest,
        condition=state,
        findings=rules,
        explained=explained_rules(newest, rules),
        trends=drawn,
        has_builds=any(point.builds for trend in drawn for point in trend.points),
        states=metric_states(newest),
        tiles=tiles(newest, nights[:-1]) if has_numbers(newest) else [],
        incidents=incident_lines(judged),
        figure=trend_figure,
        nights=judged[::-1],
        money=night_money(plan_costs(nights[-_PLANNED_FROM:], _HALF_WIDTH)),
        half_width=_HALF_WIDTH,
        latest=LatestNights(nights[-_NIGHTS:]),
        months=months((one for _, one in judged), died),
        shown_states=[name for name in LABELS if any(name == one.state for _, one in judged)],
        died=bool(died),
        links=links,
    )


def _died(shown: Shown) -> list[date]:
    """The days of the last two weeks on which a run began and no night was published."""
    known = {night.date for night in shown.nights}
    if not known:
        return []
    days = (max(known) - timedelta(days=ago) for ago in range(1, RECENT + 1))
    lacking = [day for day in days if min(known) < day and day not in known]
    return [day for day in lacking if shown.files.below(f"rows/dt={day}")]


@dataclass(frozen=True)
class NightLine:
    """The data and costs of one night."""

    manifest: Manifest
    lost: dict[str, tuple[int, str]]
    """By status, the most rows without a score in one metric, and that metric."""

    @property
    def reason(self) -> str:
        """The most frequent reason of quarantine."""
        reasons = self.manifest.source.reasons
        return max(reasons, key=lambda reason: (reasons[reason], reason), default="")

    @property
    def money(self) -> str:
        """What the night cost; a dash if no price is set."""
        return paid(self.manifest.usage)


class LatestNights:
    """Data and costs of the newest nights, oldest first, as tables and figures."""

    def __init__(self, nights: Sequence[Manifest]) -> None:
        self.lines = [_line(night) for night in nights]
        self.statuses = [name for name in STATUS if any(name in line.lost for line in self.lines)]
        self._sources = [night.source for night in nights]
        self._usages = [night.usage for night in nights]
        self._dates = [night.date for night in nights]

    @property
    def asked(self) -> bool:
        """Whether a judge or a model was asked over a network."""
        return any(usage.requests or usage.answered_from_store for usage in self._usages)

    @property
    def priced(self) -> bool:
        """Whether any night cost money that is known."""
        return any(usage.usd for usage in self._usages)

    @property
    def unpriced(self) -> bool:
        """Whether tokens were used whose price is not set."""
        return any(usage.usd is None and usage.tokens for usage in self._usages)

    @property
    def read(self) -> bool:
        """Whether any row was read or quarantined."""
        return any(source.rows or source.quarantined for source in self._sources)

    def rows_figure(self) -> Figure:
        """Rows that were read, and the quarantined rows on top of them."""
        rows = [source.rows for source in self._sources]
        lost = [source.quarantined for source in self._sources]
        return self._stacked(rows, "rows", lost, ALARM, "quarantined")

    def requests_figure(self) -> Figure:
        """Requests that were sent, and those answered from the store on top of them."""
        sent = [usage.requests for usage in self._usages]
        stored = [usage.answered_from_store for usage in self._usages]
        return self._stacked(sent, "asked", stored, BAND, "from the store")

    def money_figure(self) -> Figure:
        """Dollars per night, where they are known."""
        bars = self._bars([usage.usd or 0.0 for usage in self._usages], SECOND, "%{customdata}")
        bars["customdata"] = [line.money for line in self.lines]
        return self._figure([bars], {"rangemode": "tozero", "nticks": 4, "tickformat": "$~g"})

    def _stacked(
        self, below: Sequence[int], noun: str, above: Sequence[int], colour: str, other: str
    ) -> Figure:
        """Counts as bars, with other counts on top of them if there are any."""
        bars = [self._bars(below, SERIES, f"%{{y:,}} {noun}")]
        if any(above):
            bars.append(self._bars(above, colour, f"%{{y:,}} {other}"))
        return self._figure(bars, count_axis(max(map(sum, zip(below, above, strict=True)))))

    def _bars(self, values: Sequence[float], colour: str, words: str) -> Figure:
        return {
            "type": "bar",
            "x": list(map(str, self._dates)),
            "y": list(values),
            "width": 0.76 * 86_400_000,
            "marker": {"color": colour},
            "hovertemplate": f"%{{x|%Y-%m-%d}}<br>{words}<extra></extra>",
        }

    def _figure(self, bars: list[Figure], axis: Figure) -> Figure:
        layout = frame(40, 8, 8, 24) | {"barmode": "stack"}
        layout["xaxis"] |= days_axis(self._dates)
        layout["yaxis"] |= axis
        return {"data": bars, "layout": layout}


def _line(manifest: Manifest) -> NightLine:
    lost: dict[str, tuple[int, str]] = {}
    for summary in manifest.metrics:
        for status, rows in summary.status.items():
            if status != "scored" and rows > lost.get(status, (0, ""))[0]:
                lost[status] = rows, summary.metric
    return NightLine(manifest, lost)


@dataclass(frozen=True)
class Day:
    """A day of the calendar; it has no state if no night of it is published."""

    date: date
    state: NightState | None
    words: str
    died: bool = False
    """Whether a run began on it and did not end."""


@dataclass(frozen=True)
class Month:
    """A month and its weeks, Monday first; None is a day outside the month or before all nights or
    after them.
    """

    name: str
    """`November 2026`."""
    weeks: tuple[tuple[Day | None, ...], ...]


def months(statuses: Iterable[NightStatus], died: Collection[date] = ()) -> list[Month]:
    """The months that have a night, newest first, without the weeks before and after all nights.

    Days without a night between the first and the last say so. `died` are the days on which a run
    began and did not end.
    """
    days = {one.date: Day(one.date, one.state, one.words) for one in statuses}
    if not days:
        return []
    for day in died:
        days.setdefault(day, Day(day, None, "a run began and did not end", died=True))
    first, last = min(days), max(days)

    def shown(day: date, month: int) -> Day | None:
        if day.month != month or not first <= day <= last:
            return None
        return days.get(day) or Day(day, None, "no night")

    def weeks(year: int, month: int) -> tuple[tuple[Day | None, ...], ...]:
        whole = Calendar().monthdatescalendar(year, month)
        weeks_shown = (tuple(shown(day, month) for day in week) for week in whole)
        return tuple(week for week in weeks_shown if any(week))

    pairs = sorted({(day.year, day.month) for day in days}, reverse=True)
    return [Month(f"{date(*pair, 1):%B %Y}", weeks(*pair)) for pair in pairs]


overview = Page("overview", "Overview", __doc__, render, "site", is_first=True)
