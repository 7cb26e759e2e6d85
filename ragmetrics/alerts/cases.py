"""Cases: a rule's limit held against one segment of a night, before the family's control."""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.alert_settings import Rule
from ragmetrics.alerts.evidence import Night
from ragmetrics.alerts.markup import clean
from ragmetrics.protocol import Status
from ragmetrics.records import Finding, Segment, Summary
from ragmetrics.stats.comparisons import Drop


@dataclass(frozen=True)
class Case:
    """What one limit of a rule says of one segment, if nothing else were looked at."""

    rule: Rule
    finding: Finding
    drop: Drop | None = None
    """The surer one: tonight's, or that of all nights of the spell together."""
    comparisons: int = 1
    """That can make the rule fire, of which this drop is one."""
    beyond: bool = False
    """Whether tonight alone is beyond the line."""
    was_firing: bool = False


@dataclass(frozen=True)
class Limit:
    """One of a rule's limits, as it is named and said."""

    value: float
    name: str
    """In the key of the alert, of which it is a part."""
    text: str


def start_finding(
    rule: Rule, limit: Limit, segment: Segment | None, night: Night, now: Summary | None
) -> Finding:
    """A finding with all that does not depend on what is found: who is judged, and by what."""
    where = str(segment) if segment else "all"
    return Finding(
        key=f"{night.manifest.dataset}/{rule.metric}/{where}/{limit.name}",
        kind="metric",
        level="ok",
        severity=rule.severity,
        rule=f"{rule.metric}{of_segment(segment)}: {limit.text}",
        message="",
        metric=rule.metric,
        segment=segment,
        mean=now.mean if now else None,
        low=now.low if now else None,
        high=now.high if now else None,
        n=now.scored if now else 0,
        questions=now.questions if now else 0,
        limit=limit.value,
        for_nights=rule.for_,
    )


def too_few(rule: Rule, finding: Finding, now: Summary | None) -> Case | None:
    """No data, where there are fewer scored rows than the rule needs; None where there are enough.

    The rows that were not scored are told by reason.
    """
    if now is not None and now.mean is not None and now.scored >= rule.min_rows:
        return None
    rows = now.scored if now else 0
    text = f"{finding.metric}{of_segment(finding.segment)}: {rows} rows scored, "
    text += f"{rule.min_rows} needed"
    if now is not None and now.status:
        rest = [f"{n} {status}" for status, n in now.status.items() if status != Status.SCORED]
        text += f" ({', '.join(rest)})" if rest else ""
    return no_data(rule, finding, text)


def no_data(rule: Rule, finding: Finding, message: str) -> Case:
    """A rule that could not be held, and why."""
    return Case(rule, finding.model_copy(update={"level": "no_data", "message": message}))


def was_firing(finding: Finding, night: Night) -> bool:
    """Whether the alert was firing on the night before."""
    if not night.earlier:
        return False
    return any(
        one.key == finding.key and one.state == "firing" for one in night.earlier[-1].findings
    )


def of_segment(segment: Segment | None) -> str:
    """` of section=billing`; nothing for all rows."""
    return f" of {clean(str(segment), 80)}" if segment else ""
