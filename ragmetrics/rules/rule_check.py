"""The check of one rule's limit on one segment of a night, and the decision on all checks.

The drop rules of a night are decided together, with control of the false discovery rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.metrics import bundled_metrics
from ragmetrics.records import Finding, Level, Segment, Status, Summary
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.corrections import Corrected
from ragmetrics.rules.dependent_tests import chance_of_any
from ragmetrics.rules.finding_words import drop_words
from ragmetrics.stats import Drop, adjust_p_values
from ragmetrics.storage import trailing_nights
from ragmetrics.text import clean

DEFAULT_RULES = (
    *(
        Rule(metric=metric, max_drop=0.05, max_share=0.25, versus="trailing:7")
        for metric in ("context_relevance", "context_recall")
    ),
    *(
        Rule(metric=metric, max_drop=0.1, max_share=0.25, versus="trailing:7", severity="warning")
        for metric in (
            "context_precision",
            "context_relevancy",
            "context_relevancy_chunks",
            "response_relevancy",
        )
    ),
)
"""The rules without `alerts: rules:`, which `init` fits to a log: all default metrics are watched,
those that say most of retrieval for smaller drops. 0.05 is a quarter of a mean of 0.2."""
WEEK = 7
"""Earlier nights whose rows decide whether a segment has enough rows for a rule."""


@dataclass(frozen=True)
class RuleCheck:
    """The result of one limit of a rule on one segment, taken alone."""

    rule: Rule
    finding: Finding
    drop: Drop | None = None
    """Tonight's drop, or that of all nights of the incident together: the one with smaller p. It
    is what judge drift and stale labels do not explain.
    """
    comparisons: int = 1
    """Number of comparisons that can make the rule fire; this drop is one of them."""
    links: tuple[float, ...] | None = None
    """The correlations of these comparisons (`stats.rule_links`); None: not counted."""
    ways: int = 1
    """2 where neither direction is better: a fall and a rise are two comparisons each."""
    beyond: bool = False
    """Whether tonight alone is beyond the line."""
    was_firing: bool = False
    baseline: Baseline | None = None
    """The baseline of the drop."""
    chance: float | None = None
    """p' of a `min`, where it is tested."""
    corrected: Corrected | None = None
    """The drop with its corrections."""
    unjudged: bool = False
    """A firing alert without anything to compare with: only an escalation gives a finding."""


@dataclass(frozen=True)
class Limit:
    """One of a rule's limits, with its name and its words."""

    value: float
    name: str
    """Its name in the key of the alert."""
    text: str


def rules_of(settings: AlertSettings) -> Sequence[Rule]:
    """The rules of the settings, or those without any."""
    return settings.rules if settings.rules is not None else DEFAULT_RULES


def alert_key(night: NightContext, metric: str, segment: Segment | None, limit: str) -> str:
    """The key of the alert of a limit."""
    return f"{night.manifest.dataset}/{metric}/{segment or 'all'}/{limit}"


def start_finding(
    rule: Rule, limit: Limit, segment: Segment | None, night: NightContext, now: Summary | None
) -> Finding:
    """A finding with the fields that do not depend on the result."""
    return Finding(
        key=alert_key(night, rule.metric, segment, limit.name),
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
    """The result `no_data` where there are fewer scored rows than the rule needs; else None.

    The message counts the other rows by reason. A segment that never had enough rows in the week
    before is `ok` and not compared: most segments of a tag with hundreds of values are small.
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
    most = max(rows, most_rows(finding, night))
    if finding.segment and 0 < most < rule.min_rows and not night.was_firing(finding.key):
        return RuleCheck(rule, finding.model_copy(update={"message": text, "compared": False}))
    return no_data(rule, finding, text)


def most_rows(finding: Finding, night: NightContext) -> int:
    """The most scored rows of the segment on a night of the week before, as far as recorded."""
    week = trailing_nights(night.earlier, night.manifest.date, WEEK)
    checked = [one.n for earlier in week for one in earlier.findings if one.key == finding.key]
    which = finding.metric, finding.segment
    shown = [
        segment.scored
        for earlier in week
        for segment in earlier.segments
        if (segment.metric, segment.segment) == which
    ]
    return max([*checked, *shown], default=0)


def no_data(rule: Rule, finding: Finding, message: str) -> RuleCheck:
    """The result of a rule that could not be evaluated, with the reason."""
    return RuleCheck(rule, finding.model_copy(update={"level": "no_data", "message": message}))


def of_segment(segment: Segment | None) -> str:
    """` of section=billing`; nothing for all rows."""
    return f" of {clean(str(segment), 80)}" if segment else ""


def decide(cases: Sequence[RuleCheck], false_alarms: float) -> list[Finding]:
    """The findings of all checks, in their order.

        q = Benjamini-Hochberg(p') over the tested limits
        p' = min(1, p * comparisons) where tonight is beyond the line, else 1

    A rule's history selects one of several comparisons each night, so p is multiplied by their
    number (Bonferroni). A check that is not beyond its line cannot fire, so its p' is 1: otherwise
    small drops of many rules would let false alarms of others pass. Where false alarms have a
    budget in time, p' is the chance that any of the comparisons has a p so small, by their
    correlations (`stats.chance_of_any`), and a `min` is tested too (`min_rules`).
    """
    tested = [_chance(case) for case in cases]
    family = sum(p is not None for p in tested)
    adjusted = adjust_p_values(tested) if family else tested
    return [
        _worded(case, case.finding)
        if q is None
        else _decided(case, case.drop, q, false_alarms, family)
        if case.drop
        else _tested_min(case.finding, q, false_alarms)
        for case, q in zip(cases, adjusted, strict=True)
    ]


def _chance(case: RuleCheck) -> float | None:
    """The p value of a check; None where nothing is tested."""
    return chance_of(case, case.drop) if case.drop else case.chance


def _tested_min(finding: Finding, q: float, false_alarms: float) -> Finding:
    update: dict[str, Any] = {"p_value": q, "for_nights": None}
    if finding.level != "ok":
        update["level"] = "breach" if q < false_alarms else "suspect"
    return finding.model_copy(update=update)


def _worded(case: RuleCheck, finding: Finding, remark: str = "") -> Finding:
    """The finding with its sentence; one without a drop has it already."""
    if case.corrected is None or case.baseline is None:
        return finding
    spell = case.baseline.spell
    over = f", in {len(spell) + 1} nights together" if spell else ""
    label = f"{case.baseline.label}{case.baseline.note}{over}"
    what = f"{finding.metric}{of_segment(finding.segment)}"
    text = drop_words(what, finding, case.corrected, label, beyond=case.beyond, remark=remark)
    return finding.model_copy(update={"message": text})


def can_fall(metric: str, mean: float) -> float:
    """How far a mean can fall: to 0 for bundled metrics; infinite where the scale is not known, and
    where a rise is for the worse.
    """
    known = bundled_metrics().get(metric)
    return mean if known and known.higher_is_better else math.inf


def chance_of(case: RuleCheck, drop: Drop) -> float:
    """The p value of a check's drop, counting the possible comparisons."""
    return _counted(case, drop.p_value) if case.beyond else 1.0


def _counted(case: RuleCheck, p_value: float) -> float:
    """The chance that any of a check's possible comparisons has a p so small."""
    if case.links is None:
        return min(1.0, p_value * case.comparisons * case.ways)
    return min(1.0, case.ways * float(chance_of_any(np.array(p_value), case.links)))


def _decided(
    case: RuleCheck, drop: Drop, p_value: float, false_alarms: float, family: int
) -> Finding:
    """Breach where the drop is beyond the line and significant. An alert fires while this is so.

    `mde` assumes that only this rule finds a drop: its level is that of the smallest p in
    Benjamini-Hochberg. It is for a spread like tonight's; whether the rule can see anything at all
    is also asked of a fall to 0, which leaves tonight no spread.
    """
    limit, significant = case.finding.limit or 0.0, p_value < false_alarms
    level: Level = "ok"
    remark = ""
    if case.beyond and significant:
        level = "breach" if drop.drop > limit else "suspect"
        if drop.low <= 0:
            # The interval is for questions like these; p may be for exactly these questions.
            remark = f"significant against each question's earlier scores (p {p_value:.4f})"
    elif case.beyond and not case.was_firing:
        level = "suspect"
    elif case.beyond:
        remark = "the nights since do not confirm the drop"
    each = false_alarms / (family * case.comparisons * case.ways)
    if case.links is not None:
        each *= case.comparisons * case.ways * each / _counted(case, each)
    mde = drop.detectable(each, limit)
    before = drop.before if case.finding.baseline is None else case.finding.baseline
    falls = can_fall(case.rule.metric, before)
    update = {
        "level": level,
        "p_value": p_value,
        "mde": mde,
        "sees": mde < falls or (limit < falls < math.inf and drop.p_of_all < each),
    }
    return _worded(case, case.finding.model_copy(update=update), remark)
