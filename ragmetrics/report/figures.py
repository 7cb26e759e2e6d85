"""Numbers as Plotly figures: plain dicts, drawn by assets/charts.js.

Colours are names of CSS custom properties, which the script reads from the page: one place,
light and dark. No logged text ever enters a figure, because Plotly reads markup in texts.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from typing import Any

from ragmetrics.records import Summary
from ragmetrics.report.trends import Point, Trend, gaps
from ragmetrics.report.words import count, finite, interval, number, plural

Figure = dict[str, Any]
INK, QUIET, LINE = "var(--ink-2)", "var(--ink-3)", "var(--line)"
SERIES, BAND = "var(--series)", "var(--series-tint)"
TICKS = 5
LEAST_SPAN = 0.2
"""Of a trend's axis: less would make noise look like news."""


def trend_figure(trend: Trend) -> Figure:
    """Mean line in its interval band, thresholds, alerts, and breaks where numbers do not compare."""
    runs = trend.runs
    data = [_band(run) for run in runs if len(run) > 1]
    data += [_whisker(run[0]) for run in runs if len(run) == 1]
    data += [_means(runs), *_marks(trend)]
    layout = _layout(margin={"l": 38, "r": 14, "t": 20, "b": 26})
    layout["xaxis"] |= _days([point.date for point in trend.points])
    layout["yaxis"] |= {"range": _span(trend), "nticks": 5, "tickformat": ".2~f"}
    layout["shapes"] = [_threshold(limit) for limit in trend.limits]
    layout["shapes"] += [_empty(p.date) for p in trend.points if p.summary is None]
    layout["annotations"] = [_threshold_label(limit) for limit in trend.limits]
    for before, after in gaps(trend):
        middle = _midnight(before.date) + (after.date - before.date) / 2
        right = (after.date - trend.points[0].date) * 2 > trend.points[-1].date - trend.points[
            0
        ].date
        layout["shapes"].append(_upright(middle))
        layout["annotations"].append(_break_label(middle, after.broken, right))
    return {"data": data, "layout": layout}


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
    layout = _layout(margin={"l": 34, "r": 8, "t": 8, "b": 22})
    layout["xaxis"] |= {"range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    top = max(summary.histogram, default=0)
    layout["yaxis"] |= {"range": [0, top * 1.08 or 1], "nticks": 4, "tickformat": "~s"}
    mean = finite(summary.mean)
    if mean is not None and 0 <= mean <= 1:
        layout["shapes"] = [_upright(mean)]
    return {"data": [bars], "layout": layout}


def bin_label(index: int, bins: int) -> str:
    """`0.2 to 0.3`, the bounds of a bin."""
    return f"{index / bins:.1f} to {(index + 1) / bins:.1f}"


def _layout(margin: dict[str, int]) -> Figure:
    axis = {"fixedrange": True, "zeroline": False, "tickfont": {"color": INK, "size": 11}}
    return {
        "margin": margin,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--sans)", "size": 11, "color": INK},
        "showlegend": False,
        "dragmode": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "var(--surface)",
            "bordercolor": QUIET,
            "font": {"family": "var(--sans)", "color": "var(--ink)", "size": 12},
        },
        "xaxis": {**axis, "showgrid": False, "linecolor": LINE, "showline": True},
        "yaxis": {**axis, "gridcolor": LINE},
    }


def _means(runs: list[list[Point]]) -> Figure:
    """One line through all runs, with a gap between them."""
    x: list[str | None] = []
    y: list[float | None] = []
    texts: list[str] = []
    for run in runs:
        if x:
            x, y, texts = [*x, None], [*y, None], [*texts, ""]
        for point in run:
            if point.summary:
                x.append(str(point.date))
                y.append(_round(point.summary.mean))
                texts.append(_hover(point.summary, point.date))
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "connectgaps": False,
        "line": {"color": SERIES, "width": 2},
        "marker": {"color": SERIES, "size": 6},
        "customdata": texts,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _band(run: list[Point]) -> Figure:
    """The intervals of a run as one closed shape: up along the highs, back along the lows."""
    whole = [(p.date, p.summary.low, p.summary.high) for p in run if p.summary]
    drawn = [(d, low, high) for d, low, high in whole if interval(low, high)]
    days = [str(day) for day, _, _ in drawn]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": days + days[::-1],
        "y": [_round(h) for _, _, h in drawn] + [_round(low) for _, low, _ in drawn[::-1]],
        "fill": "toself",
        "fillcolor": BAND,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _whisker(point: Point) -> Figure:
    """The interval of a night that stands alone: a band needs two."""
    summary = point.summary
    mean, low, high = (summary.mean, summary.low, summary.high) if summary else (None,) * 3
    if mean is None or low is None or high is None:
        return {"type": "scatter", "x": [], "y": []}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [str(point.date)],
        "y": [_round(mean)],
        "error_y": {
            "symmetric": False,
            "array": [_round(high - mean)],
            "arrayminus": [_round(mean - low)],
            "color": SERIES,
            "thickness": 1.5,
            "width": 4,
        },
        "marker": {"color": SERIES, "size": 6},
        "hoverinfo": "skip",
    }


def _marks(trend: Trend) -> list[Figure]:
    fired = [p for p in trend.points if p.fired]
    resolved = [p for p in trend.points if p.resolved and not p.fired]
    kinds = (
        ("fired", fired, "triangle-down", "var(--firing)", "bottom center"),
        ("resolved", resolved, "diamond", "var(--ok)", "top center"),
    )
    return [_mark(*kind) for kind in kinds if any(p.summary for p in kind[1])]


def _mark(label: str, points: list[Point], symbol: str, colour: str, place: str) -> Figure:
    drawn = [(p.date, p.summary) for p in points if p.summary]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": [str(day) for day, _ in drawn],
        "y": [_round(summary.mean) for _, summary in drawn],
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
        "customdata": [_hover(summary, day) + f"<br>alert {label}" for day, summary in drawn],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


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


def _upright(x: float | datetime) -> Figure:
    place = x.isoformat() if isinstance(x, datetime) else x
    return {
        "type": "line",
        "yref": "paper",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "line": {"color": INK, "width": 1.25, "dash": "dot"},
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
    edge = max((days[-1] - days[0]) * 0.03, timedelta(hours=12))
    return {
        "type": "date",
        "range": [
            (_midnight(days[0]) - edge).isoformat(),
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
    low, high = min(drawn), max(drawn)
    room = max((high - low) * 0.15, (LEAST_SPAN - (high - low)) / 2)
    low, high = low - room, high + room
    if max(drawn) <= 1 and high > 1.02:
        low, high = max(low - (high - 1.02), min(low, min(drawn) - 0.02)), 1.02
    if min(drawn) >= 0 and low < -0.02:
        low, high = -0.02, high + (-0.02 - low)
    return [round(low, 3), round(high, 3)]


def _hover(summary: Summary, day: date) -> str:
    numbers = f"{number(summary.mean)} {interval(summary.low, summary.high)}"
    return f"{day} <br><b>{numbers}</b><br>{count(summary.scored)} rows"


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())


def _round(value: float | None) -> float | None:
    value = finite(value)
    return None if value is None else round(value, 4)
