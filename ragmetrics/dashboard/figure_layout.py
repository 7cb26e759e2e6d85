"""What figures share: colours, axes, marks and lines; and the histogram of a metric.

Figures are plain dicts for Plotly, which assets/charts.js draws. Colours are CSS custom properties,
so the style sheet defines them once for light and dark. No figure contains logged text, because
Plotly interprets markup in texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from math import inf
from typing import Any, TypeAlias

from ragmetrics.records import Summary
from ragmetrics.text import finite, plural

Figure: TypeAlias = dict[str, Any]
Place: TypeAlias = float | str
"""A number on an axis, or a time as text."""
INK, QUIET = "var(--ink-2)", "var(--ink-3)"
SERIES, BAND = "var(--series)", "var(--series-tint)"
SECOND, ALARM = "var(--series-2)", "var(--firing)"

TICKS = 5
LEAST_DAYS = timedelta(days=6)
"""Shortest time axis: later nights fill the space on a new site."""


def frame(left: int, right: int, top: int, bottom: int) -> Figure:
    """A layout with these margins; assets/charts.js adds what all figures share."""
    margin = {"l": left, "r": right, "t": top, "b": bottom}
    return {"margin": margin, "xaxis": {}, "yaxis": {}, "shapes": []}


def days_axis(days: Sequence[date]) -> Figure:
    """A time axis that names a few nights, well apart, and always the newest."""
    apart = (days[-1] - days[0]) / TICKS
    shown = [days[-1]]
    for day in reversed(days):
        if shown[-1] - day >= max(apart, timedelta(days=1)):
            shown.append(day)
    start = min(days[0], days[-1] - LEAST_DAYS)
    edge = max((days[-1] - start) * 0.03, timedelta(hours=12))
    ends = [(midnight(start) - edge).isoformat(), (midnight(days[-1]) + edge).isoformat()]
    ticks = {"tickvals": [str(day) for day in shown], "ticktext": list(map(tick_label, shown))}
    return {"type": "date", "range": ends, **ticks, "tickangle": 0}


def tick_label(day: date) -> str:
    """`19 Nov`."""
    return f"{day.day} {day:%b}"


def count_axis(top: int) -> Figure:
    """An axis of counts from 0; few counts have whole numbers only."""
    ticks: Figure = {"tick0": 0, "dtick": 1} if top < 4 else {"nticks": 4}
    return {"range": [0, top * 1.08 or 1], "tickformat": "~s", **ticks}


def axis_range(
    values: Iterable[float | None], least: float, *, bottom: float = -inf, top: float = inf
) -> list[float]:
    """The range of an axis around all values, at least so wide, from `bottom` to `top`."""
    drawn = [one for one in map(finite, values) if one is not None] or [0.0, 1.0]
    room = max((max(drawn) - min(drawn)) * 0.15, (least - max(drawn) + min(drawn)) / 2)
    low, high = max(min(drawn) - room, bottom), min(max(drawn) + room, top)
    return [round(min(low, high - least), 3), round(high, 3)]


def midnight(day: date) -> datetime:
    """The place of a night on a time axis."""
    return datetime.combine(day, time())


def upright(x: float | datetime, colour: str = "var(--ink)", **more: Any) -> Figure:
    """A line over the whole height, dotted unless `dash` says otherwise."""
    place = x.isoformat() if isinstance(x, datetime) else x
    return segment((place, 0), (place, 1), colour, **{"yref": "paper", "dash": "dot", **more})


def segment(
    start: tuple[Place, Place], end: tuple[Place, Place], colour: str, **more: Any
) -> Figure:
    """A straight line; `dash` and `width` are those of the line."""
    line = {"color": colour, "width": more.pop("width", 1.25), "dash": more.pop("dash", "solid")}
    ends = {"x0": start[0], "y0": start[1], "x1": end[0], "y1": end[1]}
    return {"type": "line", **ends, "line": line, **more}


def scatter(
    xs: Sequence[Place | None], ys: Sequence[float | None], mode: str, **more: Any
) -> Figure:
    """Points at x and y, drawn as the `mode` says; no hover unless there is a template."""
    hover = {} if "hovertemplate" in more else {"hoverinfo": "skip"}
    data = {"x": list(xs), "y": [rounded(y) for y in ys]}
    return {"type": "scatter", "mode": mode, **data, **hover, **more}


def whiskers(
    values: Iterable[tuple[float | None, float | None, float | None]], **more: Any
) -> Figure:
    """Intervals (value, low, high) as error bars; length 0 where one is missing."""
    above, below = [], []
    for value, low, high in values:
        above.append(rounded(high - value) if value is not None and high is not None else 0)
        below.append(rounded(value - low) if value is not None and low is not None else 0)
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, **more}


def symbols(symbol: str, size: float, colour: str) -> Figure:
    """Large marks with an outline that separates them from the line."""
    outline = {"color": "var(--surface)", "width": 1.5}
    return {"symbol": symbol, "size": size, "color": colour, "line": outline}


def rounded(value: float | None) -> float | None:
    """A number as precise as a screen; None for what cannot be drawn."""
    value = finite(value)
    return None if value is None else round(value, 4)


def histogram_figure(summary: Summary) -> Figure:
    """Rows by value in ten bins, with the mean as a dotted line."""
    bins, counts = len(summary.histogram), summary.histogram
    layout = frame(34, 8, 8, 22)
    layout["xaxis"] |= {"range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    layout["yaxis"] |= count_axis(max(counts, default=0))
    mean = finite(summary.mean)
    if mean is not None and 0 <= mean <= 1:
        layout["shapes"] = [upright(mean)]
    bars = {
        "type": "bar",
        "x": [round((i + 0.5) / bins, 4) for i in range(bins)],
        "y": counts,
        "width": [0.88 / bins] * bins,
        "marker": {"color": SERIES},
        "customdata": [f"{bin_label(i, bins)}<br>{plural(n, 'row')}" for i, n in enumerate(counts)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    return {"data": [bars], "layout": layout}


def bin_label(index: int, bins: int) -> str:
    """`0.2 to 0.3`: the bounds of a bin."""
    return f"{index / bins:.1f} to {(index + 1) / bins:.1f}"
