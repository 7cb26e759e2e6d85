"""Judges compared with labelled rows: agreement, reliability, and both over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import pairwise

from ragmetrics.dashboard.calibration import (
    CalibrationPoint,
    Standing,
    segment_tables,
    standings,
    unanswered,
)
from ragmetrics.dashboard.figure_layout import (
    ALARM,
    LEAST_DAYS,
    QUIET,
    SECOND,
    SERIES,
    TICKS,
    Figure,
    axis_range,
    frame,
    rounded,
    scatter,
    segment,
    symbols,
    tick_label,
    upright,
    whiskers,
)
from ragmetrics.dashboard.formatting import interval, number
from ragmetrics.dashboard.judge_sentence import judge_sentence
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.templating import render_page
from ragmetrics.people import History
from ragmetrics.records import (
    ATTACK_WORDS,
    FIGURES,
    Calibration,
    FigureName,
    JudgeInfo,
    LearnedModel,
    ReliabilityBin,
)
from ragmetrics.storage import FileInfo, Files, LearnedJudges, save_record
from ragmetrics.text import plural
from ragmetrics.version import __version__

CALIBRATION_PAGE = "calibration.html"
IN_SHORT = 3
"""Judges on sets with a sentence at the head of the page."""
MOST_IN_FULL = 12
"""Judges on sets with charts and tables; the others have one line with the main figures."""
_MOST_LINES = 200
_TERMS: dict[FigureName, str] = {
    "auc": "AUC",
    "auc_within": "AUC",
    "kappa": "kappa",
    "kappa_classes": "kappa",
    "kappa_quadratic": "kappa",
    "alpha": "agreement α",
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "calibration_error": "calibration error",
}
"""The glossary's term for each figure."""
_MAIN: dict[FigureName, tuple[str, str, str]] = {
    "kappa_quadratic": ("kappa, quadratic", SERIES, "solid"),
    "auc": ("AUC, pooled", SECOND, "dot"),
}
"""The figures that can drift: name, colour and dash."""
_LEAST_SPAN = 0.2
_WHISKERS = {"thickness": 1.25, "width": 3}
_HOVER = "%{customdata}<extra></extra>"


def render(shown: Shown) -> bytes:
    """The page of the calibrations and learned judges that the store has."""
    return calibration_page(shown.calibrations, shown.dataset, LearnedJudges(shown.files).all())


def calibration_page(
    history: History, dataset: str = "", learned: Sequence[LearnedModel] = ()
) -> bytes:
    """The page; without a calibration or a learned judge it says so."""
    judged = standings(history)
    sets: dict[str, list[Standing]] = {}
    for standing in judged[:MOST_IN_FULL]:
        sets.setdefault(standing.newest.name, []).append(standing)
    return render_page(
        CALIBRATION_PAGE,
        0,
        dataset=dataset,
        standings=judged[:_MOST_LINES],
        more=max(0, len(judged) - _MOST_LINES),
        sets=sets,
        learned=learned,
        version=judged[0].newest.ragmetrics if judged else __version__,
        in_full=MOST_IN_FULL,
        in_short=IN_SHORT,
        sentence=judge_sentence,
        drifted=sum(one.drifted for one in judged),
        names=FIGURES,
        attack_words=ATTACK_WORDS,
        terms_of=_TERMS,
        main=_MAIN,
        reliability=reliability_figure,
        trend=drift_figure,
        segments=segment_tables,
        unanswered=unanswered,
    )


def reliability_figure(bins: Sequence[ReliabilityBin]) -> Figure:
    """Share of positive labels by mean strength, with the line on which both are equal."""
    layout = frame(54, 12, 8, 38)
    ticks = {"range": [-0.03, 1.03], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    layout["xaxis"] |= {**ticks, "title": {"text": "judged", "standoff": 6}}
    layout["yaxis"] |= {**ticks, "title": {"text": "positive labels", "standoff": 6}}
    layout["shapes"] = [segment((0, 0), (1, 1), QUIET, dash="dot", layer="below")]
    ends = [(one.observed, one.observed_low, one.observed_high) for one in bins]
    dots = scatter(
        [rounded(one.judged) for one in bins],
        [one.observed for one in bins],
        "lines+markers",
        error_y=whiskers(ends, **_WHISKERS),
        line={"color": SERIES, "width": 1.5},
        marker={"color": SERIES, "size": 7},
        customdata=list(map(_bin_hover, bins)),
        hovertemplate=_HOVER,
    )
    return {"data": [dots], "layout": layout}


def drift_figure(points: Sequence[CalibrationPoint]) -> Figure:
    """Quadratic kappa and AUC over time, with a dotted line where the judge or a prompt changed.

    The labels stay the same, so figures before and after the line compare.
    """
    layout = frame(38, 14, 14, 26)
    layout["xaxis"] |= _time_axis(points)
    layout["yaxis"] |= {"range": _span(points), "nticks": 5, "tickformat": ".2f"}
    layout["shapes"] = [_change(a, b) for a, b in pairwise(points) if b.changed]
    data = [_line(points, name, *look) for name, look in _MAIN.items()]
    drifted = [point for point in points if point.drifted]
    if drifted:
        values = [one.figure("kappa_quadratic").value for one in drifted]
        marks = symbols("triangle-down", 13, ALARM)
        moments = list(map(_moment, drifted))
        data.append(scatter(moments, values, "markers", cliponaxis=False, marker=marks))
    return {"data": data, "layout": layout}


def _change(before: CalibrationPoint, after: CalibrationPoint) -> Figure:
    start, end = before.calibration.at, after.calibration.at
    return upright(_naive(start + (end - start) / 2), QUIET, width=1, layer="below")


def _line(
    points: Sequence[CalibrationPoint], name: FigureName, label: str, colour: str, dash: str
) -> Figure:
    """One figure over time."""
    values = [point.figure(name) for point in points]
    return scatter(
        list(map(_moment, points)),
        [value.value for value in values],
        "lines+markers",
        error_y=whiskers([(value.value, value.low, value.high) for value in values], **_WHISKERS),
        connectgaps=False,
        line={"color": colour, "width": 2, "dash": dash},
        marker={"color": colour, "size": 6},
        customdata=[_hover(point, name, label) for point in points],
        hovertemplate=_HOVER,
    )


def _time_axis(points: Sequence[CalibrationPoint]) -> Figure:
    """A time axis that names a few days, and always the newest."""
    days = list(dict.fromkeys(point.calibration.at.date() for point in points))
    shown = days[::-1][:: -(-len(days) // TICKS)][::-1]
    last = points[-1].calibration.at
    start = min(points[0].calibration.at, last - LEAST_DAYS)
    edge = (last - start) * 0.04
    first = {point.calibration.at.date(): _moment(point) for point in reversed(points)}
    return {
        "type": "date",
        "range": [_naive(start - edge).isoformat(), _naive(last + edge).isoformat()],
        "tickvals": [first[day] for day in shown],
        "ticktext": list(map(tick_label, shown)),
    }


def _span(points: Sequence[CalibrationPoint]) -> list[float]:
    """The range of the axis: all that is drawn, at least 0.2."""
    figures = [point.figure(name) for point in points for name in _MAIN]
    values = (v for figure in figures for v in (figure.value, figure.low, figure.high))
    return axis_range(values, _LEAST_SPAN, top=1.04)


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
    """A time in UTC without a zone, as Plotly knows no zones."""
    return moment.astimezone(UTC).replace(tzinfo=None, microsecond=0)


def _shows(shown: Shown) -> Sequence[FileInfo]:
    return [*shown.now.calibrations, *LearnedJudges(shown.files).files()]


def _sample(files: Files, night: date, text: str) -> None:
    at = datetime(night.year, night.month, night.day, tzinfo=UTC)
    record = Calibration(
        name="labelled.jsonl",
        source="labelled.jsonl",
        at=at,
        ragmetrics=__version__,
        judge=JudgeInfo(name="house", fingerprint="f1"),
        rows=0,
        rejected={f"tags.{text}: should be a text": 1},
        metrics=[],
    )
    save_record(
        files, f"calibrations/set=labelled.jsonl/judge=f1/{at:%Y%m%dT%H%M%S.%fZ}.json", record
    )


calibration = Page(
    "calibration",
    "Judge calibration",
    __doc__,
    render,
    "site",
    place=30,
    shows=_shows,
    sample=_sample,
)
