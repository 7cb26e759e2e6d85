"""One metric over the nights as a figure: axes, thresholds, breaks, and nights without data."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from ragmetrics.model import Summary
from ragmetrics.report.figure_layout import (
    BAND,
    INK,
    SERIES,
    Figure,
    days_axis,
    frame,
    midnight,
    rounded,
    upright,
)
from ragmetrics.report.formatting import interval
from ragmetrics.report.trends import Trend, TrendPoint
from ragmetrics.text import finite, slug

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


_FEW = 45
"""Nights whose points are drawn large: more would hide the line."""


_HOVER = (
    "%{x|%Y-%m-%d}<br>%{y:.3f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]"
    "<br>%{customdata[2]:,} rows"
)


def traces(trend: Trend) -> list[Figure]:
    """Bands below, then the line, then the marks."""
    runs = trend.runs
    data = [_band(run) for run in runs if len(run) > 1]
    data += [_whisker(run[0]) for run in runs if len(run) == 1]
    return [*data, _means(runs), *_marks(trend), *_build_marks(trend)]


def _means(runs: list[list[TrendPoint]]) -> Figure:
    """One line through all runs, with a gap between them."""
    x: list[str | None] = []
    y: list[float | None] = []
    texts: list[list[float | None]] = []
    for run in runs:
        if x:
            x, y, texts = [*x, None], [*y, None], [*texts, []]
        for point in run:
            if point.summary:
                x.append(str(point.date))
                y.append(rounded(point.summary.mean))
                texts.append(_hover(point.summary))
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "connectgaps": False,
        "line": {"color": SERIES, "width": 2},
        "marker": {"color": SERIES, "size": 6 if len(x) <= _FEW else 3},
        "customdata": texts,
        "hovertemplate": f"{_HOVER}<extra></extra>",
    }


def _band(run: list[TrendPoint]) -> Figure:
    """The intervals of a run as one closed shape: up along the highs, back along the lows."""
    whole = [(p.date, p.summary.low, p.summary.high) for p in run if p.summary]
    drawn = [(d, low, high) for d, low, high in whole if interval(low, high)]
    days = [str(day) for day, _, _ in drawn]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": days + days[::-1],
        "y": [rounded(h) for _, _, h in drawn] + [rounded(low) for _, low, _ in drawn[::-1]],
        "fill": "toself",
        "fillcolor": BAND,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _whisker(point: TrendPoint) -> Figure:
    """The interval of a night that stands alone: a band needs two."""
    summary = point.summary
    mean, low, high = (summary.mean, summary.low, summary.high) if summary else (None,) * 3
    if mean is None or low is None or high is None:
        return {"type": "scatter", "x": [], "y": []}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [str(point.date)],
        "y": [rounded(mean)],
        "error_y": {
            "symmetric": False,
            "array": [rounded(high - mean)],
            "arrayminus": [rounded(mean - low)],
            "color": SERIES,
            "thickness": 1.5,
            "width": 4,
        },
        "marker": {"color": SERIES, "size": 6},
        "hoverinfo": "skip",
    }


def _marks(trend: Trend) -> list[Figure]:
    fired = [p for p in trend.points if p.fired]
    escalated = [p for p in trend.points if p.escalated and not p.fired]
    resolved = [p for p in trend.points if p.resolved and not (p.fired or p.escalated)]
    kinds = (
        ("fired", fired, "triangle-down", "var(--firing)", "bottom center"),
        ("escalated", escalated, "triangle-down", "var(--firing)", "bottom center"),
        ("resolved", resolved, "diamond", "var(--ok)", "top center"),
    )
    return [_mark(*kind) for kind in kinds if any(p.summary for p in kind[1])]


def _mark(label: str, points: list[TrendPoint], symbol: str, colour: str, place: str) -> Figure:
    drawn = [(p.date, p.summary) for p in points if p.summary]
    return {
        "type": "scatter",
        "mode": "markers+text" if len(drawn) == 1 else "markers",  # labels of two may collide
        "x": [str(day) for day, _ in drawn],
        "y": [rounded(summary.mean) for _, summary in drawn],
        "text": [label] * len(drawn),
        "textposition": place,
        "textfont": {"color": colour, "size": 11},
        "cliponaxis": False,
        "marker": {
            "symbol": symbol,
            "size": 12,
            "color": colour,
            "line": {"color": "var(--surface)", "width": 1.5},
        },
        "customdata": [_hover(summary) for _, summary in drawn],
        "hovertemplate": f"{_HOVER}<br>alert {label}<extra></extra>",
    }


def _build_marks(trend: Trend) -> list[Figure]:
    """What to hover over for the name of a new index build, in signs that are no markup."""
    new = [point for point in trend.points if point.builds]
    if not new:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [str(point.date) for point in new],
            "y": [0.03] * len(new),
            "yaxis": "y2",
            "marker": {"color": "var(--series-2)", "size": 7, "symbol": "line-ns-open"},
            "customdata": [", ".join(slug(name)[:40] for name in p.builds[:3]) for p in new],
            "hovertemplate": "%{x|%Y-%m-%d}<br>new index build<br>%{customdata}<extra></extra>",
        }
    ]


def _hover(summary: Summary) -> list[float | None]:
    return [_ends(summary.low), _ends(summary.high), summary.scored]


def _ends(value: float | None) -> float | None:
    value = rounded(value)
    return None if value is None else round(value, 2)
