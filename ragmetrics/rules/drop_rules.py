"""The `max_drop` of a rule: the drop of a mean tonight, or since its incident began."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ragmetrics.config import Rule, drop_name
from ragmetrics.records import ComparedMeans, Finding, Segment, Summary
from ragmetrics.rules.context import Baseline, NightContext, NoBaseline, find_baseline
from ragmetrics.rules.corrections import Corrected
from ragmetrics.rules.dependent_tests import rule_links
from ragmetrics.rules.question_mix import RowSelection
from ragmetrics.rules.rule_check import Limit, RuleCheck, alert_key, no_data, start_finding, too_few
from ragmetrics.rules.sides import NightSides
from ragmetrics.stats import QuestionValues


def check_drop(
    rule: Rule, limit: float, segment: Segment | None, night: NightContext, now: Summary | None
) -> RuleCheck:
    """Measure tonight's drop from the rule's baseline; `rule_check.decide` decides on it.

    A firing alert without anything to compare with is unjudged: it must not look resolved.
    """
    better = now.higher_is_better if now else True
    what = {True: "drop", False: "rise", None: "change"}[better]
    named = Limit(
        limit,
        drop_name(limit, rule.versus),
        f"{what} of more than {limit:g}{_share(rule)} against {_versus(rule.versus)}",
    )
    finding = start_finding(rule, named, segment, night, now)
    if rule.former_limit:
        former = alert_key(night, rule.metric, segment, rule.former_limit)
        finding = finding.model_copy(update={"renamed_from": former})
    if short := too_few(rule, finding, night, now):
        return short
    baseline = find_baseline(rule, night, finding.key)
    if isinstance(baseline, NoBaseline):
        return _incomparable(rule, finding, night, baseline)
    if rule.max_share is not None:
        limit = rule.allowed_drop(_reference(rule.metric, segment, night, baseline))
        finding = finding.model_copy(update={"limit": limit})
    firing = night.was_firing(finding.key)
    line = min(limit, rule.clear) if firing and rule.clear is not None else limit
    ways = (False, True) if better is None else (not better,)
    either = [
        measured
        for rise in ways
        if (measured := measure_drop(rule, finding, night, baseline, line, rise=rise))
    ]
    case = max(either, key=lambda one: one.drop.drop if one.drop else -math.inf, default=None)
    if case is None or case.baseline is None:
        few = NoBaseline("too few questions shared with earlier nights")
        return _incomparable(rule, finding, night, few)
    night.baselines[finding.key] = case.baseline
    # Tonight alone with one of `for` baselines, or two to `for` nights together.
    comparisons = rule.for_ if baseline.fixed else 2 * rule.for_ - 1
    return replace(case, comparisons=comparisons, ways=len(ways), was_firing=firing)


def measure_drop(
    rule: Rule,
    finding: Finding,
    night: NightContext,
    baseline: Baseline,
    line: float,
    *,
    rise: bool = False,
) -> RuleCheck | None:
    """The drop from a baseline with the whole list of corrections: of tonight, or of all nights of
    the incident together where that has the smaller p. With `rise` it is a rise, of the negated
    scores. None where there are less than two questions to compare.
    """
    sign, tonight = -1 if rise else 1, [night.manifest]
    rows = RowSelection(rule.metric, finding.segment, sign=sign)
    sides = NightSides(night, rows, replace(baseline, spell=()), tonight, rule.min_rows)
    if (alone := sides.corrected()) is None:
        return None
    drop, used = alone, sides.baseline
    if baseline.spell and alone.measured.drop > line:
        nights = [*baseline.spell, *tonight]
        pooled = replace(sides, baseline=baseline, now=nights).corrected()
        best = alone.measured.p_value
        if pooled and pooled.measured.drop > line and pooled.measured.p_value < best:
            drop, used = pooled, baseline
    return RuleCheck(
        rule,
        finding.model_copy(update=_numbers(drop, _mean(sides.before), baseline, sign)),
        drop.left,
        beyond=alone.left is not None and alone.left.drop > line,
        baseline=used,
        corrected=drop,
    )


def with_links(case: RuleCheck) -> RuleCheck:
    """The check of a drop with the correlations of its comparisons. With `serving` they are not
    known: another build may be the baseline while an incident lasts.
    """
    rule, baseline = case.rule, case.baseline
    if case.drop is None or baseline is None or rule.versus == "serving":
        return case
    before = len(baseline.nights)
    return replace(case, links=rule_links(rule.for_, before, fixed=baseline.fixed))


def _numbers(corrected: Corrected, before: float, baseline: Baseline, sign: int) -> dict[str, Any]:
    """The measured drop as fields of the finding; `before` is the mean of all rows before."""
    drop = corrected.measured
    ends = replace(drop, before=sign * drop.before, now=sign * drop.now)
    return {
        "means": ComparedMeans.model_validate(ends, from_attributes=True),
        "rise": sign < 0,
        "baseline": before,
        "baseline_label": baseline.label,
        "drop": drop.drop,
        "drop_low": drop.low,
        "drop_high": drop.high,
        "paired": drop.paired,
        "p_value": drop.p_value,
        "for_nights": None,
        "mix": drop.mix,
        "mix_tags": list(drop.mix_tags),
        "explained": corrected.explained,
    }


def _mean(nights: Sequence[QuestionValues]) -> float:
    total, rows = 0.0, 0
    for values in (values for night in nights for values in night.values()):
        total, rows = total + sum(values), rows + len(values)
    return total / rows


def _incomparable(
    rule: Rule, finding: Finding, night: NightContext, lacking: NoBaseline
) -> RuleCheck:
    """The result without a baseline: ok where a later night will have one, else no data."""
    if lacking.for_good:
        return no_data(rule, finding, f"{finding.metric}: {lacking.reason}")
    text = f"{finding.metric}: not compared yet: {lacking.reason}"
    if night.was_firing(finding.key):
        firing = finding.model_copy(update={"message": text, "level": "breach"})
        return RuleCheck(rule, firing, unjudged=True)
    return RuleCheck(rule, finding.model_copy(update={"message": text, "compared": False}))


def _reference(
    metric: str, segment: Segment | None, night: NightContext, baseline: Baseline
) -> float | None:
    """The mean of a baseline, for a limit that is a share of it; None where no row is scored."""
    if segment is None and baseline.build is None:
        summaries = (one.summary(metric) for one in baseline.nights)
        means = [one.mean for one in summaries if one and one.mean is not None]
        return fmean(means) if means else None
    values = night.questions(metric, segment, baseline.nights, baseline.build)
    return _mean(values) if any(values) else None


def _share(rule: Rule) -> str:
    return "" if rule.max_share is None else f", or of more than {rule.max_share:.0%} of the mean,"


def _versus(versus: str) -> str:
    kind, _, which = versus.partition(":")
    return {
        "previous": "the previous night",
        "trailing": f"the {which} nights before",
        "pinned": f"run {which}",
        "serving": "the serving index build",
    }[kind]
