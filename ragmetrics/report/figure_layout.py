"""What figures share: colours by name, axes, and marks across the whole height.

Figures are plain dicts for Plotly, drawn by assets/charts.js. Colours are names of CSS custom
properties, which the script reads from the page: one place for light and dark. No logged text
ever enters a figure, because Plotly reads markup in texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

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
