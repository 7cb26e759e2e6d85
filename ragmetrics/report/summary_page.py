"""A night on one page that can be sent as an e-mail: style in its elements, nothing fetched.

2026-11-19/summary.html
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from ragmetrics.model import Manifest
from ragmetrics.report.costs import money_text
from ragmetrics.report.formatting import brief, plain, plural
from ragmetrics.report.night_status import LABELS, find_night_status
from ragmetrics.report.summary_lines import headline, lowest_segments
from ragmetrics.report.templating import render_page, web

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
