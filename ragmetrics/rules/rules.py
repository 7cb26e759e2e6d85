"""Validates the alert rules of the settings, and evaluates them for a night.

rules x segments -> checks (`drop_rules`) -> `rule_check.decide` -> findings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragmetrics.config import AlertSettings, Rule, Settings
from ragmetrics.errors import InputError
from ragmetrics.records import TOPIC, Finding, Manifest, Segment, Summary, UnwatchedDrop
from ragmetrics.rules.check_evaluation import evaluate_checks
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.drop_rules import check_drop, with_links
from ragmetrics.rules.escalation import escalate
from ragmetrics.rules.min_rules import check_min, with_min_chance
from ragmetrics.rules.night_check import (
    RULES_ORDER,
    check_limits,
    check_of,
    suppresses_metric,
    suppresses_rules,
)
from ragmetrics.rules.root_cause import explain_root_cause
from ragmetrics.rules.rule_check import DEFAULT_RULES, RuleCheck, decide, rules_of
from ragmetrics.rules.tagged_rows import with_tag_means
from ragmetrics.rules.unwatched_drops import find_unwatched_drops
from ragmetrics.scoring import MetricScores, chosen_metrics, find_segments, summarise
from ragmetrics.storage import trailing_nights
from ragmetrics.text import clean

SEGMENT_DAYS = 7
"""Days before tonight: a segment of these nights without a row tonight is `no_data`."""
_ANY = "(any)"
"""Placeholder for a tag's value where no row has one."""


def evaluate_rules(settings: AlertSettings, night: NightContext) -> list[Finding]:
    """All findings of a night, causes first.

    Without data, or on the rows of an earlier night, no metric rule is evaluated, and no rule on a
    metric whose judge failed. A labelled set without verdicts suppresses nothing.
    """
    health = evaluate_checks("night", settings, night)
    if any(map(suppresses_rules, health)):
        return [_clean(finding) for finding in health]
    health += evaluate_checks("scores", settings, night)
    silenced = {finding.metric for finding in health if suppresses_metric(finding)}
    rules = settings.rules if settings.rules is not None else _applicable(night)
    rules = [rule for rule in rules if rule.metric not in silenced]
    cases = [
        case
        for rule in rules
        for segment in _segments(rule, night)
        for case in _hold(rule, segment, night)
    ]
    if settings.per_time:
        cases = [with_links(with_min_chance(case, night)) for case in cases]
    alpha = settings.rules_level
    found = decide(cases, alpha)
    if night.notified:
        found = escalate(cases, found, night, alpha)
    found = [
        finding
        for case, finding in zip(cases, found, strict=True)
        if finding.escalation or not case.unjudged
    ]
    late = evaluate_checks("rules", settings, night, rules, cases, found)
    return [_clean(finding) for finding in sorted((*health, *found, *late), key=_place)]


def _place(finding: Finding) -> int:
    """The place of a finding: that of its check."""
    return RULES_ORDER if finding.is_rule else check_of(finding).order


def _clean(finding: Finding) -> Finding:
    """The finding without line breaks and escape codes, which tags and reasons may contain."""
    texts = {"message": clean(finding.message, 1_000), "rule": clean(finding.rule, 300)}
    return finding.model_copy(update=texts)


def _applicable(night: NightContext) -> list[Rule]:
    """The default rules whose metric has a scored row, tonight or earlier."""
    seen = [night.manifest, *night.earlier]
    return [
        rule
        for rule in DEFAULT_RULES
        if any((summary := one.summary(rule.metric)) and summary.scored for one in seen)
    ]


def _segments(rule: Rule, night: NightContext) -> list[Segment | None]:
    """The values of the rule's tag with a scored row, tonight or in the week before.

    Where there is none, the rule gets a placeholder segment, for which it has no data.
    """
    if rule.by is None:
        return [None]
    before = {
        summary.segment.value
        for earlier in trailing_nights(night.earlier, night.manifest.date, SEGMENT_DAYS)
        for summary in earlier.segments
        if summary.metric == rule.metric and summary.scored
        if summary.segment and summary.segment.tag == rule.by and not summary.segment.is_blank
    }
    # Tonight's values come from the rows: the manifest has only the shown segments.
    scores = night.scores.get(rule.metric)
    tonight = find_segments(replace(scores, table=scores.scored), [rule.by]) if scores else []
    values = before | {segment.value for segment in tonight}
    if not values and rule.by != TOPIC:  # topics begin when there are enough questions
        values = {_ANY}
    return [Segment(tag=rule.by, value=value) for value in sorted(values)]


def _hold(rule: Rule, segment: Segment | None, night: NightContext) -> list[RuleCheck]:
    """Check a rule's limits on a segment: one check for `min`, one for `max_drop`."""
    now = _summary(rule.metric, segment, night)
    cases = []
    if rule.min is not None:
        cases.append(check_min(rule, rule.min, segment, night, now))
    if rule.max_drop is not None:
        cases.append(check_drop(rule, rule.max_drop, segment, night, now))
    return cases


def _summary(metric: str, segment: Segment | None, night: NightContext) -> Summary | None:
    if metric not in night.scores:
        return None
    if segment is None:
        return night.manifest.summary(metric)
    scores = night.scores[metric]
    if f"tag:{segment.tag}" not in scores.table:
        return None
    return summarise(scores, "", segment)


def explain_findings(
    settings: AlertSettings, night: NightContext, findings: Sequence[Finding]
) -> tuple[list[Finding], list[UnwatchedDrop]]:
    """The findings, which have their states, with the causes of their drops; and the drops of
    metrics on which no alert fires. Both compare with other nights.
    """
    explained = list(findings)
    if night.earlier or night.baselines:
        explained = explain_root_cause(night, findings)
    past = night.earlier or night.history
    return explained, find_unwatched_drops(settings, night, explained) if past else []


def for_later_nights(
    settings: AlertSettings, manifest: Manifest, scores: Mapping[str, MetricScores]
) -> Manifest:
    """The manifest with what later nights need to find slow declines."""
    if settings.limit("slow_decline") is None:
        return manifest
    watched = list(dict.fromkeys(rule.metric for rule in rules_of(settings)))
    return with_tag_means(settings, watched, manifest, scores)


def check_rules(settings: Settings) -> None:
    """Raise InputError for an alert rule that cannot work: its metric is unknown or not scored, or
    its limit is beyond all means or below all means.
    """
    check_limits(settings.alerts)
    scored = {metric.name: metric for metric in chosen_metrics(settings)}
    for rule in settings.alerts.rules or ():
        if rule.metric not in scored:
            raise InputError(
                f"alerts: rules: {rule.metric!r} is not scored; scored are: {', '.join(scored)}"
            )
        if not scored[rule.metric].higher_is_better:
            raise InputError(
                f"alerts: rules: in {rule.metric!r} lower is better, but min and max_drop are for "
                "metrics in which higher is better"
            )
        scored[rule.metric].check_limit(rule.max_drop, "alerts", rule.min)
        scored[rule.metric].check_limit(rule.worse_by, "alerts", name="worse_by")
