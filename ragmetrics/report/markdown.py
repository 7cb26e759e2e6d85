"""The headline of a night, of calibrations or of a gate, as markdown for a Prefect artifact."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragmetrics.model import (
    Calibration,
    Drift,
    Figure,
    Gate,
    Manifest,
    MetricCalibration,
    MetricVerdict,
)
from ragmetrics.report.formatting import brief, count, drop, interval, number, plain
from ragmetrics.report.night_status import find_night_status
from ragmetrics.report.summary_lines import MetricLine, headline

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
