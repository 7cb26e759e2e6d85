"""Composes the message of a night's transitions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ragmetrics.messages.blocks import Block, Header, Note, Section, bullets, links
from ragmetrics.messages.gate_result import lost_passage_lines
from ragmetrics.messages.message import Message
from ragmetrics.records import (
    Finding,
    Manifest,
    SampledMean,
    WorstRow,
    compared_words,
    fallen_topic_text,
    mix_text,
    redact_quotes,
    redactions,
    unwatched_drop_story,
)
from ragmetrics.rules import Incident, check_of, incidents, limit_of
from ragmetrics.scoring import worse_segments
from ragmetrics.text import clean, drop_words, interval, number

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
    found = incidents([_redacted(one, hidden) for one in findings if _is_news(one)], manifest)
    fired = sorted((one for one in found if one.transition in _DETAILED), key=_most_important_first)
    reminded = [one for one in found if one.transition == "reminded"]
    resolved = [one for one in found if one.transition == "resolved"]
    if not (fired or reminded or resolved):
        return None
    firing = [one for one in found if one.state == "firing" and one.transition not in _DETAILED]
    snoozed = [one for one in firing if one.cause.silence and one.cause.silence.until]
    still = sorted((one for one in firing if one not in snoozed), key=_most_important_first)
    causes = (one.cause for one in fired + reminded if one.cause.is_rule)
    metrics = {f.metric: None for f in causes if f.metric and f.level != "no_data"}
    title = _title(fired, reminded, resolved)
    if manifest.late:
        title = f"Late night of {manifest.date}: {title}"
    first = fired[0].cause if len(fired) == 1 else None
    numbers = ""
    if first and first.mean is not None:
        numbers = f": {_change(first)}{_mean_beside(first)}"
    night = f" ({manifest.dataset}, night of {manifest.date})"
    lost = manifest.lost_passages
    blocks: list[Block] = [
        Header(title),
        Note(_night(manifest)),
        *bullets("Damaged files", (clean(one, 300) for one in manifest.damaged)),
        *(_section(one, manifest, titled=len(fired) > 1) for one in fired[:SHOWN]),
        *bullets("Lost passages", lost_passage_lines(lost, redact=redact) if lost else ()),
        *bullets("Topics that fell", _topics(manifest)),
        *bullets("Also fired", _lines(fired[SHOWN:]), dashboard),
        *bullets("Still firing", _lines(still), dashboard),
        *bullets("Snoozed", map(_snoozed, snoozed), dashboard),
        *bullets("Back to normal", _lines(_over(resolved, judged=True)), dashboard),
        *bullets("Closed", _lines(_over(resolved, judged=False)), dashboard),
        *bullets(
            "Significantly worse, without an alert",
            (clean(unwatched_drop_story(f), 250) for f in manifest.falls),
        ),
        *bullets("Worst segments", _segments(manifest, list(metrics))),
        *bullets("Worst rows" if redact else "Worst questions", _worst(manifest, metrics, redact)),
        *links([("dashboard", dashboard), ("run", run_url)]),
        Note(_judge(manifest)),
    ]
    return Message(text=clean(title + numbers + night, 300), blocks=blocks)


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
        groups.setdefault(_what(incident), []).append(incident)
    whats = [
        _where(what, group)
        for what, group in groups.items()
        if f"{what.removesuffix(' is low')} fell" not in groups  # one entry per metric is enough
    ]
    more = f" and {len(whats) - 2} more" if len(whats) > 2 else ""
    return clean(f"{sign}: {', '.join(whats[:2])}{more}", 150)


def _what(incident: Incident) -> str:
    """What happened, in a few words."""
    finding = incident.cause
    metric = finding.metric or "rows"
    if not finding.is_rule:
        return check_of(finding).title_of(finding, incident.metrics)
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
    """Both means of the compared questions; without a comparison, the mean of all rows.

    For an escalation, the means at the last notification and now.
    """
    if finding.transition == "escalated" and (found := finding.escalation):
        return f"{number(found.before)} → {number(found.now)}"
    if finding.drop is not None and finding.means:
        return compared_words(finding.means)
    return number(finding.mean)


def _mean_beside(finding: Finding) -> str:
    """The mean of all rows, after compared means that differ from it."""
    if finding.transition == "escalated" or finding.drop is None or not finding.means:
        return ""
    mean = number(finding.mean)
    if mean == number(finding.means.now):
        return ""
    return f"; mean of {'its' if finding.segment else 'all'} rows {mean}"


def _section(incident: Incident, manifest: Manifest, *, titled: bool) -> Section:
    """One fired incident with all its numbers, or in words where it has none. Common numbers of
    rules on the same rows are shown once.

    `titled` adds a title, which a message with a single incident does not need.
    """
    finding = incident.cause
    segment = f"in {clean(str(finding.segment), 80)}" if finding.segment else ""
    title = clean(_what(incident), 80) if titled or segment else ""
    if finding.mean is None or finding.level == "no_data":
        folded = [clean(_capital(incident.folded), 300)] if incident.folded else []
        since = [f"Since {finding.since}"] if finding.since else []
        lines = [clean(incident.message, 400) or "–", *_escalated(incident), *folded, *since]
        return Section(title, segment, tuple(lines))
    rules = (finding, *incident.alike)
    alone = sum(one.drop is not None for one in rules) == 1
    rows = _rows(finding.n, _sample(manifest, finding))
    whose = "its" if finding.segment else "all"
    ends = interval(finding.low, finding.high)
    fields = {
        f"Mean of {whose} rows": f"{number(finding.mean)} {ends}".rstrip(),
        "Scored": f"{rows}, {finding.questions:,} questions",
        **dict(pair for one in rules for pair in _compared(one, alone=alone)),
        "Mix": next(filter(None, map(_mix, rules)), ""),
        "Since": str(min((one.since for one in rules if one.since), default="")),
        "Level": str(finding.change or ""),
        "Attributed to": "\n".join(clean(str(one), 120) for one in finding.carriers or ()),
    }
    facts = tuple((label, value) for label, value in fields.items() if value)
    also = "".join(f"; {clean(limit_of(one), 100)}" for one in incident.alike)
    plural = "Rules" if incident.alike else "Rule"
    rule = f"{plural}: {clean(finding.rule, 200)}{also}"
    return Section(title, segment, (rule, *_escalated(incident)), facts)


def _escalated(incident: Incident) -> list[str]:
    """For an escalation: how much worse it is than the last message, and the silence it ended."""
    found = next((one for one in incident.findings if one.transition == "escalated"), None)
    if found is None:
        return []
    worse = f"Significantly {clean(str(found.escalation), 300)}" if found.escalation else ""
    ended = f"No longer {clean(str(found.ended), 200)}" if found.ended else ""
    return [one for one in (worse, ended) if one]


def _compared(finding: Finding, *, alone: bool) -> list[tuple[str, str]]:
    """The comparison of a drop rule: both means over the compared questions, and the drop."""
    if finding.drop is None:
        return []
    label = clean(finding.baseline_label or "", 60)
    named = bool(label) and not alone
    before = _before(finding, "" if named else label)
    return [
        (f"Compared with {label}" if named else "Compared", before),
        (f"Drop from {label}" if named else "Drop", _drop(finding)),
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sample(manifest: Manifest, finding: Finding) -> SampledMean | None:
    which = finding.metric, finding.segment
    summaries = (*manifest.metrics, *manifest.segments)
    return next((one.sample for one in summaries if (one.metric, one.segment) == which), None)


def _rows(scored: int, sample: SampledMean | None) -> str:
    """`1,240 rows`, or `estimated from 500 of 20,000 rows` where a sample was judged."""
    if sample is None or sample.rows == scored:
        return f"{scored:,} rows"
    return f"estimated from {scored:,}{f' of {sample.rows:,}' if sample.rows else ''} rows"


def _before(finding: Finding, label: str) -> str:
    """`0.851 → 0.720 over the same 138 questions`; for older nights the mean of all rows before."""
    after = f" ({label})" if label else ""
    if words := compared_words(finding.means):
        return f"{words}{after}"
    return "" if finding.baseline is None else f"{number(finding.baseline)} before{after}"


def _drop(finding: Finding) -> str:
    if finding.drop is None:
        return ""
    return " ".join(drop_words(finding.drop, finding.drop_low, finding.drop_high)).rstrip()


def _mix(finding: Finding) -> str:
    """The part of the change of the mean that is the mix of tags; the drop is without it."""
    if finding.drop is None or finding.mix is None:
        return ""
    return clean(mix_text(finding.drop + finding.mix, finding.mix, finding.mix_tags), 200)


def _lines(found: Sequence[Incident]) -> list[str]:
    """One line per incident, in order; segments of a metric with the same event share one."""
    groups: dict[tuple[str, str], list[Incident]] = {}
    for incident in found:
        apart = str(incident.cause.silence or "") if incident.cause.segment else incident.cause.key
        groups.setdefault((_what(incident), apart), []).append(incident)
    return [line for group in groups.values() for line in _of_group(group)]


def _of_group(group: Sequence[Incident]) -> list[str]:
    if len(group) < SEGMENTS:
        return [_line(one) for one in group]
    causes = [one.cause for one in group]
    named = [
        clean(str(cause.segment), 60) + ("" if cause.mean is None else f" {_change(cause)}")
        for cause in causes[:SEGMENTS]
    ]
    more = f" and {len(group) - SEGMENTS} more" if len(group) > SEGMENTS else ""
    silence = f", {clean(str(causes[0].silence), 200)}" if causes[0].silence else ""
    what = f"{clean(_what(group[0]), 80)} in {len(group)} segments"
    return [f"{what}: {'; '.join(named)}{more}{silence}"]


def _line(incident: Incident) -> str:
    finding = incident.cause
    was = "was firing since" if finding.transition == "resolved" else "firing since"
    since = f", {was} {finding.since}" if finding.since else ""
    silence = f", {clean(str(finding.silence), 200)}" if finding.silence else ""
    folded = f"; {clean(incident.folded, 200)}" if incident.folded else ""
    longest = 500 if finding.transition == "reminded" else 250
    return clean(incident.message, longest) + since + silence + folded


def _snoozed(incident: Incident) -> str:
    finding = incident.cause
    segment = f" in {clean(str(finding.segment), 80)}" if finding.segment else ""
    return f"{clean(_what(incident), 80)}{segment}, {clean(str(finding.silence), 200)}"


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
            *([f"{source.quarantined:,} in quarantine"] if source.quarantined else []),
            *([f"index build {', '.join(named)}{more}"] if named else []),
        ]
    )


def _judge(manifest: Manifest) -> str:
    note = f" ({clean(manifest.judge.note, 400)})" if manifest.judge.note else ""
    budget = manifest.budget
    sampled = budget and (budget.share < 1 or budget.rows_over)
    over = f"; over budget: {budget.rows_over:,} rows" if budget and sampled else ""
    return f"Judge: {clean(manifest.judge.name, 80)}{note}{over}{_sampled(manifest)}"


def _sampled(manifest: Manifest) -> str:
    """A note that the means are estimates, where not all rows were judged."""
    sample, rows = manifest.sample, manifest.source.rows
    if sample is None or sample.judged >= rows:
        return ""
    return f"; means of all rows estimated from a sample: {sample.judged:,} of {rows:,} rows judged"


def _topics(manifest: Manifest) -> list[str]:
    fallen = manifest.topics.fallen if manifest.topics else []
    return [clean(fallen_topic_text(one), 300) for one in fallen]


def _segments(manifest: Manifest, metrics: Sequence[str]) -> list[str]:
    """The segments that are significantly worse than all rows, the worst of each metric first."""
    lines = []
    worse = worse_segments(manifest)
    for metric in metrics[:3]:
        whole = manifest.summary(metric)
        if whole is None or whole.mean is None:
            continue
        mean = whole.mean
        lowest = [one for one in worse if one.metric == metric]
        for segment in sorted(lowest, key=lambda one: one.loss(mean), reverse=True)[:3]:
            which = "" if len(metrics) == 1 else f"{clean(metric, 60)}, "
            rows = _rows(segment.scored, segment.sample)
            where = f"{which}{clean(str(segment.segment), 80)}"
            lines.append(f"{where}: {number(segment.mean)} ({rows}; all rows {number(mean)})")
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
        which = "" if len(metrics) == 1 else f"{clean(row.metric, 60)} "
        question = "" if redact else f"“{clean(row.user_input, 150)}” "
        lines.append(f"{number(row.value)} {which}{question}({clean(row.id, 60)})")
    return lines
