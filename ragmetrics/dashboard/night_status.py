"""The state of a night, a rule and a metric: a word, a sentence, and the findings behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal

from ragmetrics.dashboard.night_notes import night_notes
from ragmetrics.messages import (
    Block,
    Link,
    NightStory,
    Quote,
    Text,
    night_story,
    no_link,
)
from ragmetrics.metrics import display_name
from ragmetrics.records import (
    Finding,
    Manifest,
    Summary,
    UnwatchedDrop,
    unwatched_drop_text,
)
from ragmetrics.rules import Incident, check_of, incidents
from ragmetrics.scoring import worse_segments
from ragmetrics.text import clean, finite, number, plural

RuleState = Literal["firing", "pending", "no_data", "uncompared", "ok"]
MetricState = RuleState | Literal["fell"]
NightState = MetricState | Literal["incomplete", "unwatched"]

LABELS: dict[str, str] = {
    "firing": "firing",
    "pending": "pending",
    "fell": "fell, no alert",
    "no_data": "no data",
    "incomplete": "incomplete",
    "unwatched": "no rules",
    "uncompared": "not compared yet",
    "ok": "ok",
}
_ORDER: tuple[MetricState, ...] = ("firing", "pending", "fell", "no_data", "uncompared", "ok")

_FELL: tuple[NightState, ...] = ("firing", "pending", "fell")
_LONGEST = 600
"""Most characters of a line."""


@dataclass(frozen=True)
class NightStatus:
    """The state of a night in a few words."""

    date: date
    state: NightState
    words: str
    incidents: tuple[Incident, ...] = ()
    """The incidents that explain the state, worst first."""
    notes: tuple[str, ...] = ()
    story: NightStory = field(default_factory=NightStory)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The finding that is the cause of each incident."""
        return tuple(incident.cause for incident in self.incidents)

    @property
    def _whole(self) -> NightStory:
        """The story with the notes beside."""
        notes = ((Quote(clean(note, _LONGEST)),) for note in self.notes)
        return replace(self.story, also=(*self.story.also, *notes))

    @property
    def parts(self) -> list[tuple[str, tuple[Text, ...]]]:
        """What happened, where and why, and the notes: lines by their labels."""
        return self._whole.parts

    @property
    def blocks(self) -> list[Block]:
        """The same as neutral blocks."""
        return self._whole.blocks

    @property
    def is_told(self) -> bool:
        """Whether the headline tells what happened; else it is the state in words."""
        return bool(self.story.headline) and self.state in _FELL

    @property
    def headline(self) -> str:
        """`Context recall fell from 0.88 to 0.64.`; without a fall, the state in words."""
        if self.is_told:
            return self.story.headline
        words = {"fine": "retrieval is fine", "no data": f"no data for {self.date}"}.get(
            self.words, self.words
        )
        return f"{words[:1].upper()}{words[1:]}."

    @property
    def sentence(self) -> str:
        """`Night of 2026-11-19: fine.`"""
        return f"Night of {self.date}: {self.words}."


def rule_state(finding: Finding) -> RuleState:
    """The state of one rule. A breach fires at once; a rule that compared nothing is never ok."""
    if finding.state == "firing" or finding.level == "breach":
        return "firing"
    if finding.level == "no_data":
        return "no_data"
    if finding.state == "pending" or finding.level == "suspect":
        return "pending"
    return "ok" if finding.compared else "uncompared"


def _urgency(finding: Finding) -> tuple[int, bool, str, str]:
    state = _ORDER.index(rule_state(finding))
    return (state, not finding.is_rule, finding.severity, finding.rule)


def by_state(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those that need a reader first."""
    return sorted(findings, key=_urgency)


def night_line(manifest: Manifest, dashboard: str) -> str:
    """A night in one sentence, for a log."""
    scored = max((metric.scored for metric in manifest.metrics), default=0)
    means = "".join(f", {metric.metric} {number(metric.mean)}" for metric in manifest.metrics)
    counts = Counter(LABELS[rule_state(finding)] for finding in by_state(manifest.findings))
    rules = ", ".join(f"{count} {state}" for state, count in counts.items())
    return (
        f"night {manifest.date}: {scored:,} of {manifest.source.rows:,} rows scored{means}; "
        f"rules: {rules}; dashboard: {dashboard}"
    )


def shown_rules(manifest: Manifest, earlier: Sequence[Manifest]) -> list[Finding]:
    """The findings, those that need a reader first.

    A night without scores also has the rules of the last night with rules, as not checked.
    """
    found = list(manifest.findings)
    if not has_numbers(manifest):
        known = {one.key for one in found}
        found += [_unchecked(rule) for rule in _last_rules(earlier) if rule.key not in known]
    return [one for incident in _causes(found, manifest) for one in incident.findings]


def explained_rules(manifest: Manifest, findings: Sequence[Finding]) -> set[str]:
    """Keys of the findings that another one explains; rules on one metric explain no other."""
    return {
        finding.key
        for incident in incidents(findings, manifest)
        for finding in incident.findings[1:]
        if not incident.cause.is_rule
    }


def _causes(findings: Sequence[Finding], manifest: Manifest) -> list[Incident]:
    """The incidents by the state of their causes; incidents that explain others come first."""
    found = incidents(by_state(findings), manifest)
    return sorted(found, key=lambda one: not one.explained and not _night_failed(one.cause))


def _night_failed(cause: Finding) -> bool:
    """Whether the night itself failed, which comes before its rules."""
    return check_of(cause).lacks == "scores" and rule_state(cause) == "firing"


def _last_rules(earlier: Sequence[Manifest]) -> list[Finding]:
    for night in reversed(earlier):
        rules = [one for one in night.findings if one.is_rule and one.segment is None]
        if rules:
            return rules
    return []


def _unchecked(finding: Finding) -> Finding:
    return Finding(
        key=finding.key,
        kind=finding.kind,
        level="no_data",
        severity=finding.severity,
        rule=finding.rule,
        message=f"{finding.metric}: not checked, as nothing was scored",
        metric=finding.metric,
    )


def has_numbers(manifest: Manifest) -> bool:
    """Whether the night was read and anything in it was scored."""
    return manifest.source.problem is None and any(
        finite(summary.mean) is not None for summary in manifest.metrics
    )


def metric_states(manifest: Manifest) -> dict[str, MetricState]:
    """The state of the worst rule on each metric over all rows, or `fell` if no rule watches it."""
    states: dict[str, MetricState] = {fall.metric: "fell" for fall in manifest.falls}
    for finding in by_state(manifest.findings):
        state = rule_state(finding)
        if finding.metric and not finding.segment and (finding.is_rule or state != "ok"):
            states.setdefault(finding.metric, state)
    return states


def needing_reader(manifest: Manifest) -> Callable[[str], tuple[int, bool]]:
    """Sort key of metrics: those that need a reader first, then those with a rule."""
    states = metric_states(manifest)
    return lambda metric: (_ORDER.index(states.get(metric, "ok")), metric not in states)


def find_night_status(manifest: Manifest, link: Link = no_link) -> NightStatus:
    """The state of a night; on a page, the segments of its story have a `link`."""
    state, words, findings = _judge(manifest)
    causes = tuple(_causes(findings, manifest))
    return NightStatus(
        date=manifest.date,
        state=state,
        words=words,
        incidents=causes,
        notes=night_notes(manifest, state == "no_data", causes),
        story=night_story(manifest, causes, link),
    )


def _judge(manifest: Manifest) -> tuple[NightState, str, tuple[Finding, ...]]:
    """The state, its words, and the findings that explain it."""
    ordered = [(rule_state(one), one) for one in by_state(manifest.findings)]
    by_kind: dict[MetricState, tuple[Finding, ...]] = {
        state: tuple(one for own, one in ordered if own == state) for state in _ORDER
    }
    firing, pending = by_kind["firing"], by_kind["pending"]
    # A small segment has too few rows on many nights. That alone does not make a night incomplete.
    blind = tuple(f for f in by_kind["no_data"] if f.segment is None)
    if not has_numbers(manifest):
        return "no_data", "no data", firing + blind
    if firing:
        escalated = sum(one.transition == "escalated" for one in firing)
        words = f"{_alerts(firing, manifest)} firing"
        words += f", {escalated} escalated" if escalated else ""
        words += f", {len(pending)} pending" if pending else ""
        return "firing", words, firing + pending
    if pending:
        return "pending", f"{plural(len(pending), 'alert')} pending, none firing", pending
    if manifest.falls:
        return "fell", f"no rule fired; {_fell(manifest.falls)}", blind
    if blind:
        return "incomplete", f"nothing firing, but {plural(len(blind), 'rule')} without data", blind
    if manifest.source.broken or manifest.problems:
        what = "read" if manifest.source.broken else "scored"
        return "incomplete", f"nothing firing, but not all was {what}", ()
    return _quiet(manifest, by_kind["uncompared"])


def _quiet(
    manifest: Manifest, waiting: tuple[Finding, ...]
) -> tuple[NightState, str, tuple[Finding, ...]]:
    """A night is fine only if a rule compared something."""
    rules = [finding for finding in manifest.findings if finding.is_rule]
    if not rules:
        return "unwatched", "scored, but no rule watches it", ()
    if not any(rule_state(finding) == "ok" for finding in rules):
        return "uncompared", "scored, but no rule has an earlier night to compare with", waiting
    if not any(rule_state(finding) == "ok" and finding.sees for finding in rules):
        return "incomplete", "scored, but no rule can detect a regression", ()
    whole = [finding for finding in waiting if finding.segment is None]
    if whole:
        drops = any(rule_state(finding) == "ok" and finding.drop is not None for finding in rules)
        state: NightState = "ok" if drops else "uncompared"
        return state, f"no rule fired, {plural(len(whole), 'rule')} not compared yet", ()
    return "ok", "fine", ()


def _alerts(firing: Sequence[Finding], manifest: Manifest) -> str:
    """`2 alerts`, without those that another one explains."""
    causes = incidents(firing, manifest)
    rules = sum(len(one.alike) for one in causes if one.cause.is_rule)
    return plural(len(causes) + rules, "alert")


def _fell(falls: Sequence[UnwatchedDrop]) -> str:
    many = f"{len(falls)} metrics got significantly worse"
    if len(falls) > 1:
        return many
    return unwatched_drop_text(
        falls[0].model_copy(update={"metric": display_name(falls[0].metric)})
    )


def lowest_segments(manifest: Manifest) -> list[tuple[Summary, Summary]]:
    """The segments that are significantly worse than all rows, each with the summary of all rows;
    the largest loss first.
    """
    wholes = {one.metric: one for one in manifest.metrics if finite(one.mean) is not None}
    worse = [(one, wholes[one.metric]) for one in worse_segments(manifest) if one.metric in wholes]

    def order(pair: tuple[Summary, Summary]) -> tuple[float, str, str]:
        one, whole = pair
        return -one.loss(whole.mean or 0.0), one.metric, str(one.segment)

    return sorted(worse, key=order)
