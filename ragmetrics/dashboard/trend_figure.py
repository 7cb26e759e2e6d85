"""One metric over the nights as a figure: means, intervals, limits, alerts and gaps."""

from __future__ import annotations

from datetime import date, timedelta
from math import inf

from ragmetrics.dashboard.figure_layout import (
    ALARM,
    BAND,
    INK,
    SECOND,
    SERIES,
    Figure,
    axis_range,
    days_axis,
    frame,
    midnight,
    rounded,
    scatter,
    segment,
    symbols,
    upright,
    whiskers,
)
from ragmetrics.dashboard.formatting import interval
from ragmetrics.dashboard.trends import Trend, TrendPoint
from ragmetrics.metrics import unit_of
from ragmetrics.records import Summary
from ragmetrics.text import slug

LEAST_SPAN = 0.2
"""Shortest range of the axis of means: a shorter one makes noise look like a change."""
_FEW_BUILDS = 6
"""Most new index builds with a line over the whole height; more would hide the means."""
_FEW_NIGHTS = 45
"""Most nights that are drawn as large points; more would hide the line."""
_HOVER = (
    "%{x|%Y-%m-%d}<br>%{y:.3f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]"
    "<br>%{customdata[2]:,} rows"
)


def trend_figure(trend: Trend) -> Figure:
    """The line of means in the band of intervals, which breaks where numbers do not compare."""
    days = [point.date for point in trend.points]
    middle = days[0] + (days[-1] - days[0]) / 2
    layout = frame(38, 14, 20, 26)
    layout["xaxis"] |= days_axis(days)
    layout["yaxis"] |= {"range": _span(trend), "nticks": 5, "tickformat": _ticks(trend)}
    layout["yaxis2"] = {"range": [0, 1], "overlaying": "y", "visible": False, "fixedrange": True}
    layout["shapes"] = [
        segment((0, limit), (1, limit), ALARM, dash="dash", xref="paper") for limit in trend.limits
    ]
    layout["shapes"] += [_no_data(p.date) for p in trend.points if p.summary is None]
    layout["shapes"] += _build_lines(trend)
    layout["annotations"] = [
        _label(f"limit {limit:g}", ALARM, x=0, y=limit, xref="paper", xanchor="left")
        for limit in trend.limits
    ]
    changes = [
        (midnight(before) + (after.date - before) / 2, after.broken, after.date)
        for before, after in trend.breaks
    ]
    changes += [(midnight(p.date), "judge drift", p.date) for p in trend.points if p.drifted]
    for x, words, day in changes:
        layout["shapes"].append(upright(x))
        side = "right" if day > middle else "left"
        layout["annotations"].append(
            _label(words, INK, x=x.isoformat(), y=1, yref="paper", xanchor=side)
        )
    return {"data": _traces(trend), "layout": layout}


def _build_lines(trend: Trend) -> list[Figure]:
    """Lines where an index build is new. Each new build has a tick at the foot as well."""
    days = [point.date for point in trend.points if point.builds]
    if len(days) > _FEW_BUILDS:
        return []
    return [upright(midnight(day), SECOND, dash="solid", layer="below") for day in days]


def _label(words: str, colour: str, **place: object) -> Figure:
    look = {"showarrow": False, "font": {"color": colour, "size": 10.5}, "yanchor": "bottom"}
    return {"text": words, **look, **place}


def _no_data(day: date) -> Figure:
    """A night without a number: a column in the colour of no data."""
    ends = {"x0": _hours(day, -9), "x1": _hours(day, 9), "y0": 0, "y1": 1, "yref": "paper"}
    font = {"color": "var(--no_data)", "size": 10}
    look = {"fillcolor": "var(--no_data-tint)", "line": {"width": 0}, "layer": "below"}
    return {
        "type": "rect",
        **ends,
        **look,
        "label": {"text": "no data", "textangle": -90, "font": font},
    }


def _hours(day: date, hours: int) -> str:
    return (midnight(day) + timedelta(hours=hours)).isoformat()


def _span(trend: Trend) -> list[float]:
    """The range of the axis: all that is drawn, at least LEAST_SPAN."""
    summaries = [point.summary for point in trend.points if point.summary]
    values = [*(v for s in summaries for v in (s.mean, s.low, s.high)), *trend.limits]
    drawn = [v for v in values if v is not None]
    top = 1.04 if max(drawn, default=1.0) <= 1 else inf
    bottom = -0.02 if min(drawn, default=0.0) >= 0 else -inf
    unit, least = unit_of(trend.metric), LEAST_SPAN
    if unit:  # shares of rare events, and times or lengths, which differ by parts of themselves
        least *= 0.25 if unit == "%" else max(drawn, default=1.0)
    return axis_range(drawn, least, bottom=bottom, top=top)


def _ticks(trend: Trend) -> str:
    unit = unit_of(trend.metric)
    return {"": ".2f", "%": ".1%"}.get(unit, ",.0f")


def _traces(trend: Trend) -> list[Figure]:
    """Intervals below, then the line of means, then the marks."""
    runs = trend.runs
    data = [_band(run) for run in runs if len(run) > 1]
    data += [
        _whisker(run[0].date, run[0].summary) for run in runs if len(run) == 1 and run[0].summary
    ]
    return [*data, _means(runs), *_alerts(trend), *_build_marks(trend)]


def _means(runs: list[list[TrendPoint]]) -> Figure:
    """One line through all runs, with a gap between them."""
    points: list[tuple[str | None, float | None, list[float | None]]] = []
    for run in runs:
        points += [(None, None, [])] if points else []
        points += [(str(p.date), p.summary.mean, _hover(p.summary)) for p in run if p.summary]
    return scatter(
        [x for x, _, _ in points],
        [y for _, y, _ in points],
        "lines+markers",
        connectgaps=False,
        line={"color": SERIES, "width": 2},
        marker={"color": SERIES, "size": 6 if len(points) <= _FEW_NIGHTS else 3},
        customdata=[hover for _, _, hover in points],
        hovertemplate=f"{_HOVER}<extra></extra>",
    )


def _band(run: list[TrendPoint]) -> Figure:
    """The intervals of a run as one closed shape: along the upper ends and back along the lower."""
    whole = [(p.date, p.summary.low, p.summary.high) for p in run if p.summary]
    drawn = [(str(day), low, high) for day, low, high in whole if interval(low, high)]
    days, highs = [day for day, _, _ in drawn], [high for _, _, high in drawn]
    lows = [low for _, low, _ in drawn]
    look = {"fill": "toself", "fillcolor": BAND, "line": {"width": 0}}
    return scatter(days + days[::-1], highs + lows[::-1], "lines", **look)


def _whisker(day: date, one: Summary) -> Figure:
    """The interval of a night that stands alone."""
    if one.mean is None or one.low is None or one.high is None:
        return scatter([], [], "markers")
    error = whiskers([(one.mean, one.low, one.high)], color=SERIES, thickness=1.5, width=4)
    look = {"error_y": error, "marker": {"color": SERIES, "size": 6}}
    return scatter([str(day)], [one.mean], "markers", **look)


def _alerts(trend: Trend) -> list[Figure]:
    """A mark for each night on which an alert fired, escalated or was resolved."""
    fired = [p for p in trend.points if p.fired]
    escalated = [p for p in trend.points if p.escalated and not p.fired]
    resolved = [p for p in trend.points if p.resolved and not (p.fired or p.escalated)]
    kinds = (
        ("fired", fired, "triangle-down", ALARM, "bottom center"),
        ("escalated", escalated, "triangle-down", ALARM, "bottom center"),
        ("resolved", resolved, "diamond", "var(--ok)", "top center"),
    )
    return [_alert(*kind) for kind in kinds if any(p.summary for p in kind[1])]


def _alert(label: str, points: list[TrendPoint], symbol: str, colour: str, place: str) -> Figure:
    drawn = [(p.date, p.summary) for p in points if p.summary]
    return scatter(
        [str(day) for day, _ in drawn],
        [summary.mean for _, summary in drawn],
        "markers+text" if len(drawn) == 1 else "markers",  # two labels may collide
        text=[label] * len(drawn),
        textposition=place,
        textfont={"color": colour, "size": 11},
        cliponaxis=False,
        marker=symbols(symbol, 12, colour),
        customdata=[_hover(summary) for _, summary in drawn],
        hovertemplate=f"{_HOVER}<br>alert {label}<extra></extra>",
    )


def _build_marks(trend: Trend) -> list[Figure]:
    """Ticks at the foot that name new index builds at hover, in characters without markup."""
    new = [point for point in trend.points if point.builds]
    if not new:
        return []
    ticks = scatter(
        [str(point.date) for point in new],
        [0.03] * len(new),
        "markers",
        yaxis="y2",
        marker={"color": SECOND, "size": 7, "symbol": "line-ns-open"},
        customdata=[", ".join(slug(name)[:40] for name in p.builds[:3]) for p in new],
        hovertemplate="%{x|%Y-%m-%d}<br>new index build<br>%{customdata}<extra></extra>",
    )
    return [ticks]


def _hover(summary: Summary) -> list[float | None]:
    ends = (rounded(one) for one in (summary.low, summary.high))
    return [*(None if end is None else round(end, 2) for end in ends), summary.scored]
