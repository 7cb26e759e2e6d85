"""The first page: whether the newest night was fine, every metric over the nights, and all nights.

index.html, nights.js
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import date

from ragmetrics.model import Manifest
from ragmetrics.report.calendar import WEEKDAYS, months
from ragmetrics.report.night_status import (
    LABELS,
    explained_rules,
    find_night_status,
    metric_states,
    shown_rules,
)
from ragmetrics.report.overview_table import by_night, money_figure, requests_figure, rows_figure
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
