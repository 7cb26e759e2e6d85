"""Transitions become one Slack message in Block Kit.

Text of users (questions, tags, ids, paths) passes through `escape`, after which nothing of it
can act as markup. Slack's limits on blocks hold by construction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ragmetrics.alerts.alert_store import Message
from ragmetrics.alerts.formats.slack_blocks import (
    Block,
    bullets,
    context,
    links,
    mrkdwn,
    plain,
    section,
)
from ragmetrics.alerts.incident_grouping import Incident, incidents, limit_of
from ragmetrics.model import (
    Finding,
    Manifest,
    SampledMean,
    WorstRow,
    compared_words,
    drop_words,
    mix_text,
    redact_quotes,
    redactions,
    unwatched_drop_story,
)
from ragmetrics.scoring import worse_segments
from ragmetrics.text import clean, escape

SEGMENTS = 3
"""Of a metric: from so many on they share a line, which names so many."""
SHOWN = 4
"""Fired incidents shown with all their numbers; Slack rejects messages beyond about 12,000
characters, whatever its limits per block."""
_LOUD = ("fired", "escalated")
"""Transitions that are shown with all their numbers."""

MOST_FIELDS = 10
"""Of a section, by Slack's limit."""


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
    `redact` shows row ids in place of questions, and nothing of what a judge said.
    """
    hidden = redactions(manifest.source, manifest.problems) if redact else {}
    found = incidents([_redacted(one, hidden) for one in findings if _is_news(one)], manifest)
    fired = sorted((one for one in found if one.transition in _LOUD), key=_loudest_first)
    reminded = [one for one in found if one.transition == "reminded"]
    resolved = [one for one in found if one.transition == "resolved"]
    if not (fired or reminded or resolved):
        return None
    firing = [one for one in found if one.state == "firing" and one.transition not in _LOUD]
    snoozed = [one for one in firing if one.cause.silence and one.cause.silence.until]
    still = sorted((one for one in firing if one not in snoozed), key=_loudest_first)
    told = (one.cause for one in fired + reminded if one.cause.kind == "metric")
    metrics = {f.metric: None for f in told if f.metric and f.level != "no_data"}
    title = _title(fired, reminded, resolved)
    first = fired[0].cause if len(fired) == 1 else None
    numbers = f": {_change(first)}" if first and first.mean is not None else ""
    night = f" ({manifest.dataset}, night of {manifest.date})"
    blocks = [
        {"type": "header", "text": plain(title)},
        context(_night(manifest)),
        *(_section(one, manifest, titled=len(fired) > 1) for one in fired[:SHOWN]),
        *bullets("Fired too", _lines(fired[SHOWN:]), dashboard),
        *bullets("Still firing", _lines(still), dashboard),
        *bullets("Snoozed", map(_snoozed, snoozed), dashboard),
        *bullets("Back to normal", _lines(_over(resolved, judged=True)), dashboard),
        *bullets("Closed", _lines(_over(resolved, judged=False)), dashboard),
        *bullets(
            "Worse, and no rule alerts",
            (escape(unwatched_drop_story(f), 250) for f in manifest.falls),
        ),
        *bullets("Worst segments", _segments(manifest, list(metrics))),
        *bullets("Worst rows" if redact else "Worst questions", _worst(manifest, metrics, redact)),
        *links({"dashboard": dashboard, "run": run_url}),
        context(_judge(manifest)),
    ]
    return Message(text=escape(title + numbers + night, 300), blocks=blocks)


def _redacted(finding: Finding, hidden: Mapping[str, str]) -> Finding:
    """The finding without the words of endpoints, which may repeat what they were asked."""
    return finding.model_copy(update={"message": redact_quotes(finding.message, hidden)})


def _is_news(finding: Finding) -> bool:
    return finding.transition is not None or finding.state == "firing"


def _over(resolved: Sequence[Incident], *, judged: bool) -> list[Incident]:
    return [one for one in resolved if (one.cause.level == "ok") == judged]


def _loudest_first(incident: Incident) -> tuple[bool, bool, bool, float]:
    """Critical ones before warnings, the whole before segments, what explains metrics before them;
    then by how far they are beyond their limit.
    """
    finding = incident.cause
    limit = finding.limit or 0.0
    within = math.inf if finding.mean is None else finding.mean - limit
    within = within if finding.drop is None else limit - finding.drop
    kinds = finding.segment is not None, finding.kind == "metric"
    return incident.severity != "critical", *kinds, within


def _title(
    fired: Sequence[Incident], reminded: Sequence[Incident], resolved: Sequence[Incident]
) -> str:
    if fired:
        sign = {"critical": "🔴 Critical", "warning": "🟡 Warning"}[fired[0].severity]
    else:
        sign = "🔔 Reminder" if reminded else "🟢 Resolved"
    groups: dict[str, list[Incident]] = {}
    for one in fired or reminded or resolved:
        groups.setdefault(_what(one), []).append(one)
    whats = [
        _where(what, group)
        for what, group in groups.items()
        if f"{what.removesuffix(' is low')} fell" not in groups  # says it of the same metric
    ]
    more = f" and {len(whats) - 2} more" if len(whats) > 2 else ""
    return clean(f"{sign}: {', '.join(whats[:2])}{more}", 150)


def _what(incident: Incident) -> str:
    """What happened, in two or three words."""
    finding = incident.cause
    metric = finding.metric or "rows"
    more = "more " if finding.transition == "escalated" else ""
    if finding.kind == "quarantine":
        return f"{more}rows in quarantine"
    if finding.kind == "judge_failures":
        several = f"{incident.metrics} metrics" if incident.metrics > 1 else finding.metric
        return f"{more}judge failures in {several or 'the panel'}"
    if finding.kind == "judge_drift":
        return "judge drift"
    if finding.kind == "stale_labels":
        return "labels gone stale"
    if finding.kind == "no_data":
        return "broken logs" if finding.level == "breach" else "no data"
    if finding.state != "firing":
        return metric
    if finding.level == "no_data":
        return f"no data for {metric}"
    if finding.transition == "escalated" and finding.escalation:
        return f"{metric} fell further"
    return f"{metric} {'is low' if finding.baseline is None else 'fell'}"


def _where(what: str, group: Sequence[Incident]) -> str:
    if any(one.cause.segment is None for one in group):
        return what
    return f"{what} in {'a segment' if len(group) == 1 else f'{len(group)} segments'}"


def _change(finding: Finding) -> str:
    """The night's mean, and the drop, which may be of the questions of both sides alone; of an
    escalation, the means then and now.
    """
    if finding.transition == "escalated" and (found := finding.escalation):
        return f"{found.before:z.3f} → {found.now:z.3f}"
    drop = _drop(finding)
    return f"{finding.mean:z.3f}" + (f", drop {drop.split(' [')[0]}" if drop else "")


def _section(incident: Incident, manifest: Manifest, *, titled: bool) -> Block:
    """One fired incident with all its numbers, or in words where it has none: what rules on the
    same rows have in common stands once.

    It needs no title where the message has no other.
    """
    finding = incident.cause
    segment = f" in {escape(str(finding.segment), 80)}" if finding.segment else ""
    title = f"*{escape(_what(incident), 80)}*{segment}\n" if titled or segment else ""
    if finding.mean is None or finding.level == "no_data":
        since = f"\nSince {finding.since}" if finding.since else ""
        folded = [escape(_capital(incident.folded), 300)] if incident.folded else []
        told = f"{title}{escape(incident.message, 400) or '–'}"
        return section("\n".join([told, *_escalated(incident), *folded]) + since)
    rules = (finding, *incident.alike)
    alone = sum(one.drop is not None for one in rules) == 1
    rows = _rows(finding.n, _sample(manifest, finding))
    whose = "its" if finding.segment else "all"
    fields = {
        f"Mean of {whose} rows": f"{finding.mean:z.3f}{_interval(finding)}",
        "Scored": f"{rows}, {finding.questions:,} questions",
        **dict(pair for one in rules for pair in _compared(one, alone=alone)),
        "Mix": next(filter(None, map(_mix, rules)), ""),
        "Since": str(min((one.since for one in rules if one.since), default="")),
        "Level": str(finding.change or ""),
        "Carried by": "\n".join(escape(str(one), 120) for one in finding.carriers or ()),
    }
    shown = [mrkdwn(f"*{label}*\n{value}") for label, value in fields.items() if value]
    also = "".join(f"; {escape(limit_of(one), 100)}" for one in incident.alike)
    plural = "Rules" if incident.alike else "Rule"
    words = [f"{title}{plural}: {escape(finding.rule, 200)}{also}", *_escalated(incident)]
    return {**section("\n".join(words)), "fields": shown[:MOST_FIELDS]}


def _escalated(incident: Incident) -> list[str]:
    """Of an escalation, how much worse it is than people were told, and that a silence ended."""
    found = next((one for one in incident.findings if one.transition == "escalated"), None)
    if found is None:
        return []
    told = f"Got {escape(str(found.escalation), 300)}" if found.escalation else ""
    ended = f"No longer {escape(str(found.ended), 200)}" if found.ended else ""
    return [one for one in (told, ended) if one]


def _compared(finding: Finding, *, alone: bool) -> list[tuple[str, str]]:
    """What a drop rule held against what: both means over the questions compared, and the drop."""
    if finding.drop is None:
        return []
    label = escape(finding.baseline_label or "", 60)
    against = "" if alone or not label else f" against {label}"
    before = _before(finding, label if alone else "")
    return [(f"Compared{against}", before), (f"Drop{against}", _drop(finding))]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _interval(finding: Finding) -> str:
    if finding.low is None or finding.high is None:
        return ""
    return f" [{finding.low:z.3f}, {finding.high:z.3f}]"


def _sample(manifest: Manifest, finding: Finding) -> SampledMean | None:
    which = finding.metric, finding.segment
    summaries = (*manifest.metrics, *manifest.segments)
    return next((one.sample for one in summaries if (one.metric, one.segment) == which), None)


def _rows(scored: int, sample: SampledMean | None) -> str:
    """`1,240 rows`, or that the mean is an estimate by those that were judged."""
    if sample is None or sample.rows == scored:
        return f"{scored:,} rows"
    return f"estimated from {scored:,}{f' of {sample.rows:,}' if sample.rows else ''} rows"


def _before(finding: Finding, label: str) -> str:
    """`0.851 → 0.720 over the same 138 questions`; of an older night the mean before, of all."""
    after = f" ({label})" if label else ""
    if words := compared_words(finding.means):
        return f"{words}{after}"
    return "" if finding.baseline is None else f"{finding.baseline:z.3f} before{after}"


def _drop(finding: Finding) -> str:
    if finding.drop is None:
        return ""
    return " ".join(drop_words(finding.drop, finding.drop_low, finding.drop_high)).rstrip()


def _mix(finding: Finding) -> str:
    """What of the move of the mean is another mix of tags, which the drop is without."""
    if finding.drop is None or finding.mix is None:
        return ""
    return escape(mix_text(finding.drop + finding.mix, finding.mix, finding.mix_tags), 200)


def _lines(found: Sequence[Incident]) -> list[str]:
    """A line each, in their order; one for several segments of a metric with which the same is."""
    groups: dict[tuple[str, str], list[Incident]] = {}
    for one in found:
        apart = str(one.cause.silence or "") if one.cause.segment else one.cause.key
        groups.setdefault((_what(one), apart), []).append(one)
    return [line for group in groups.values() for line in _of_group(group)]


def _of_group(group: Sequence[Incident]) -> list[str]:
    if len(group) < SEGMENTS:
        return [_line(one) for one in group]
    causes = [one.cause for one in group]
    named = [
        escape(str(one.segment), 60) + ("" if one.mean is None else f" {_change(one)}")
        for one in causes[:SEGMENTS]
    ]
    more = f" and {len(group) - SEGMENTS} more" if len(group) > SEGMENTS else ""
    silence = f", {escape(str(causes[0].silence), 200)}" if causes[0].silence else ""
    what = f"{escape(_what(group[0]), 80)} in {len(group)} segments"
    return [f"{what}: {'; '.join(named)}{more}{silence}"]


def _line(incident: Incident) -> str:
    finding = incident.cause
    was = "was firing since" if finding.transition == "resolved" else "firing since"
    since = f", {was} {finding.since}" if finding.since else ""
    silence = f", {escape(str(finding.silence), 200)}" if finding.silence else ""
    folded = f"; {escape(incident.folded, 200)}" if incident.folded else ""
    longest = 500 if finding.transition == "reminded" else 250
    return escape(incident.message, longest) + since + silence + folded


def _snoozed(incident: Incident) -> str:
    finding = incident.cause
    segment = f" in {escape(str(finding.segment), 80)}" if finding.segment else ""
    return f"{escape(_what(incident), 80)}{segment}, {escape(str(finding.silence), 200)}"


def _night(manifest: Manifest) -> str:
    source = manifest.source
    builds = sorted(source.index_builds.items(), key=lambda build: -build[1])
    one = len(builds) == 1 and builds[0][1] == source.rows
    named = [escape(name, 60) + ("" if one else f" ({rows:,} rows)") for name, rows in builds[:3]]
    more = f" and {len(builds) - 3} more" if len(builds) > 3 else ""
    return ", ".join(
        [
            f"{escape(manifest.dataset, 80)}, night of {manifest.date}",
            f"{source.rows:,} rows",
            *([f"{source.quarantined:,} in quarantine"] if source.quarantined else []),
            *([f"index build {', '.join(named)}{more}"] if named else []),
        ]
    )


def _judge(manifest: Manifest) -> str:
    note = f" ({escape(manifest.judge.note, 400)})" if manifest.judge.note else ""
    budget = manifest.budget
    sampled = budget and (budget.share < 1 or budget.rows_over)
    over = f"; over budget: {budget.rows_over:,} rows" if budget and sampled else ""
    return f"Judge: {escape(manifest.judge.name, 80)}{note}{over}{_sampled(manifest)}"


def _sampled(manifest: Manifest) -> str:
    """Of a night on which not all rows were judged, that its means are estimates."""
    sample, rows = manifest.sample, manifest.source.rows
    if sample is None or sample.judged >= rows:
        return ""
    return f"; means of all rows estimated from a sample: {sample.judged:,} of {rows:,} rows judged"


def _segments(manifest: Manifest, metrics: Sequence[str]) -> list[str]:
    """The segments that are significantly worse than all rows, the furthest of each metric."""
    lines = []
    worse = worse_segments(manifest)
    for metric in metrics[:3]:
        whole = manifest.summary(metric)
        if whole is None or whole.mean is None:
            continue
        mean = whole.mean
        lowest = [one for one in worse if one.metric == metric]
        for one in sorted(lowest, key=lambda one: one.loss(mean), reverse=True)[:3]:
            which = "" if len(metrics) == 1 else f"{escape(metric, 60)}, "
            rows = _rows(one.scored, one.sample)
            where = f"{which}{escape(str(one.segment), 80)}"
            lines.append(f"{where}: {one.mean:z.3f} ({rows}; all rows {mean:z.3f})")
    return lines


def _worst(manifest: Manifest, metrics: Collection[str], redact: bool) -> list[str]:
    lower = {one.metric for one in manifest.metrics if not one.higher_is_better}
    rows = [row for row in manifest.worst if row.metric in metrics]
    rows.sort(key=lambda row: 1 - row.value if row.metric in lower else row.value)
    once: dict[str, WorstRow] = {}
    for row in rows:
        once.setdefault(row.id, row)
    lines = []
    for row in list(once.values())[:3]:
        which = "" if len(metrics) == 1 else f"{escape(row.metric, 60)} "
        question = "" if redact else f"“{escape(row.user_input, 150)}” "
        lines.append(f"{row.value:z.3f} {which}{question}({escape(row.id, 60)})")
    return lines
