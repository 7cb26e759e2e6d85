"""What figures share: colours by name, axes, and marks across the whole height.

Figures are plain dicts for Plotly, drawn by assets/charts.js. Colours are names of CSS custom
properties, which the script reads from the page: one place for light and dark. No logged text
ever enters a figure, because Plotly reads markup in texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

from ragmetrics.model import Summary
from ragmetrics.report.formatting import plural
from ragmetrics.text import finite

Figure = dict[str, Any]
INK, QUIET = "var(--ink-2)", "var(--ink-3)"
SERIES, BAND = "var(--series)", "var(--series-tint)"

TICKS = 5
LEAST_DAYS = timedelta(days=6)
"""Of an axis of nights: a young site has its few nights where later ones will be."""


def frame(margin: dict[str, int]) -> Figure:
    """A layout to fill in; what all figures have alike is in assets/charts.js."""
    return {"margin": margin, "xaxis": {}, "yaxis": {}}


def days_axis(days: Sequence[date]) -> Figure:
    """A time axis with a few nights written out, well apart and the newest always."""
    apart = (days[-1] - days[0]) / TICKS
    shown = [days[-1]]
    for day in reversed(days):
        if shown[-1] - day >= max(apart, timedelta(days=1)):
            shown.append(day)
    start = min(days[0], days[-1] - LEAST_DAYS)
    edge = max((days[-1] - start) * 0.03, timedelta(hours=12))
    return {
        "type": "date",
        "range": [(midnight(start) - edge).isoformat(), (midnight(days[-1]) + edge).isoformat()],
        "tickvals": [str(day) for day in shown],
        "ticktext": [f"{day.day} {day:%b}" for day in shown],
        "tickangle": 0,
    }


def count_axis(top: int) -> Figure:
    """An axis of rows or requests from 0 on; of a few, in whole numbers."""
    ticks: Figure = {"tick0": 0, "dtick": 1} if top < 4 else {"nticks": 4}
    return {"range": [0, top * 1.08 or 1], "tickformat": "~s", **ticks}


def midnight(day: date) -> datetime:
    """The moment at which a night's mark stands."""
    return datetime.combine(day, time())


def upright(x: float | datetime) -> Figure:
    """A dotted line over the whole height."""
    place = x.isoformat() if isinstance(x, datetime) else x
    return {
        "type": "line",
        "yref": "paper",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "line": {"color": "var(--ink)", "width": 1.25, "dash": "dot"},
    }


def rounded(value: float | None) -> float | None:
    """A number as precise as a screen, or None for what cannot be drawn."""
    value = finite(value)
    return None if value is None else round(value, 4)


def histogram_figure(summary: Summary) -> Figure:
    """Rows by value in ten bins, with the mean as a dotted line."""
    bins = len(summary.histogram)
    bars = {
        "type": "bar",
        "x": [round((i + 0.5) / bins, 4) for i in range(bins)],
        "y": summary.histogram,
        "width": [0.88 / bins] * bins,
        "marker": {"color": SERIES},
        "customdata": [
            f"{bin_label(i, bins)}<br>{plural(rows, 'row')}"
            for i, rows in enumerate(summary.histogram)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    layout = frame(margin={"l": 34, "r": 8, "t": 8, "b": 22})
    layout["xaxis"] |= {"range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    top = max(summary.histogram, default=0)
    layout["yaxis"] |= count_axis(top)
    mean = finite(summary.mean)
    if mean is not None and 0 <= mean <= 1:
        layout["shapes"] = [upright(mean)]
    return {"data": [bars], "layout": layout}


def bin_label(index: int, bins: int) -> str:
    """`0.2 to 0.3`, the bounds of a bin."""
    return f"{index / bins:.1f} to {(index + 1) / bins:.1f}"
