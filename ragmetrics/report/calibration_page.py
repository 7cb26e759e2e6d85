"""The page of all calibrations: every judge on every labelled set, the first of them in full.

calibration.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from ragmetrics.calibration import History
from ragmetrics.model import ATTACK_WORDS, FIGURES, FigureName, ReliabilityBin
from ragmetrics.report.calibration import (
    CalibrationPoint,
    Standing,
    segment_tables,
    standings,
    unanswered,
)
from ragmetrics.report.figure_layout import QUIET, SERIES, Figure, frame, rounded, upright
from ragmetrics.report.formatting import interval, number, plural
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files

CALIBRATION_PAGE = "calibration.html"
MOST_IN_FULL = 12
"""Judges on sets that are shown with charts and tables; of the others the main figures stand."""
_MOST_LINES = 200
TERMS_OF: dict[FigureName, str] = {
    "auc": "AUC",
    "auc_within": "AUC",
    "kappa": "kappa",
    "kappa_classes": "kappa",
    "kappa_quadratic": "kappa",
    "alpha": "agreement α",
    "spearman": "Spearman",
    "accuracy": "accuracy",
}
"""What the glossary calls each figure."""


@dataclass(frozen=True)
class _Group:
    """The judges of one labelled set."""

    name: str
    standings: tuple[Standing, ...]


def write_calibrations(site: Files, history: History, dataset: str | None = None) -> str | None:
    """Write the page; return its path, or None where nothing has been calibrated.

    `dataset` names the site's first page.
    """
    found = standings(history)
    if not found:
        return None
    shown = found[:_MOST_LINES]
    page = render_page(
        "calibration.html",
        0,
        dataset=dataset,
        standings=shown,
        more=len(found) - len(shown),
        groups=_groups(found[:MOST_IN_FULL]),
        in_full=MOST_IN_FULL,
        drifted=sum(one.drifted for one in found),
        names=FIGURES,
        attack_words=ATTACK_WORDS,
        terms_of=TERMS_OF,
        main=MAIN,
        reliability=reliability_figure,
        trend=drift_figure,
        segments=segment_tables,
        unanswered=unanswered,
    )
    site.write(CALIBRATION_PAGE, page)
    return CALIBRATION_PAGE


def _groups(found: Sequence[Standing]) -> list[_Group]:
    names = dict.fromkeys(one.newest.name for one in found)
    return [_Group(name, tuple(s for s in found if s.newest.name == name)) for name in names]


MAIN: dict[FigureName, tuple[str, str, str]] = {
    "kappa_quadratic": ("kappa, quadratic", SERIES, "solid"),
    "auc": ("AUC, pooled", "var(--series-2)", "dot"),
}
"""The figures whose change is called drift: name, colour and dash."""


_LEAST_DAYS = timedelta(days=6)


_LEAST_SPAN = 0.2


_TICKS = 5


def reliability_figure(bins: Sequence[ReliabilityBin]) -> Figure:
    """Share of positive labels by mean strength, with the line on which both are equal."""
    layout = frame(margin={"l": 54, "r": 12, "t": 8, "b": 38})
    ticks = {"range": [-0.03, 1.03], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    layout["xaxis"] |= {**ticks, "title": {"text": "judged", "standoff": 6}}
    layout["yaxis"] |= {**ticks, "title": {"text": "positive labels", "standoff": 6}}
    layout["shapes"] = [
        {
            "type": "line",
            "x0": 0,
            "y0": 0,
            "x1": 1,
            "y1": 1,
            "line": {"color": QUIET, "width": 1.25, "dash": "dot"},
            "layer": "below",
        }
    ]
    dots = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [rounded(one.judged) for one in bins],
        "y": [rounded(one.observed) for one in bins],
        "error_y": _whiskers([(one.observed, one.observed_low, one.observed_high) for one in bins]),
        "line": {"color": SERIES, "width": 1.5},
        "marker": {"color": SERIES, "size": 7},
        "customdata": [_bin_hover(one) for one in bins],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    return {"data": [dots], "layout": layout}


def drift_figure(points: Sequence[CalibrationPoint]) -> Figure:
    """Quadratic kappa and AUC over time, with a dotted line where the judge or a prompt changed.

    The lines go on there: labels stay what they are, so that agreement with them compares.
    """
    layout = frame(margin={"l": 38, "r": 14, "t": 14, "b": 26})
    layout["xaxis"] |= _time(points)
    layout["yaxis"] |= {"range": _span(points), "nticks": 5, "tickformat": ".2f"}
    layout["shapes"] = [_change(a, b) for a, b in pairwise(points) if b.changed]
    data = [_line(points, name, *look) for name, look in MAIN.items()]
    drifted = [one for one in points if one.drifted]
    return {"data": [*data, _marks(drifted)] if drifted else data, "layout": layout}


def _change(before: CalibrationPoint, after: CalibrationPoint) -> Figure:
    start, end = before.calibration.at, after.calibration.at
    line = upright(_naive(start + (end - start) / 2))
    return line | {"line": {"color": QUIET, "width": 1, "dash": "dot"}, "layer": "below"}


def _line(
    points: Sequence[CalibrationPoint], name: FigureName, label: str, colour: str, dash: str
) -> Figure:
    """One figure over time."""
    values = [one.figure(name) for one in points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [_moment(one) for one in points],
        "y": [rounded(one.value) for one in values],
        "error_y": _whiskers([(one.value, one.low, one.high) for one in values]),
        "connectgaps": False,
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"color": colour, "size": 6},
        "customdata": [_hover(one, name, label) for one in points],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _marks(drifted: Sequence[CalibrationPoint]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [_moment(one) for one in drifted],
        "y": [rounded(one.figure("kappa_quadratic").value) for one in drifted],
        "cliponaxis": False,
        "marker": {
            "symbol": "triangle-down",
            "size": 13,
            "color": "var(--firing)",
            "line": {"color": "var(--surface)", "width": 1.5},
        },
        "hoverinfo": "skip",
    }


def _whiskers(
    values: Sequence[tuple[float | None, float | None, float | None]],
) -> Figure:
    """Intervals as error bars; 0 long where there is none."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [rounded((high or v) - v) if v is not None else 0 for v, _, high in values],
        "arrayminus": [
            rounded(v - (v if low is None else low)) if v is not None else 0 for v, low, _ in values
        ],
        "thickness": 1.25,
        "width": 3,
    }


def _time(points: Sequence[CalibrationPoint]) -> Figure:
    """A time axis with a few of the days written out, the newest always."""
    days = list(dict.fromkeys(one.calibration.at.date() for one in points))
    shown = days[::-1][:: -(-len(days) // _TICKS)][::-1]
    last = points[-1].calibration.at
    start = min(points[0].calibration.at, last - _LEAST_DAYS)
    edge = (last - start) * 0.04
    first = {day: one for one in reversed(points) if (day := one.calibration.at.date()) in shown}
    return {
        "type": "date",
        "range": [_naive(start - edge).isoformat(), _naive(last + edge).isoformat()],
        "tickvals": [_moment(first[day]) for day in shown],
        "ticktext": [f"{day.day} {day:%b}" for day in shown],
    }


def _span(points: Sequence[CalibrationPoint]) -> list[float]:
    """The axis: all that is drawn, never finer than a fifth."""
    figures = [one.figure(name) for one in points for name in MAIN]
    drawn = [v for one in figures for v in (one.value, one.low, one.high) if v is not None]
    low, high = min(drawn, default=0.0), max(drawn, default=1.0)
    room = max((high - low) * 0.15, (_LEAST_SPAN - high + low) / 2)
    top = min(high + room, 1.04)
    return [round(min(low - room, top - _LEAST_SPAN), 3), round(top, 3)]


def _hover(one: CalibrationPoint, name: FigureName, label: str) -> str:
    found = one.figure(name)
    numbers = f"{number(found.value)} {interval(found.low, found.high, 2)}"
    units = plural(one.measured.overall.units if one.measured.overall else 0, "unit")
    return f"{one.calibration.at:%Y-%m-%d %H:%M}<br>{numbers}<br>{label}, {units}"


def _bin_hover(one: ReliabilityBin) -> str:
    share = f"{number(one.observed)} {interval(one.observed_low, one.observed_high, 2)}"
    units = plural(one.n, "unit")
    return f"judged {one.low:.1f} to {one.high:.1f}<br>{share} positive<br>{units}"


def _moment(one: CalibrationPoint) -> str:
    return _naive(one.calibration.at).isoformat()


def _naive(moment: datetime) -> datetime:
    """A time for Plotly, which knows no zones: UTC, as everywhere on the site."""
    return moment.astimezone(UTC).replace(tzinfo=None, microsecond=0)
