"""Transitions become one Slack message in Block Kit.

Text of users (questions, tags, ids, paths) passes through `escape`, after which nothing of it
can act as markup. Slack's limits on blocks hold by construction.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from ragmetrics.alerts.blocks import Block, bullets, context, links, mrkdwn, plain, section
from ragmetrics.alerts.book import Message
from ragmetrics.alerts.markup import clean, escape
from ragmetrics.changes import drop_words, fall_story, mix_text
from ragmetrics.quoted import hidden_of, without
from ragmetrics.records import Finding, Manifest, SampledMean, Summary, WorstRow

SEGMENTS = 3
"""Of a metric: from so many on they share a line, which names so many."""
SHOWN = 4
"""Fired findings shown with all their numbers; Slack rejects messages beyond about 12,000
characters, whatever its limits per block."""


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
    hidden = hidden_of(manifest.source, manifest.problems) if redact else {}
    findings = [_redacted(one, hidden) for one in findings]
    fired = sorted((f for f in findings if f.transition == "fired"), key=_loudest_first)
    reminded = [f for f in findings if f.transition == "reminded"]
    resolved = [f for f in findings if f.transition == "resolved"]
    if not (fired or reminded or resolved):
        return None
    firing = [f for f in findings if f.state == "firing" and f.transition != "fired"]
    snoozed = [f for f in firing if f.silence and f.silence.until]
    still = sorted((f for f in firing if f not in snoozed), key=_loudest_first)
    told = (f for f in fired + reminded if f.kind == "metric" and f.level != "no_data")
    metrics = {f.metric: None for f in told if f.metric}
    title = _title(fired, reminded, resolved)
    numbers = f": {_change(fired[0])}" if len(fired) == 1 and fired[0].mean is not None else ""
    night = f" ({manifest.dataset}, night of {manifest.date})"
    blocks = [
        {"type": "header", "text": plain(title)},
        context(_night(manifest)),
        *(_section(one, manifest, titled=len(fired) > 1) for one in fired[:SHOWN]),
        *bullets("Fired too", _lines(fired[SHOWN:]), dashboard),
        *bullets("Still firing", _lines(still), dashboard),
        *bullets("Snoozed", map(_snoozed, snoozed), dashboard),
        *bullets("Back to normal", _lines([f for f in resolved if f.level == "ok"]), dashboard),
        *bullets("Closed", _lines([f for f in resolved if f.level != "ok"]), dashboard),
        *bullets("Worse, and no rule alerts", (escape(fall_story(f), 250) for f in manifest.falls)),
        *bullets("Worst segments", _segments(manifest, list(metrics))),
        *bullets("Worst rows" if redact else "Worst questions", _worst(manifest, metrics, redact)),
        *links({"dashboard": dashboard, "run": run_url}),
        context(_judge(manifest)),
    ]
    return Message(text=escape(title + numbers + night, 300), blocks=blocks)


def _redacted(finding: Finding, hidden: Mapping[str, str]) -> Finding:
    """The finding without the words of endpoints, which may repeat what they were asked."""
    return finding.model_copy(update={"message": without(finding.message, hidden)})


def _loudest_first(finding: Finding) -> tuple[bool, bool, bool, float]:
    """Critical ones before warnings, the whole before segments, what explains metrics before them;
    then by how far they are beyond their limit.
    """
    limit = finding.limit or 0.0
    within = math.inf if finding.mean is None else finding.mean - limit
    within = within if finding.drop is None else limit - finding.drop
    kinds = finding.segment is not None, finding.kind == "metric"
    return finding.severity != "critical", *kinds, within


def _title(
    fired: Sequence[Finding], reminded: Sequence[Finding], resolved: Sequence[Finding]
) -> str:
    if fired:
        sign = {"critical": "🔴 Critical", "warning": "🟡 Warning"}[fired[0].severity]
    else:
        sign = "🔔 Reminder" if reminded else "🟢 Resolved"
    groups: dict[str, list[Finding]] = {}
    for finding in fired or reminded or resolved:
        groups.setdefault(_what(finding), []).append(finding)
    whats = [
        _where(what, group)
        for what, group in groups.items()
        if f"{what.removesuffix(' is low')} fell" not in groups  # says it of the same metric
    ]
    more = f" and {len(whats) - 2} more" if len(whats) > 2 else ""
    return clean(f"{sign}: {', '.join(whats[:2])}{more}", 150)


def _what(finding: Finding) -> str:
    """What happened, in two or three words."""
    metric = finding.metric or "rows"
    if finding.kind == "quarantine":
        return "rows in quarantine"
    if finding.kind == "judge_failures":
        return f"judge failures in {finding.metric or 'the panel'}"
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
    return f"{metric} {'is low' if finding.baseline is None else 'fell'}"


def _where(what: str, group: Sequence[Finding]) -> str:
    if any(finding.segment is None for finding in group):
        return what
    return f"{what} in {'a segment' if len(group) == 1 else f'{len(group)} segments'}"


def _change(finding: Finding) -> str:
    before = "" if finding.baseline is None else f"{finding.baseline:z.3f} → "
    return f"{before}{finding.mean:z.3f}"


def _section(finding: Finding, manifest: Manifest, *, titled: bool) -> Block:
    """One fired finding with all its numbers, or in words where it has none.

    It needs no title where the message has no other.
    """
    segment = f" in {escape(str(finding.segment), 80)}" if finding.segment else ""
    title = f"*{escape(_what(finding), 80)}*{segment}\n" if titled or segment else ""
    if finding.mean is None or finding.level == "no_data":
        since = f"\nSince {finding.since}" if finding.since else ""
        return section(f"{title}{escape(finding.message, 400) or '–'}{since}")
    rows = _rows(finding.n, _sample(manifest, finding))
    fields = {
        "Mean": f"{finding.mean:z.3f}{_interval(finding)}",
        "Before": _before(finding),
        "Drop": _drop(finding),
        "Mix": _mix(finding),
        "Scored": f"{rows}, {finding.questions:,} questions",
        "Since": str(finding.since or ""),
        "Level": str(finding.change or ""),
        "Carried by": "\n".join(escape(str(one), 120) for one in finding.carriers or ()),
    }
    shown = [mrkdwn(f"*{label}*\n{value}") for label, value in fields.items() if value]
    return {**section(f"{title}Rule: {escape(finding.rule, 200)}"), "fields": shown}


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


def _before(finding: Finding) -> str:
    label = f" ({escape(finding.baseline_label, 60)})" if finding.baseline_label else ""
    return "" if finding.baseline is None else f"{finding.baseline:z.3f}{label}"


def _drop(finding: Finding) -> str:
    if finding.drop is None:
        return ""
    return " ".join(drop_words(finding.drop, finding.drop_low, finding.drop_high)).rstrip()


def _mix(finding: Finding) -> str:
    """What of the move of the mean is another mix of tags, which the drop is without."""
    if finding.drop is None or finding.mix is None:
        return ""
    return escape(mix_text(finding.drop + finding.mix, finding.mix, finding.mix_tags), 200)


def _lines(findings: Sequence[Finding]) -> list[str]:
    """A line each, in their order; one for several segments of a metric with which the same is."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        apart = str(one.silence or "") if one.segment else one.key
        groups.setdefault((_what(one), apart), []).append(one)
    return [line for group in groups.values() for line in _of_group(group)]


def _of_group(group: Sequence[Finding]) -> list[str]:
    if len(group) < SEGMENTS:
        return [_line(one) for one in group]
    first = group[0]
    named = [
        escape(str(one.segment), 60) + ("" if one.mean is None else f" {_change(one)}")
        for one in group[:SEGMENTS]
    ]
    more = f" and {len(group) - SEGMENTS} more" if len(group) > SEGMENTS else ""
    silence = f", {escape(str(first.silence), 200)}" if first.silence else ""
    what = f"{escape(_what(first), 80)} in {len(group)} segments"
    return [f"{what}: {', '.join(named)}{more}{silence}"]


def _line(finding: Finding) -> str:
    was = "was firing since" if finding.transition == "resolved" else "firing since"
    since = f", {was} {finding.since}" if finding.since else ""
    silence = f", {escape(str(finding.silence), 200)}" if finding.silence else ""
    longest = 500 if finding.transition == "reminded" else 250
    return escape(finding.message, longest) + since + silence


def _snoozed(finding: Finding) -> str:
    segment = f" in {escape(str(finding.segment), 80)}" if finding.segment else ""
    return f"{escape(_what(finding), 80)}{segment}, {escape(str(finding.silence), 200)}"


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
    lines = []
    for metric in metrics[:3]:
        whole = manifest.summary(metric)
        if whole is None or whole.mean is None:
            continue
        scored = [
            (s.mean, s)
            for s in manifest.segments
            if s.metric == metric and s.mean is not None and s.loss(whole.mean) > 0
        ]
        # By the better end of the interval: three unlucky rows are no reason to look there first.
        for mean, summary in sorted(scored, key=lambda pair: _at_best(pair[1]))[:3]:
            which = "" if len(metrics) == 1 else f"{escape(metric, 60)}, "
            where = f"{which}{escape(str(summary.segment), 80)}"
            rows = _rows(summary.scored, summary.sample)
            lines.append(f"{where}: {mean:z.3f} ({rows}; all rows {whole.mean:z.3f})")
    return lines


def _at_best(summary: Summary) -> float:
    if summary.low is None or summary.high is None:
        return math.inf
    return summary.high if summary.higher_is_better else -summary.low


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
