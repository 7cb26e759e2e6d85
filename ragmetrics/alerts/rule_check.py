"""Cases: a rule's limit held against one segment of a night, before the family's control."""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.alerts.context import Baseline, NightContext
from ragmetrics.alerts.firing_history import was_firing
from ragmetrics.config import Rule
from ragmetrics.model import Finding, Segment, Status, Summary
from ragmetrics.stats import Drop
from ragmetrics.storage import trailing_nights
from ragmetrics.text import clean

WEEK = 7
"""Nights before, by whose rows a segment is known to be one that can be watched."""


@dataclass(frozen=True)
class RuleCheck:
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
    baseline: Baseline | None = None
    """What the drop was measured against."""
    unjudged: bool = False
    """A firing alert with nothing to be compared with: only an escalation says anything of it."""


@dataclass(frozen=True)
class Limit:
    """One of a rule's limits, as it is named and said."""

    value: float
    name: str
    """In the key of the alert, of which it is a part."""
    text: str


def start_finding(
    rule: Rule, limit: Limit, segment: Segment | None, night: NightContext, now: Summary | None
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


def too_few(
    rule: Rule, finding: Finding, night: NightContext, now: Summary | None
) -> RuleCheck | None:
    """No data, where there are fewer scored rows than the rule needs; None where there are enough.

    The rows that were not scored are told by reason. A segment that never had enough of them in the
    week before is not compared yet: of a tag with hundreds of values most are such.
    """
    if now is not None and now.mean is not None and now.scored >= rule.min_rows:
        return None
    rows = now.scored if now else 0
    text = f"{finding.metric}{of_segment(finding.segment)}: "
    text += f"{rows} row{'' if rows == 1 else 's'} scored, {rule.min_rows} needed"
    if now is not None and now.status:
        others = {status: n for status, n in now.status.items() if status != Status.SCORED}
        rest = [f"{n} {status.replace('_', ' ')}" for status, n in others.items()]
        text += f" ({', '.join(rest)})" if rest else ""
    most = max(rows, _most_rows(finding, night))
    if finding.segment and 0 < most < rule.min_rows and not was_firing(night.earlier, finding.key):
        return RuleCheck(rule, finding.model_copy(update={"message": text, "compared": False}))
    return no_data(rule, finding, text)


def _most_rows(finding: Finding, night: NightContext) -> int:
    """The most scored rows that the segment had on a night of the week before, as far as told."""
    week = trailing_nights(night.earlier, night.manifest.date, WEEK)
    told = [one.n for earlier in week for one in earlier.findings if one.key == finding.key]
    which = finding.metric, finding.segment
    shown = [
        one.scored
        for earlier in week
        for one in earlier.segments
        if (one.metric, one.segment) == which
    ]
    return max([*told, *shown], default=0)


def no_data(rule: Rule, finding: Finding, message: str) -> RuleCheck:
    """A rule that could not be held, and why."""
    return RuleCheck(rule, finding.model_copy(update={"level": "no_data", "message": message}))


def of_segment(segment: Segment | None) -> str:
    """` of section=billing`; nothing for all rows."""
    return f" of {clean(str(segment), 80)}" if segment else ""
