"""Short forms of results: a night for e-mail, and Markdown of a night, calibrations or a gate.

2026-11-19/summary.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from urllib.parse import quote

from markupsafe import Markup

from ragmetrics.dashboard.cards import cards
from ragmetrics.dashboard.costs import money_text
from ragmetrics.dashboard.formatting import plural
from ragmetrics.dashboard.night_status import LABELS, find_night_status, lowest_segments
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.templating import markdown_text, render_markdown, render_page, web
from ragmetrics.errors import InputError
from ragmetrics.records import Calibration, Drift, Gate, Manifest
from ragmetrics.rules import silences, with_silences
from ragmetrics.storage import Files, in_full, outlines, run_of

SUMMARY = "summary.html"
_EARLIER = 60
"""Nights before, among which the newest comparable one is searched."""
_MOST_LOW = 8
_COLOURS = {
    "firing": "#a6230f",
    "pending": "#7a4f00",
    "fell": "#7a4f00",
    "ok": "#0d6746",
    "no_data": "#5b4a80",
    "incomplete": "#5b4a80",
}
"""Background colours of white letters, the same in light and dark mail clients."""
_NEUTRAL = "#474c54"


def night_markdown(files: Files, manifest: Manifest, link: str) -> str:
    """The summary of a run as Markdown, with a link to its page."""
    shown = redacted(manifest, manifest.redacts)
    return summary_markdown(shown, link, _before(files, manifest.date))


def night_summary(files: Files, day: date) -> bytes:
    """The page of a stored night for e-mail. Raises InputError if the night is not there."""
    found = run_of(files, day)
    if found is None:
        known = outlines(files, last=1)
        newest = f"; the newest is {known[-1].date}" if known else ""
        raise InputError(f"{files.uri()}: there is no night {day}{newest}")
    last = in_full(files, outlines(files, last=1))
    hide = any(one.redacts for one in [found, *last])
    shown = redacted(with_silences(found, silences(files)), hide)
    return summary_page(shown, _before(files, day))


def summary_page(manifest: Manifest, earlier: Sequence[Manifest]) -> bytes:
    """A night on one page for e-mail; `earlier` are the nights before, oldest first.

    The page loads nothing, and its style is in its elements. It stays below 100 kB, because
    mail clients cut larger ones. It has links only if `dashboard_url` is set: a path leads nowhere
    from an inbox.
    """
    state = find_night_status(manifest)
    return render_page(
        SUMMARY,
        1,
        manifest=manifest,
        title=state.sentence,
        label=LABELS[state.state],
        colour=_COLOURS.get(state.state, _NEUTRAL),
        messages=[*state.messages, *state.notes],
        cards=cards(manifest, earlier),
        low=lowest_segments(manifest)[:_MOST_LOW],
        asked=_asked(manifest),
        links=_links(manifest),
    )


def summary_markdown(manifest: Manifest, dashboard: str, earlier: Sequence[Manifest] = ()) -> str:
    """State, findings, one table line per metric, and a link to the dashboard.

    `earlier` are the nights before, oldest first. They show how far a metric moved if no rule did.
    """
    state = find_night_status(manifest)
    return render_markdown(
        "night.md",
        manifest=manifest,
        title=state.sentence,
        messages=[*state.messages, *state.notes],
        cards=cards(manifest, earlier),
        link=_link(dashboard),
    )


def calibration_markdown(
    found: Sequence[Calibration], drifts: Sequence[Drift | None], dashboard: str
) -> str:
    """What drifted, one table line per judge, set and metric, and a link to the dashboard."""
    lines = [
        (one, measured, drift)
        for one, drift in zip(found, drifts, strict=True)
        for measured in one.metrics
    ]
    drifted = [drift for drift in drifts if drift and drift.drifted]
    link = _link(dashboard)
    return render_markdown(
        "calibrations.md", calibrations=len(found), drifted=drifted, lines=lines, link=link
    )


def gate_markdown(gate: Gate, dashboard: str) -> str:
    """Verdict, reasons, one table line per metric, and a link to the dashboard."""
    return render_markdown("gate.md", gate=gate, link=_link(dashboard))


def _before(files: Files, day: date) -> list[Manifest]:
    return outlines(files, before=day, last=_EARLIER)


def _asked(manifest: Manifest) -> str:
    """What was asked and paid; empty if no judge was asked over a network."""
    usage = manifest.usage
    if not usage.requests and not usage.answered_from_store:
        return ""
    paid = money_text(usage, manifest.usage_by_metric)
    asked = f"{plural(usage.requests, 'request')}, {usage.answered_from_store:,} known already"
    return f"{asked}, {paid}" if paid else asked


def _links(manifest: Manifest) -> dict[str, str]:
    """Addresses on the dashboard by the words of their links; none if it has no web address."""
    url = manifest.settings.get("dashboard_url")
    base = web(url).rstrip("/") if isinstance(url, str) else ""
    if not base:
        return {}
    base = quote(base, safe=":/?#[]@!$&'()*+,;=%~")
    night = f"{base}/{manifest.date}"
    rows = {"Rows to look at first": f"{night}/rows.html"} if manifest.worst else {}
    return {"The night": f"{night}/index.html", **rows, "All nights": f"{base}/index.html"}


def _link(dashboard: str) -> Markup:
    """A Markdown link if a browser can follow the address, else the address as text."""
    if re.match(r"(https?|file)://", dashboard):
        target = re.sub(r"[<>\s\\]", lambda sign: f"%{ord(sign[0]):02X}", dashboard)
        return Markup(f"[Open the dashboard](<{target}>)")  # noqa: S704 - no sign ends the link
    return Markup(f"Dashboard: {markdown_text(dashboard)}")  # noqa: S704 - escaped
