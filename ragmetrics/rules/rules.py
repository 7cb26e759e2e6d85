"""Evaluates the checks and the alert rules of a night, and validates those of the settings.

checks of the night -> checks of scores -> rules -> checks after the rules
rules x segments -> limits (`min_rules`, `drop_rules`) -> `rule_check.decide` -> findings
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ragmetrics.config import AlertSettings, Rule, Settings
from ragmetrics.errors import InputError
from ragmetrics.plugins import TookTooLong, UnusablePlugin, in_time
from ragmetrics.records import TOPIC, Finding, Manifest, Segment, Summary, UnwatchedDrop
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.drop_rules import check_drop, with_links
from ragmetrics.rules.escalation import escalate
from ragmetrics.rules.min_rules import check_min, with_min_chance
from ragmetrics.rules.night_check import (
    CHECKS,
    RULES_ORDER,
    Check,
    Evaluate,
    Stage,
    Tonight,
    bundled_checks,
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
from ragmetrics.text import clean, shorten

SEGMENT_DAYS = 7
"""Days before tonight: a segment of these nights without a row tonight is `no_data`."""
LONGEST_SECONDS = 60.0
"""Longest time that a check of another package may take in a night."""
_ANY = "(any)"
"""Placeholder for a tag's value where no row has one."""


def evaluate_rules(settings: AlertSettings, night: NightContext) -> list[Finding]:
    """All findings of a night, causes first.

    Without data, or on the rows of an earlier night, no metric rule is evaluated, and no rule on a
    metric whose judge failed. A labelled set without verdicts suppresses nothing.
    """
    health = _checks("night", settings, night)
    if any(map(suppresses_rules, health)):
        return [_clean(finding) for finding in health]
    health += _checks("scores", settings, night)
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
    late = _checks("rules", settings, night, rules, cases, found)
    return [_clean(finding) for finding in sorted((*health, *found, *late), key=_place)]


def _checks(
    stage: Stage,
    settings: AlertSettings,
    night: NightContext,
    rules: Sequence[Rule] = (),
    cases: Sequence[RuleCheck] = (),
    found: Sequence[Finding] = (),
) -> list[Finding]:
    """The findings of the checks of a stage, in the order of the checks."""
    return [
        finding
        for check in _chosen(settings)
        if not check.skips(night, settings)
        for finding in _evaluate(Tonight(check, settings, night, rules, cases, found), stage)
    ]


def _chosen(settings: AlertSettings) -> list[Check]:
    """The bundled checks, and those of other packages that the settings name."""
    named = [name for name in settings.checks if name not in CHECKS.bundled_names]
    return sorted([*bundled_checks(), *map(_foreign, named)], key=lambda check: check.order)


def _foreign(name: str) -> Check:
    """The check of another package; where it cannot be loaded, one that says so each night."""
    try:
        return CHECKS.find(name)
    except UnusablePlugin as error:
        reason = str(error)
        return Check(name, evaluate=lambda tonight: [_failed(tonight, reason)], needs=())


def _evaluate(tonight: Tonight, stage: Stage) -> Iterable[Finding]:
    check = tonight.check
    steps = [check.evaluate] if check.stage == stage else []
    steps += [check.after_rules] if stage == "rules" else []
    if check.name in CHECKS.bundled_names:
        return [finding for step in steps for finding in step(tonight)]
    return [finding for step in steps for finding in _of_others(tonight, step)]


def _of_others(tonight: Tonight, step: Evaluate) -> Sequence[Finding]:
    """The findings of another package's check. One that fails costs only itself."""
    try:
        findings = in_time(lambda: list(step(tonight)), LONGEST_SECONDS)
    except TookTooLong:
        return [_failed(tonight, f"took over {LONGEST_SECONDS:g} s")]
    except Exception as error:
        return [_failed(tonight, f"failed: {shorten(repr(error))}")]
    if not all(tonight.check.made(finding, tonight.manifest) for finding in findings):
        return [_failed(tonight, "returned something else than findings of its name")]
    if len({finding.key for finding in findings}) < len(findings):
        return [_failed(tonight, "returned two findings of one key")]
    return findings


def _failed(tonight: Tonight, reason: str) -> Finding:
    name = tonight.check.name
    return tonight.finding("no_data", f"check {name} can be evaluated", f"{name}: {reason}")


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
        if not scored[rule.metric].higher_is_better and rule.min is not None:
            raise InputError(
                f"alerts: rules: {rule.metric!r} has no min, because higher is not better in it: "
                "give max_drop, the largest change for the worse"
            )
        scored[rule.metric].check_limit(rule.max_drop, "alerts", rule.min)
        scored[rule.metric].check_limit(rule.worse_by, "alerts", name="worse_by")
