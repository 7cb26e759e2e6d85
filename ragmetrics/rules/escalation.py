"""Escalations: firing alerts that are significantly worse than at their last notification.

    worse    tonight's mean is below that of the last notification by more than `worse_by` (with
             `for` the nights before tonight are added where p is smaller), and q < false_alarms
    q        Benjamini-Hochberg(p') over the firing alerts,   p' = min(1, p * comparisons)

The drop is measured as that of a rule: paired by question where questions recur, without what judge
drift and stale labels explain. After a notification the new level is the reference. So a level that
goes up and down by less than `worse_by` escalates once, and noise hardly ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragmetrics.config import Rule
from ragmetrics.records import Escalation, Finding, Manifest, Notification
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.drop_rules import measure_drop
from ragmetrics.rules.rule_check import RuleCheck, chance_of
from ragmetrics.stats import Drop, adjust_p_values, compare


def escalate(
    cases: Sequence[RuleCheck],
    findings: Sequence[Finding],
    night: NightContext,
    false_alarms: float,
) -> list[Finding]:
    """The findings of all checks, in their order, with their escalations."""
    measured = [
        _since_notified(case, finding, night) for case, finding in zip(cases, findings, strict=True)
    ]
    drops = [(one, one.drop) for one in measured if one and one.drop]
    chances = iter(adjust_p_values([chance_of(one, drop) for one, drop in drops]))
    return [
        _escalated(finding, since, since.drop, next(chances), night, false_alarms)
        if since and since.drop
        else finding
        for since, finding in zip(measured, findings, strict=True)
    ]


def _since_notified(case: RuleCheck, finding: Finding, night: NightContext) -> RuleCheck | None:
    """The drop of a firing alert since its last notification; None where it is not known."""
    notified = _last_notification(night, finding)
    if notified is None or notified.level == "no_data" or not finding.metric:
        return None
    if finding.level not in ("breach", "suspect"):
        return None
    if (notified.night, notified.run) == (night.manifest.date, night.manifest.run):
        return _since_mean(case.rule, finding, notified, night)
    comparable = night.comparable(finding.metric)
    before = _reference(notified, finding.metric, night, comparable)
    if before is None:
        gone = bool(notified.run) and night.find_run(notified.run) is None
        told_alike = comparable or not night.earlier
        return _since_mean(case.rule, finding, notified, night) if gone and told_alike else None
    since = [one for one in comparable if one.date > before.date]
    spell = since[-(case.rule.for_ - 1) :] if case.rule.for_ > 1 else []
    baseline = Baseline([before], before.date.isoformat(), spell=spell)
    step = _step(case.rule, notified)
    found = measure_drop(case.rule, finding, night, baseline, step, rise=finding.rise)
    return replace(found, comparisons=2 if spell else 1) if found else None


def _step(rule: Rule, notified: Notification) -> float:
    """The further drop that escalates; never more than a share of the mean in the last message."""
    if rule.max_share is None or notified.mean is None or rule.worse_by is not None:
        return rule.step
    return min(rule.step, rule.max_share * max(notified.mean, 0.0))


def _last_notification(night: NightContext, finding: Finding) -> Notification | None:
    return night.notified.get(finding.key) or night.notified.get(finding.renamed_from)


def _since_mean(
    rule: Rule, finding: Finding, notified: Notification, night: NightContext
) -> RuleCheck | None:
    """The drop from the mean in the last message, where the scores behind it are not stored: this
    run was published first with rows missing, or the manifest of that run could not be written. It
    has no correction, as there is no other side.
    """
    if notified.mean is None:
        return None
    sign = -1 if finding.rise else 1
    asked = night.scores[finding.metric or ""].by_question(finding.segment)
    tonight = {question: [sign * value for value in asked[question]] for question in asked}
    drop = compare({question: [sign * notified.mean] for question in tonight}, tonight)
    baseline = Baseline([night.manifest], notified.night.isoformat())
    beyond = drop is not None and drop.drop > _step(rule, notified)
    return RuleCheck(rule, finding, drop, beyond=beyond, baseline=baseline)


def _reference(
    notified: Notification, metric: str, night: NightContext, comparable: Sequence[Manifest]
) -> Manifest | None:
    """The run of the last notification; where it is not stored, or has another judge, the first
    comparable night since then.
    """
    for manifest in comparable:
        if manifest.date == notified.night and notified.run in ("", manifest.run):
            return manifest
    run = night.find_run(notified.run) if notified.run else None
    if run and run.date == notified.night and night.compares(run, metric):
        return run
    return next((one for one in comparable if one.date >= notified.night), None)


def _escalated(
    finding: Finding,
    case: RuleCheck,
    drop: Drop,
    p_value: float,
    night: NightContext,
    false_alarms: float,
) -> Finding:
    notified = _last_notification(night, finding) or Notification(night=night.manifest.date)
    limit = _step(case.rule, notified)
    if not case.beyond or drop.drop <= limit or p_value >= false_alarms:
        return finding
    found = Escalation(
        notified=notified,
        label=case.baseline.label if case.baseline else "",
        before=-drop.before if finding.rise else drop.before,
        now=-drop.now if finding.rise else drop.now,
        drop=drop.drop,
        low=drop.low,
        high=drop.high,
        p_value=p_value,
        n=drop.questions,
        limit=limit,
    )
    return finding.model_copy(update={"escalation": found})
