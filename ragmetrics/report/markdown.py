"""The headline of a night as markdown, for a Prefect artifact."""

from __future__ import annotations

import re

from ragmetrics.records import Manifest, Summary
from ragmetrics.report.condition import condition, rule_state
from ragmetrics.report.words import brief, count, interval, number, plain

_MOST = 50
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def summary_markdown(manifest: Manifest, dashboard: str) -> str:
    """State, findings and one table line per metric, with the way to the dashboard."""
    state = condition(manifest)
    lines = [f"## {_text(state.sentence)}", ""]
    told = [*state.notes, *(f"{rule_state(f)}: {f.message}" for f in state.findings[:_MOST])]
    lines += [f"- {_text(line)}" for line in told] + ([""] if told else [])
    if manifest.metrics:
        lines += ["| metric | mean | interval | rows | not scored |", "|:--|--:|:--|--:|--:|"]
        lines += [_line(summary) for summary in manifest.metrics[:_MOST]] + [""]
    judge = " - ".join(filter(None, (manifest.judge.name, manifest.judge.note)))
    lines += [
        f"{count(manifest.source.rows)} rows, {count(manifest.source.quarantined)} quarantined. "
        f"Judge: {_text(judge)}.",
        "",
        _link(dashboard),
    ]
    return "\n".join(lines) + "\n"


def _line(summary: Summary) -> str:
    unscored = sum(rows for status, rows in summary.status.items() if status != "scored")
    cells = (
        _text(summary.metric),
        number(summary.mean),
        interval(summary.low, summary.high),
        count(summary.scored),
        count(unscored),
    )
    return f"| {' | '.join(cells)} |"


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
