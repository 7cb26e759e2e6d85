"""One incident in the message of a night: what happened, and all its numbers."""

from __future__ import annotations

from ragmetrics.messages.blocks import Quote, Section
from ragmetrics.messages.display_names import in_display_names, in_unit
from ragmetrics.messages.story import is_limit_of_mean, is_measured
from ragmetrics.metrics import display_name, unit_of
from ragmetrics.records import (
    Finding,
    Manifest,
    SampledMean,
    mix_text,
    over_questions,
)
from ragmetrics.rules import Incident, check_of, limit_of
from ragmetrics.text import clean, drop_words, interval


def incident_block(incident: Incident, manifest: Manifest, *, titled: bool) -> Section:
    """One fired incident with all its numbers, or in words where it has none.

    `titled` adds a title, which a message with a single incident does not need.
    """
    finding = incident.cause
    segment = ("in ", Quote(clean(str(finding.segment), 80))) if finding.segment else ""
    title = clean(what_happened(incident), 80) if titled or segment else ""
    if finding.mean is None or (finding.is_rule and not is_measured(finding)):
        told = in_display_names(_capital(incident.folded), manifest)
        folded = [clean(told, 300)] if told else []
        since = [f"Since {finding.since}"] if finding.since else []
        message = in_display_names(incident.message, manifest)
        lines = [clean(message, 400) or "–", *_escalated(incident), *folded, *since]
        return Section(title, segment, tuple(lines))
    also = "".join(f"; {clean(limit_of(alike), 100)}" for alike in incident.alike)
    plural = "Rules" if incident.alike else "Rule"
    rule = f"{plural}: {clean(in_display_names(finding.rule, manifest), 200)}{also}"
    return Section(
        title, segment, (rule, *_escalated(incident)), _facts(incident, manifest, titled)
    )


def _facts(incident: Incident, manifest: Manifest, titled: bool) -> tuple[tuple[str, str], ...]:
    """The numbers of an incident. Common ones of rules on the same rows are shown once; since when
    a single one fires stands above.
    """
    finding, rules = incident.cause, (incident.cause, *incident.alike)
    alone = sum(rule.drop is not None for rule in rules) == 1
    rows = rows_text(finding.n, _sample(manifest, finding))
    whose = "its" if finding.segment else "all"
    ends = "" if unit_of(finding.metric or "") else interval(finding.low, finding.high)
    mean = f"{in_unit(finding.mean, finding.metric)} {ends}".rstrip()
    fields = {
        f"Mean of {whose} rows": mean,
        "Scored": f"{rows}, {finding.questions:,} questions",
        **dict(pair for rule in rules for pair in _compared(rule, alone=alone)),
        "Mix": next(filter(None, map(_mix, rules)), ""),
    }
    if titled:
        fields["Since"] = str(min((rule.since for rule in rules if rule.since), default=""))
    return tuple((label, value) for label, value in fields.items() if value)


def _escalated(incident: Incident) -> list[str]:
    """For an escalation: how much worse it is than the last message, and the silence it ended."""
    escalated = next((one for one in incident.findings if one.transition == "escalated"), None)
    if escalated is None:
        return []
    worse = f"Significantly {clean(str(escalated.escalation), 300)}" if escalated.escalation else ""
    ended = f"No longer {clean(str(escalated.ended), 200)}" if escalated.ended else ""
    return [one for one in (worse, ended) if one]


def _compared(finding: Finding, *, alone: bool) -> list[tuple[str, str]]:
    """The comparison of a drop rule: both means over the compared questions, and the drop."""
    if finding.drop is None:
        return []
    label = clean(finding.baseline_label or "", 60)
    named = bool(label) and not alone
    before = _before(finding, "" if named else label)
    change = "Rise" if finding.rise else "Drop"
    return [
        (f"Compared with {label}" if named else "Compared", before),
        (f"{change} from {label}" if named else change, _drop(finding)),
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sample(manifest: Manifest, finding: Finding) -> SampledMean | None:
    which = finding.metric, finding.segment
    summaries = (*manifest.metrics, *manifest.segments)
    return next((one.sample for one in summaries if (one.metric, one.segment) == which), None)


def _before(finding: Finding, label: str) -> str:
    """`0.851 → 0.720 over the same 138 questions`; for older nights the mean of all rows before."""
    after = f" ({label})" if label else ""
    if words := _moved(finding):
        return f"{words}{after}"
    before = in_unit(finding.baseline, finding.metric)
    return "" if finding.baseline is None else f"{before} before{after}"


def _drop(finding: Finding) -> str:
    if finding.drop is None:
        return ""
    low, high = finding.drop_low, finding.drop_high
    if not unit_of(finding.metric or ""):
        return " ".join(drop_words(finding.drop, low, high)).rstrip()
    drop, *ends = (in_unit(value, finding.metric) for value in (finding.drop, low, high))
    return drop if low is None or high is None else f"{drop} [{', '.join(ends)}]"


def _moved(finding: Finding) -> str:
    """Both compared means in the unit of the metric, and over which questions."""
    if (means := finding.means) is None:
        return ""
    ends = (in_unit(value, finding.metric) for value in (means.before, means.now))
    return f"{' → '.join(ends)} {over_questions(means)}"


def _mix(finding: Finding) -> str:
    """The part of the change of the mean that is the mix of tags; the drop is without it."""
    if finding.drop is None or finding.mix is None:
        return ""
    return clean(mix_text(finding.drop + finding.mix, finding.mix, finding.mix_tags), 200)


def what_happened(incident: Incident) -> str:
    """What happened, in a few words."""
    finding = incident.cause
    metric = display_name(finding.metric) if finding.metric else "rows"
    if not finding.is_rule:
        return check_of(finding).title_of(finding, incident.metrics)
    if finding.state != "firing":
        return metric
    if finding.level == "no_data":
        return f"no data for {metric}"
    if finding.transition == "escalated" and finding.escalation:
        return f"{metric} {'rose' if finding.rise else 'fell'} further"
    low = finding.baseline is None and is_limit_of_mean(finding)
    moved = "rose" if finding.rise else "fell"
    return f"{metric} {'is low' if low else moved}"


def change_text(finding: Finding) -> str:
    """Both means of the compared questions; without a comparison, the mean of all rows.

    For an escalation, the means at the last notification and now.
    """
    if finding.transition == "escalated" and (found := finding.escalation):
        return " → ".join(in_unit(value, finding.metric) for value in (found.before, found.now))
    if finding.drop is not None and finding.means:
        return _moved(finding)
    return in_unit(finding.mean, finding.metric)


def mean_beside(finding: Finding) -> str:
    """The mean of all rows, after compared means that differ from it."""
    if finding.transition == "escalated" or finding.drop is None or not finding.means:
        return ""
    mean, now = (in_unit(value, finding.metric) for value in (finding.mean, finding.means.now))
    if mean == now:
        return ""
    return f"; mean of {'its' if finding.segment else 'all'} rows {mean}"


def rows_text(scored: int, sample: SampledMean | None) -> str:
    """`1,240 rows`, or `estimated from 500 of 20,000 rows` where a sample was judged."""
    if sample is None or sample.rows == scored:
        return f"{scored:,} rows"
    return f"estimated from {scored:,}{f' of {sample.rows:,}' if sample.rows else ''} rows"
