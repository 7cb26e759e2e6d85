"""What is drawn of a trend: the means, their intervals, and where alerts fired."""

from __future__ import annotations

from ragmetrics.model import Summary
from ragmetrics.report.figure_layout import BAND, SERIES, Figure, rounded
from ragmetrics.report.formatting import interval
from ragmetrics.report.trends import Trend, TrendPoint
from ragmetrics.text import slug

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
