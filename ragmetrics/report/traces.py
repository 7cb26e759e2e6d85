"""What is drawn of a trend: the means, their intervals, and where alerts fired."""

from __future__ import annotations

from datetime import date

from ragmetrics.records import Summary
from ragmetrics.report.frame import BAND, SERIES, Figure, rounded
from ragmetrics.report.trends import Point, Trend
from ragmetrics.report.words import count, interval, number


def traces(trend: Trend) -> list[Figure]:
    """Bands below, then the line, then the marks."""
    runs = trend.runs
    data = [_band(run) for run in runs if len(run) > 1]
    data += [_whisker(run[0]) for run in runs if len(run) == 1]
    return [*data, _means(runs), *_marks(trend)]


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
                y.append(rounded(point.summary.mean))
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
        "y": [rounded(h) for _, _, h in drawn] + [rounded(low) for _, low, _ in drawn[::-1]],
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
        "customdata": [_hover(summary, day) + f"<br>alert {label}" for day, summary in drawn],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _hover(summary: Summary, day: date) -> str:
    numbers = f"{number(summary.mean)} {interval(summary.low, summary.high)}"
    return f"{day} <br><b>{numbers}</b><br>{count(summary.scored)} rows"
