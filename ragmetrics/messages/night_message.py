"""Composes the message of a night's transitions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ragmetrics.messages.blocks import Block, Header, Note, bullets, links
from ragmetrics.messages.display_names import in_display_names, in_unit
from ragmetrics.messages.gate_result import lost_passage_lines
from ragmetrics.messages.incident_section import (
    change_text,
    incident_block,
    mean_beside,
    what_happened,
)
from ragmetrics.messages.message import Message
from ragmetrics.messages.story import back_to_normal, is_measured, night_story
from ragmetrics.metrics import display_name, unit_of
from ragmetrics.records import (
    Finding,
    Manifest,
    WorstRow,
    build_words,
    redact_quotes,
    redactions,
)
from ragmetrics.rules import Incident, incidents
from ragmetrics.text import clean

SEGMENTS = 3
"""From this number on, segments of a metric share one line, which names this number of them."""
SHOWN = 4
"""Fired incidents shown with all their numbers."""
_DETAILED = ("fired", "escalated")
"""Transitions that are shown with all their numbers."""


def compose(
    manifest: Manifest,
    findings: Sequence[Finding],
    *,
    dashboard: str | None,
    redact: bool,
    run_url: str | None = None,
) -> Message | None:
    """The message of a night; None when no finding has a transition.

    `dashboard` and `run_url` become buttons where a browser can open them, else text.
    `redact` shows row ids in place of questions, and no text of a judge.
    """
    hidden = redactions(manifest.source, manifest.quoting) if redact else {}
    news = [finding for finding in findings if _is_news(finding)]
    news = [_redacted(finding, hidden) for finding in news] if hidden else news
    news_incidents = incidents(news, manifest)
    fired = _by_importance(news_incidents, *_DETAILED)
    reminded = [one for one in news_incidents if one.transition == "reminded"]
    resolved = [one for one in news_incidents if one.transition == "resolved"]
    if not (fired or reminded or resolved):
        return None
    title = _title(fired, reminded, resolved)
    if manifest.late:
        title = f"Late night of {manifest.date}: {title}"
    first = fired[0].cause if len(fired) == 1 and fired[0].cause.mean is not None else None
    numbers = f": {change_text(first)}{mean_beside(first)}" if first else ""
    night = f" ({manifest.dataset}, night of {manifest.date})"
    blocks: list[Block] = [
        Header(title),
        Note(_night(manifest)),
        *bullets("Damaged files", (clean(problem, 300) for problem in manifest.damaged)),
        *night_story(manifest, [one for one in fired if is_measured(one.cause)]).blocks,
        *(incident_block(incident, manifest, titled=len(fired) > 1) for incident in fired[:SHOWN]),
        *_lists(manifest, news_incidents, dashboard=dashboard, redact=redact),
        *links([("dashboard", dashboard), ("run", run_url)]),
        Note(_judge(manifest)),
    ]
    return Message(text=clean(title + numbers + night, 300), blocks=blocks)


def _lists(
    manifest: Manifest, told: Sequence[Incident], *, dashboard: str | None, redact: bool
) -> list[Block]:
    """The lists of a message: what was lost, what else fires or has ended, where it is worst."""
    fired = _by_importance(told, *_DETAILED)
    firing = [one for one in told if one.state == "firing" and one.transition not in _DETAILED]
    snoozed = [one for one in firing if one.cause.silence and one.cause.silence.until]
    still = sorted((one for one in firing if one not in snoozed), key=_most_important_first)
    resolved = [one for one in told if one.transition == "resolved"]
    alerted = (*fired, *(one for one in told if one.transition == "reminded"))
    causes = (incident.cause for incident in alerted if incident.cause.is_rule)
    metrics = {f.metric: None for f in causes if f.metric and f.level != "no_data"}
    lost, worst = manifest.lost_passages, _worst(manifest, metrics)
    return [
        *bullets("Lost passages", lost_passage_lines(lost, redact=redact)[1:] if lost else ()),
        *bullets("Also fired", _lines(fired[SHOWN:], manifest), dashboard),
        *bullets("Still firing", _lines(still, manifest), dashboard),
        *bullets("Snoozed", map(_snoozed, snoozed), dashboard),
        *bullets("Back to normal", _lines(_over(resolved, judged=True), manifest), dashboard),
        *bullets("Closed", _lines(_over(resolved, judged=False), manifest), dashboard),
        *bullets(
            "Worst rows" if redact else "Worst questions",
            [_worst_line(row, metrics, redact) for row in worst],
        ),
        *links((f"trace of {clean(row.id, 40)}", row.trace_url) for row in worst),
    ]


def _by_importance(found: Sequence[Incident], *transitions: str) -> list[Incident]:
    """The incidents with some transitions, the most important first."""
    return sorted(
        (one for one in found if one.transition in transitions), key=_most_important_first
    )


def _redacted(finding: Finding, hidden: Mapping[str, str]) -> Finding:
    """The finding without the words of endpoints, which may repeat the request."""
    return finding.model_copy(update={"message": redact_quotes(finding.message, hidden)})


def _is_news(finding: Finding) -> bool:
    return finding.transition is not None or finding.state == "firing"


def _over(resolved: Sequence[Incident], *, judged: bool) -> list[Incident]:
    return [one for one in resolved if (one.cause.level == "ok") == judged]


def _most_important_first(incident: Incident) -> tuple[bool, bool, bool, float]:
    """Sort key: critical before warning, all rows before segments, causes before metrics, then by
    the distance beyond the limit.
    """
    finding = incident.cause
    limit = finding.limit or 0.0
    within = math.inf if finding.mean is None else finding.mean - limit
    within = within if finding.drop is None else limit - finding.drop
    kinds = finding.segment is not None, finding.is_rule
    return incident.severity != "critical", *kinds, within


def _title(
    fired: Sequence[Incident], reminded: Sequence[Incident], resolved: Sequence[Incident]
) -> str:
    if fired:
        sign = {"critical": "🔴 Critical", "warning": "🟡 Warning"}[fired[0].severity]
    else:
        sign = "🔔 Reminder" if reminded else "🟢 Resolved"
    groups: dict[str, list[Incident]] = {}
    for incident in fired or reminded or resolved:
        groups.setdefault(what_happened(incident), []).append(incident)
    whats = [
        _where(what, group)
        for what, group in groups.items()
        if f"{what.removesuffix(' is low')} fell" not in groups  # one entry per metric is enough
    ]
    more = f" and {len(whats) - 2} more" if len(whats) > 2 else ""
    return clean(f"{sign}: {', '.join(whats[:2])}{more}", 150)


def _where(what: str, group: Sequence[Incident]) -> str:
    if any(one.cause.segment is None for one in group):
        return what
    return f"{what} in {'a segment' if len(group) == 1 else f'{len(group)} segments'}"


def _lines(found: Sequence[Incident], manifest: Manifest) -> list[str]:
    """One line per incident, in order; segments of a metric with the same event share one."""
    groups: dict[tuple[str, str], list[Incident]] = {}
    for incident in found:
        apart = str(incident.cause.silence or "") if incident.cause.segment else incident.cause.key
        groups.setdefault((what_happened(incident), apart), []).append(incident)
    return [line for group in groups.values() for line in _of_group(group, manifest)]


def _of_group(group: Sequence[Incident], manifest: Manifest) -> list[str]:
    if len(group) < SEGMENTS:
        return [_line(one, manifest) for one in group]
    causes = [one.cause for one in group]
    named = [
        clean(str(cause.segment), 60) + ("" if cause.mean is None else f" {change_text(cause)}")
        for cause in causes[:SEGMENTS]
    ]
    more = f" and {len(group) - SEGMENTS} more" if len(group) > SEGMENTS else ""
    silence = f", {clean(str(causes[0].silence), 200)}" if causes[0].silence else ""
    what = f"{clean(what_happened(group[0]), 80)} in {len(group)} segments"
    return [f"{what}: {'; '.join(named)}{more}{silence}"]


def _line(incident: Incident, manifest: Manifest) -> str:
    finding = incident.cause
    if back := back_to_normal(finding):
        return back
    was = "was firing since" if finding.transition == "resolved" else "firing since"
    new = (finding.transition, finding.since) == ("fired", manifest.date)
    since = f", {was} {finding.since}" if finding.since and not new else ""
    silence = f", {clean(str(finding.silence), 200)}" if finding.silence else ""
    folded = (
        f"; {clean(in_display_names(incident.folded, manifest), 200)}" if incident.folded else ""
    )
    longest = 500 if finding.transition == "reminded" else 250
    return clean(in_display_names(incident.message, manifest), longest) + since + silence + folded


def _snoozed(incident: Incident) -> str:
    finding = incident.cause
    segment = f" in {clean(str(finding.segment), 80)}" if finding.segment else ""
    return f"{clean(what_happened(incident), 80)}{segment}, {clean(str(finding.silence), 200)}"


def _night(manifest: Manifest) -> str:
    source = manifest.source
    builds = sorted(source.index_builds.items(), key=lambda build: -build[1])
    one = len(builds) == 1 and builds[0][1] == source.rows
    named = [clean(name, 60) + ("" if one else f" ({rows:,} rows)") for name, rows in builds[:3]]
    more = f" and {len(builds) - 3} more" if len(builds) > 3 else ""
    return ", ".join(
        [
            f"{clean(manifest.dataset, 80)}, night of {manifest.date}",
            f"{source.rows:,} rows",
            *([f"{source.quarantined:,} quarantined"] if source.quarantined else []),
            *([f"index {build_words(', '.join(named))}{more}"] if named else []),
        ]
    )


def _judge(manifest: Manifest) -> str:
    note = f" ({clean(manifest.judge.note, 400)})" if manifest.judge.note else ""
    budget = manifest.budget
    sampled = budget and (budget.share < 1 or budget.rows_over)
    over = f"; over budget: {budget.rows_over:,} rows" if budget and sampled else ""
    return f"Judge: {clean(manifest.judge.title, 200)}{note}{over}{_sampled(manifest)}"


def _sampled(manifest: Manifest) -> str:
    """A note that the means are estimates, where not all rows were judged."""
    sample, rows = manifest.sample, manifest.source.rows
    if sample is None or sample.judged >= rows:
        return ""
    return f"; means of all rows estimated from a sample: {sample.judged:,} of {rows:,} rows judged"


def _worst(manifest: Manifest, metrics: Collection[str]) -> list[WorstRow]:
    """The worst rows of the metrics, each once. Values of different units do not compare: those
    that are no plain share come last.
    """
    lower = {summary.metric for summary in manifest.metrics if not summary.higher_is_better}
    rows = [row for row in manifest.worst if row.metric in metrics]
    rows.sort(
        key=lambda row: (
            unit_of(row.metric) not in ("", "%"),
            1 - row.value if row.metric in lower else row.value,
        )
    )
    once: dict[str, WorstRow] = {}
    for row in rows:
        once.setdefault(row.id, row)
    return list(once.values())[:3]


def _worst_line(row: WorstRow, metrics: Collection[str], redact: bool) -> str:
    which = "" if len(metrics) == 1 else f"{clean(display_name(row.metric), 60)} "
    question = "" if redact else f"“{clean(row.user_input, 150)}” "
    return f"{in_unit(row.value, row.metric)} {which}{question}({clean(row.id, 60)})"
