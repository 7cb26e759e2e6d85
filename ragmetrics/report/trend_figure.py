"""One metric over the nights as a figure: axes, thresholds, breaks, and nights without data."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from ragmetrics.report.figure_layout import INK, Figure, days_axis, frame, midnight, upright
from ragmetrics.report.series import traces
from ragmetrics.report.trends import Trend
from ragmetrics.text import finite

LEAST_SPAN = 0.2
"""Of the axis: less would make noise look like news."""

_FEW_BUILDS = 6
"""New index builds that are drawn over the whole height; more would hide the line."""


def trend_figure(trend: Trend) -> Figure:
    """Mean line in its interval band, thresholds, alerts; broken where numbers do not compare."""
    layout = frame(margin={"l": 38, "r": 14, "t": 20, "b": 26})
    layout["xaxis"] |= days_axis([point.date for point in trend.points])
    layout["yaxis"] |= {"range": _span(trend), "nticks": 5, "tickformat": ".2f"}
    layout["yaxis2"] = {"range": [0, 1], "overlaying": "y", "visible": False, "fixedrange": True}
    layout["shapes"] = [_threshold(limit) for limit in trend.limits]
    layout["shapes"] += [_empty(p.date) for p in trend.points if p.summary is None]
    layout["shapes"] += _builds(trend)
    layout["annotations"] = [_threshold_label(limit) for limit in trend.limits]
    first, last = trend.points[0].date, trend.points[-1].date
    for before, after in trend.breaks:
        middle = midnight(before) + (after.date - before) / 2
        right = (after.date - first) * 2 > last - first
        layout["shapes"].append(upright(middle))
        layout["annotations"].append(_break_label(middle, after.broken, right))
    for point in trend.points:
        if point.drifted:
            middle, right = midnight(point.date), (point.date - first) * 2 > last - first
            layout["shapes"].append(upright(middle))
            layout["annotations"].append(_break_label(middle, "judge drift", right))
    return {"data": traces(trend), "layout": layout}


def _builds(trend: Trend) -> list[Figure]:
    """Where an index build is first seen; a tick at the foot is there in any case."""
    days = [point.date for point in trend.points if point.builds]
    if len(days) > _FEW_BUILDS:
        return []
    line = {"color": "var(--series-2)", "width": 1.25}
    return [upright(midnight(day)) | {"line": line, "layer": "below"} for day in days]


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
        "x0": (midnight(day) - timedelta(hours=9)).isoformat(),
        "x1": (midnight(day) + timedelta(hours=9)).isoformat(),
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
