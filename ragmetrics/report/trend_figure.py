"""One metric over the nights as a figure: axes, thresholds, breaks, and nights without data."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta

from ragmetrics.report.frame import INK, Figure, frame, upright
from ragmetrics.report.traces import traces
from ragmetrics.report.trends import Trend
from ragmetrics.report.words import finite

TICKS = 5
LEAST_SPAN = 0.2
"""Of the axis: less would make noise look like news."""

LEAST_DAYS = timedelta(days=6)
"""Of the other axis: a young site has its few nights where later ones will be."""


def trend_figure(trend: Trend) -> Figure:
    """Mean line in its interval band, thresholds, alerts; broken where numbers do not compare."""
    layout = frame(margin={"l": 38, "r": 14, "t": 20, "b": 26})
    layout["xaxis"] |= _days([point.date for point in trend.points])
    layout["yaxis"] |= {"range": _span(trend), "nticks": 5, "tickformat": ".2f"}
    layout["shapes"] = [_threshold(limit) for limit in trend.limits]
    layout["shapes"] += [_empty(p.date) for p in trend.points if p.summary is None]
    layout["annotations"] = [_threshold_label(limit) for limit in trend.limits]
    first, last = trend.points[0].date, trend.points[-1].date
    for before, after in trend.breaks:
        middle = _midnight(before) + (after.date - before) / 2
        right = (after.date - first) * 2 > last - first
        layout["shapes"].append(upright(middle))
        layout["annotations"].append(_break_label(middle, after.broken, right))
    for point in trend.points:
        if point.drifted:
            middle, right = _midnight(point.date), (point.date - first) * 2 > last - first
            layout["shapes"].append(upright(middle))
            layout["annotations"].append(_break_label(middle, "judge drift", right))
    return {"data": traces(trend), "layout": layout}


def _threshold(limit: float) -> Figure:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": limit,
        "y1": limit,
        "line": {"color": "var(--firing)", "width": 1.25, "dash": "dash"},
    }


def _threshold_label(limit: float) -> Figure:
    return {
        "xref": "paper",
        "x": 0,
        "y": limit,
        "xanchor": "left",
        "yanchor": "bottom",
        "text": f"limit {limit:g}",
        "showarrow": False,
        "font": {"color": "var(--firing)", "size": 10.5},
    }


def _break_label(x: datetime, text: str, right: bool) -> Figure:
    return {
        "x": x.isoformat(),
        "yref": "paper",
        "y": 1,
        "xanchor": "right" if right else "left",
        "yanchor": "bottom",
        "text": text,
        "showarrow": False,
        "font": {"color": INK, "size": 10.5},
    }


def _empty(day: date) -> Figure:
    """A night without a number: a column in the colour of no data."""
    return {
        "type": "rect",
        "yref": "paper",
        "x0": (_midnight(day) - timedelta(hours=9)).isoformat(),
        "x1": (_midnight(day) + timedelta(hours=9)).isoformat(),
        "y0": 0,
        "y1": 1,
        "fillcolor": "var(--no_data-tint)",
        "line": {"width": 0},
        "layer": "below",
        "label": {
            "text": "no data",
            "textangle": -90,
            "font": {"color": "var(--no_data)", "size": 10},
        },
    }


def _days(days: list[date]) -> Figure:
    """A time axis with a few evenly spaced nights written out, the newest always."""
    step = max(1, math.ceil(len(days) / TICKS))
    shown = days[::-1][::step][::-1]
    start = min(days[0], days[-1] - LEAST_DAYS)
    edge = max((days[-1] - start) * 0.03, timedelta(hours=12))
    return {
        "type": "date",
        "range": [
            (_midnight(start) - edge).isoformat(),
            (_midnight(days[-1]) + edge).isoformat(),
        ],
        "tickvals": [str(day) for day in shown],
        "ticktext": [f"{day.day} {day:%b}" for day in shown],
    }


def _span(trend: Trend) -> list[float]:
    """The axis: all that is drawn, with room for the marks, never finer than LEAST_SPAN."""
    summaries = [point.summary for point in trend.points if point.summary]
    values = [finite(v) for s in summaries for v in (s.mean, s.low, s.high)]
    drawn = [v for v in [*values, *trend.limits] if v is not None] or [0.0, 1.0]
    room = max((max(drawn) - min(drawn)) * 0.15, (LEAST_SPAN - max(drawn) + min(drawn)) / 2)
    low, high = min(drawn) - room, max(drawn) + room
    if max(drawn) <= 1:
        high = min(high, 1.04)
    if min(drawn) >= 0:
        low = max(low, -0.02)
    return [round(min(low, high - LEAST_SPAN), 3), round(high, 3)]


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())
