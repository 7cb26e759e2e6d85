"""Short forms of results: a night for e-mail, and Markdown of a night, calibrations or a gate.

2026-11-19/summary.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from urllib.parse import quote

from markupsafe import Markup

from ragmetrics.dashboard.cards import Card, cards
from ragmetrics.dashboard.costs import money_text
from ragmetrics.dashboard.formatting import interval, number
from ragmetrics.dashboard.night_status import (
    LABELS,
    NightStatus,
    find_night_status,
    lowest_segments,
)
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.templating import render_page, web
from ragmetrics.errors import InputError
from ragmetrics.messages import (
    FORMATS,
    Block,
    Header,
    Note,
    Quote,
    Text,
    bullets,
    gate_report,
    links,
    table,
)
from ragmetrics.metrics import display_name
from ragmetrics.records import (
    Calibration,
    Drift,
    Gate,
    Manifest,
    MetricCalibration,
    Summary,
    across_change,
)
from ragmetrics.rules import known_silences, with_silences
from ragmetrics.storage import Files, Runs
from ragmetrics.text import NO_VALUE, clean, plural

SUMMARY = "summary.html"
_EARLIER = 60
"""Nights before, among which the newest comparable one is searched."""
_MOST_LOW, _MOST_LINES, _MOST_METRICS = 8, 20, 50
_ROOM = 20_000
"""Most characters of a list."""
_HEADERS = ("metric", "state", "mean", "change", "rows")
_LOW = ("where", "metric", "mean", "all rows", "rows")
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
    return summary_markdown(shown, link, _before(files, manifest))


def night_summary(files: Files, day: date) -> bytes:
    """The page of a stored night for e-mail. Raises InputError if the night is not there."""
    manifest = Runs(files).current(day)
    if manifest is None:
        known = Runs(files).outlines(last=1)
        newest = f"; the newest is {known[-1].date}" if known else ""
        raise InputError(f"{files.uri()}: there is no night {day}{newest}")
    last = Runs(files).in_full(Runs(files).outlines(last=1))
    hide = any(night.redacts for night in [manifest, *last])
    shown = redacted(with_silences(manifest, known_silences(files)), hide)
    return summary_page(shown, _before(files, manifest))


def summary_page(manifest: Manifest, earlier: Sequence[Manifest]) -> bytes:
    """A night on one page for e-mail; `earlier` are the nights before, oldest first.

    The page loads nothing, and its style is in its elements. It stays below 100 kB, because
    mail clients cut larger ones. It has links only if `dashboard_url` is set: a path leads nowhere
    from an inbox.
    """
    state = find_night_status(manifest)
    blocks = night_blocks(manifest, earlier, state, links_of(manifest))
    return render_page(
        SUMMARY,
        1,
        manifest=manifest,
        title=state.sentence,
        label=LABELS[state.state],
        colour=_COLOURS.get(state.state, _NEUTRAL),
        body=Markup(FORMATS.find("html").render(blocks)),  # noqa: S704 - escaped
    )


def summary_markdown(manifest: Manifest, dashboard: str, earlier: Sequence[Manifest] = ()) -> str:
    """State, findings, one table line per metric, and a link to the dashboard.

    `earlier` are the nights before, oldest first. They show how far a metric moved if no rule did.
    """
    state = find_night_status(manifest)
    blocks = night_blocks(manifest, earlier, state, {"dashboard": dashboard})
    return _markdown([Header(state.sentence), *blocks])


def calibration_markdown(
    calibrations: Sequence[Calibration], drifts: Sequence[Drift | None], dashboard: str
) -> str:
    """What drifted, one table line per judge, set and metric, and a link to the dashboard."""
    drifted = [drift for drift in drifts if drift and drift.drifted]
    lines = [
        _calibration_row(calibration, measured, drift)
        for calibration, drift in zip(calibrations, drifts, strict=True)
        for measured in calibration.metrics
    ]
    headers = ("set", "judge", "metric", "kappa, quadratic", "AUC", "units", "drift")
    return _markdown(
        [
            Header(f"{len(drifted)} of {len(calibrations)} calibrations show drift"),
            *bullets("", map(_drift_words, drifted), most=_MOST_LINES, room=_ROOM),
            *table("", headers, lines[:_MOST_METRICS], names=(0, 1, 2, 6)),
            *links([("dashboard", dashboard)]),
        ]
    )


def gate_markdown(gate: Gate, dashboard: str) -> str:
    """Verdict, reasons, one table line per metric, and a link to the dashboard."""
    return _markdown(gate_report(gate, "dashboard", dashboard))


def _markdown(blocks: Sequence[Block]) -> str:
    return f"{FORMATS.find('markdown').render(blocks)}\n"


def night_blocks(
    manifest: Manifest, earlier: Sequence[Manifest], state: NightStatus, places: Mapping[str, str]
) -> list[Block]:
    """What happened and why, the metrics, where they are lowest, and what the night is based on."""
    shown = cards(manifest, earlier)
    scored = any(metric.scored for metric in manifest.metrics)
    left = len(shown) - _MOST_METRICS
    low = lowest_segments(manifest)[:_MOST_LOW]
    if not scored:
        nothing = [Note("Nothing was scored, so this night has no numbers.")]
        numbers: list[Block] = [*nothing] if shown else []
    else:
        numbers = [
            *table("Metrics", _HEADERS, map(_card_row, shown[:_MOST_METRICS]), (0, 1, 3)),
            *([Note(f"and {plural(left, 'more metric')}")] if left > 0 else []),
            *table("Lowest segments", _LOW, map(_low_row, low), (0, 1)),
        ]
    return [*state.blocks, *links(places.items()), *numbers, Note(_based_on(manifest))]


def _before(files: Files, night: Manifest) -> list[Manifest]:
    return across_change(Runs(files).outlines(before=night.date, last=_EARLIER), night.bridge)


def _asked(manifest: Manifest) -> str:
    """What was asked and paid; empty if no judge was asked over a network."""
    usage = manifest.usage
    if not usage.requests and not usage.answered_from_store:
        return ""
    paid = money_text(usage, manifest.usage_by_metric)
    asked = f"{plural(usage.requests, 'request')}, {usage.answered_from_store:,} known already"
    return f"{asked}, {paid}" if paid else asked


def links_of(manifest: Manifest) -> dict[str, str]:
    """Addresses on the dashboard by what they show; none if it has no web address."""
    url = manifest.settings.get("dashboard_url")
    base = web(url).rstrip("/") if isinstance(url, str) else ""
    if not base:
        return {}
    base = quote(base, safe=":/?#[]@!$&'()*+,;=%~")
    night = f"{base}/{manifest.date}"
    rows = {"rows to look at first": f"{night}/rows.html"} if manifest.worst else {}
    return {"night": f"{night}/index.html", **rows, "overview": f"{base}/index.html"}


def _card_row(card: Card) -> tuple[Text, ...]:
    summary, change = card.summary, card.moved.words if card.moved else ""
    state = LABELS[card.state] if card.state else "no rule"
    missing = f", {card.not_scored:,} not scored" if card.not_scored else ""
    name, rows = clean(display_name(summary.metric), 80), f"{summary.scored:,}{missing}"
    return name, state, _mean(summary), change, rows


def _mean(one: Summary) -> str:
    return f"{number(one.mean)} {interval(one.low, one.high)}".rstrip()


def _low_row(pair: tuple[Summary, Summary]) -> tuple[Text, ...]:
    one, whole = pair
    names = Quote(clean(str(one.segment), 80)), clean(display_name(one.metric), 80)
    return *names, _mean(one), number(whole.mean), f"{one.scored:,}"


def _calibration_row(
    calibration: Calibration, measured: MetricCalibration, drift: Drift | None
) -> tuple[Text, ...]:
    figures = measured.overall.figures if measured.overall else {}
    found = [figures.get(name) for name in ("kappa_quadratic", "auc")]
    shown = [f"{number(f.value)} {interval(f.low, f.high, 2)}" if f else NO_VALUE for f in found]
    moves = [moved for moved in (drift.metrics if drift else ()) if moved.metric == measured.metric]
    state = moves[0].state if moves else "not compared"
    units = f"{measured.overall.units:,}" if measured.overall else "0"
    names = (
        clean(name, 80) for name in (calibration.name, calibration.judge.name, measured.metric)
    )
    return *names, *shown, units, state


def _drift_words(one: Drift) -> Text:
    drifted = ", ".join(metric.metric for metric in one.metrics if metric.drifted)
    return clean(f"{one.judge} drifted on {one.name} since {one.earlier:%Y-%m-%d}: {drifted}", 400)


def _based_on(manifest: Manifest) -> Text:
    """Rows, judge, cost and run."""
    judge, source, asked = manifest.judge, manifest.source, _asked(manifest)
    note = f" - {judge.note}" if judge.note else ""
    parts = [
        f"{plural(source.rows, 'row')} read, {source.quarantined:,} quarantined.",
        f"Judge: {clean(f'{judge.name}{note}', 600)}.",
        *([f"Asked: {asked}."] if asked else []),
        "In brackets: 95% intervals, clustered by question.",
        f"ragmetrics {clean(manifest.ragmetrics, 40)}, run {clean(manifest.run, 60)}.",
    ]
    return " ".join(parts)
