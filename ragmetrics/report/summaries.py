"""The headline table of a night outside its page: one line per metric, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from ragmetrics.alerts import silences, with_silences
from ragmetrics.errors import InputError
from ragmetrics.model import (
    Calibration,
    Drift,
    Figure,
    Gate,
    Manifest,
    MetricCalibration,
    MetricVerdict,
    Summary,
)
from ragmetrics.report.cards import Card, cards
from ragmetrics.report.costs import money_text
from ragmetrics.report.formatting import brief, count, drop, interval, moved, number, plain, plural
from ragmetrics.report.night_status import LABELS, find_night_status
from ragmetrics.report.redacting import redacted
from ragmetrics.report.templating import render_page, web
from ragmetrics.scoring import worse_segments
from ragmetrics.storage import Files, in_full, outlines, run_of

_NO_RULE = "no rule"
_NAME = 80


@dataclass(frozen=True)
class MetricLine:
    """One metric over all rows, rounded as on the night's page; no text of it is markup yet."""

    metric: str
    state: str
    mean: str
    interval: str
    change: str
    """Nothing on a first night."""
    change_interval: str
    against: str
    """What it is compared with: `7 nights before`, `2026-11-18`."""
    scored: str
    unscored: str


@dataclass(frozen=True)
class Low:
    """A segment that is significantly worse than all rows."""

    metric: str
    segment: str
    mean: str
    interval: str
    whole: str
    """The mean of all rows."""
    scored: str


def headline(manifest: Manifest, earlier: Sequence[Manifest], most: int = 50) -> list[MetricLine]:
    """The lines of a night, those that need a reader first, as its page has the cards."""
    return [_line(card) for card in cards(manifest, earlier)[:most]]


def lowest_segments(manifest: Manifest, most: int = 8) -> list[Low]:
    """The segments that are significantly worse than all rows, the furthest first."""
    wholes = {one.metric: one for one in manifest.metrics if one.mean is not None}
    found = [
        (one.loss(whole.mean or 0.0), one, whole)
        for one in worse_segments(manifest)
        if (whole := wholes.get(one.metric))
    ]
    found.sort(key=lambda one: (-one[0], one[1].metric, str(one[1].segment)))
    return [_low(one, whole) for _, one, whole in found[:most]]


def _line(card: Card) -> MetricLine:
    one, change, ends, against = card.summary, "", "", ""
    if card.moved:
        change, ends = moved(card.moved.by, card.moved.low, card.moved.high)
        against = plain(card.moved.label)
    done = ("scored", "not_sampled")
    unscored = sum(rows for status, rows in one.status.items() if status not in done)
    return MetricLine(
        metric=_named(one.metric),
        state=LABELS[card.state] if card.state else _NO_RULE,
        mean=_mean(one),
        interval=interval(one.low, one.high),
        change=change,
        change_interval=ends,
        against=against,
        scored=count(one.scored),
        unscored=count(unscored),
    )


def _low(one: Summary, whole: Summary) -> Low:
    return Low(
        metric=_named(one.metric),
        segment=_named(str(one.segment)),
        mean=_mean(one),
        interval=interval(one.low, one.high),
        whole=_mean(whole),
        scored=count(one.scored),
    )


def _mean(one: Summary) -> str:
    return number(one.mean)


def _named(text: str) -> str:
    return plain(brief(text, _NAME))


SUMMARY = "summary.html"


_MOST_TOLD = 12


_MOST_METRICS = 30


_LONGEST = 600


_COLOURS = {
    "firing": "#a6230f",
    "pending": "#7a4f00",
    "fell": "#7a4f00",
    "ok": "#0d6746",
    "no_data": "#5b4a80",
    "incomplete": "#5b4a80",
}
"""Behind white letters: a mail client shows both alike in light and dark."""


_NEUTRAL = "#474c54"


def summary_page(manifest: Manifest, earlier: Sequence[Manifest]) -> bytes:
    """The page; `earlier` are the nights before, oldest first.

    It stays below 100 kB, from where on mail clients cut. Links are those of `dashboard_url`;
    without one there are none, as a path leads nowhere from an inbox.
    """
    state = find_night_status(manifest)
    told = [*state.told, *state.notes]
    return render_page(
        "summary.html",
        1,
        manifest=manifest,
        title=_short(state.sentence),
        label=LABELS[state.state],
        colour=_COLOURS.get(state.state, _NEUTRAL),
        told=[_short(one) for one in told[:_MOST_TOLD]],
        more=max(0, len(told) - _MOST_TOLD),
        lines=headline(manifest, earlier, _MOST_METRICS),
        more_lines=max(0, len(manifest.metrics) - _MOST_METRICS),
        low=lowest_segments(manifest),
        data=_data(manifest),
        judge=_short(" - ".join(filter(None, (manifest.judge.name, manifest.judge.note)))),
        asked=_asked(manifest),
        links=_links(manifest),
    )


def _data(manifest: Manifest) -> str:
    source = manifest.source
    return f"{plural(source.rows, 'row')} read, {source.quarantined:,} quarantined"


def _asked(manifest: Manifest) -> str:
    """What was asked and paid; nothing where no judge was reached over a network."""
    usage = manifest.usage
    if not usage.requests and not usage.answered_from_store:
        return ""
    paid = money_text(usage, manifest.usage_by_metric)
    asked = f"{plural(usage.requests, 'request')}, {usage.answered_from_store:,} known already"
    return _short(f"{asked}, {paid}" if paid else asked)


def _links(manifest: Manifest) -> dict[str, str]:
    """Where the dashboard is reached by its address: what a link says, and its target."""
    said = manifest.settings.get("dashboard_url")
    base = web(said).rstrip("/") if isinstance(said, str) else ""
    if not base:
        return {}
    base = quote(base, safe=":/?#[]@!$&'()*+,;=%~")
    night = f"{base}/{manifest.date}"
    rows = {"The rows to look at first": f"{night}/rows.html"} if manifest.worst else {}
    return {"The night": f"{night}/index.html", **rows, "All nights": f"{base}/index.html"}


def _short(text: str) -> str:
    return plain(brief(text, _LONGEST))


_MOST = 50
"""Lines of a table, and"""


_TOLD = 20
"""of what is told before it: so a page stays below 100 kB, whatever the texts."""


_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def summary_markdown(manifest: Manifest, dashboard: str, earlier: Sequence[Manifest] = ()) -> str:
    """State, findings and one table line per metric, with the way to the dashboard.

    `earlier` are the nights before, oldest first: where no rule says how far a metric moved, they
    do.
    """
    state = find_night_status(manifest)
    lines = [f"## {_text(state.sentence)}", ""]
    lines += _listed((*state.told, *state.notes))
    if metrics := headline(manifest, earlier, _MOST):
        lines += ["| metric | state | mean | interval | change | rows | not scored |"]
        lines += ["|:--|:--|--:|:--|:--|--:|--:|", *map(_metric_row, metrics), ""]
    judge = " - ".join(filter(None, (manifest.judge.name, manifest.judge.note)))
    lines += [
        f"{count(manifest.source.rows)} rows, {count(manifest.source.quarantined)} quarantined. "
        f"Judge: {_text(judge)}.",
        "",
        _link(dashboard),
    ]
    return "\n".join(lines) + "\n"


def calibration_markdown(
    found: Sequence[Calibration], drifts: Sequence[Drift | None], dashboard: str
) -> str:
    """One table line per judge, set and metric, what drifted first, and the way to the page."""
    drifted = [one for one in drifts if one and one.drifted]
    lines = [f"## {len(drifted)} of {len(found)} calibrations show drift", ""]
    lines += [
        f"- {_text(one.judge)} drifted on {_text(one.name)} since {one.earlier:%Y-%m-%d}: "
        + ", ".join(_text(metric.metric) for metric in one.metrics if metric.drifted)
        for one in drifted[:_TOLD]
    ]
    lines += ["", "| set | judge | metric | kappa, quadratic | AUC | units | drift |"]
    lines += ["|:--|:--|:--|--:|--:|--:|:--|"]
    held = [
        _held(one, measured, drift)
        for one, drift in zip(found, drifts, strict=True)
        for measured in one.metrics
    ]
    return "\n".join([*lines, *held[:_MOST], "", _link(dashboard)]) + "\n"


def gate_markdown(gate: Gate, dashboard: str) -> str:
    """Verdict, reasons and one table line per metric, and the way to the page of builds."""
    against = f" against {_text(gate.serving)}" if gate.serving else ""
    lines = [f"## Index build {_text(gate.build)}{against}: {gate.verdict}", ""]
    lines += _listed(gate.reasons)
    lines += ["| metric | verdict | before | after | drop | limit | questions |"]
    lines += ["|:--|:--|--:|--:|--:|--:|--:|"]
    lines += [_compared(one) for one in gate.metrics[:_MOST]]
    judge = " - ".join(filter(None, (gate.judge.name, gate.judge.note)))
    lines += ["", f"{count(gate.source.rows)} rows. Judge: {_text(judge)}.", "", _link(dashboard)]
    return "\n".join(lines) + "\n"


def _compared(one: MetricVerdict) -> str:
    fell = number(None) if one.drop is None else " ".join(drop(one.drop, one.low, one.high))
    cells = (
        _name(one.metric),
        one.verdict,
        number(one.before),
        number(one.after),
        fell.rstrip(),
        f"{one.max_drop:g}",
        count(one.questions),
    )
    return f"| {' | '.join(cells)} |"


def _held(calibration: Calibration, measured: MetricCalibration, drift: Drift | None) -> str:
    figures = measured.overall.figures if measured.overall else {}
    moved = [one for one in drift.metrics if one.metric == measured.metric] if drift else []
    cells = (
        _name(calibration.name),
        _name(calibration.judge.name),
        _name(measured.metric),
        _figure(figures.get("kappa_quadratic")),
        _figure(figures.get("auc")),
        count(measured.overall.units if measured.overall else 0),
        moved[0].state if moved else "not compared",
    )
    return f"| {' | '.join(cells)} |"


def _figure(found: Figure | None) -> str:
    return f"{number(found.value)} {interval(found.low, found.high, 2)}" if found else number(None)


def _metric_row(one: MetricLine) -> str:
    against = f"against {_text(one.against)}" if one.against else ""
    change = " ".join(filter(None, (one.change, one.change_interval, against)))
    cells = (
        _name(one.metric),
        one.state,
        one.mean,
        one.interval,
        change,
        one.scored,
        one.unscored,
    )
    return f"| {' | '.join(cells)} |"


def _listed(told: Sequence[str]) -> list[str]:
    """A list of what is told, and how much more there is."""
    lines = [f"- {_text(line)}" for line in told[:_TOLD]]
    more = [f"- and {len(told) - _TOLD} more"] if len(told) > _TOLD else []
    return [*lines, *more, ""] if lines else []


def _name(text: str) -> str:
    return _text(brief(text, 80))


def _text(text: str) -> str:
    """Text that stays text: no table cell, markup, code, link or HTML begins or ends in it."""
    escaped = re.sub(r"[\\`*|\[\]]", r"\\\g<0>", plain(brief(text, 500)))
    return re.sub(r"[&<>]", lambda sign: _HTML[sign[0]], escaped)


def _link(dashboard: str) -> str:
    """A link where a browser can follow it; a path or bucket is only named."""
    if re.match(r"(https?|file)://", dashboard):
        target = re.sub(r"[<>\s\\]", lambda sign: f"%{ord(sign[0]):02X}", dashboard)
        return f"[Open the dashboard](<{target}>)"
    return f"Dashboard: {_text(dashboard)}"


_EARLIER = 60
"""Nights in which the newest one that compares is looked for."""


def night_markdown(files: Files, manifest: Manifest, link: str) -> str:
    """The headline of a run as markdown, with a link to its page."""
    told = redacted(manifest, manifest.redacts)
    return summary_markdown(told, link, _before(files, manifest.date))


def night_summary(files: Files, day: date) -> bytes:
    """The page of a night that can be sent by e-mail; raises InputError where it is not there."""
    found = run_of(files, day)
    if found is None:
        known = outlines(files, last=1)
        newest = f"; the newest is {known[-1].date}" if known else ""
        raise InputError(f"{files.uri()}: there is no night {day}{newest}")
    last = in_full(files, outlines(files, last=1))
    hide = any(one.redacts for one in [found, *last])
    told = redacted(with_silences(found, silences(files)), hide)
    return summary_page(told, _before(files, day))


def _before(files: Files, day: date) -> list[Manifest]:
    return outlines(files, before=day, last=_EARLIER)
