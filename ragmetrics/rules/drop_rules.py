"""Rules on a mean: `max_drop`, its drop tonight or since its incident began; `min`, its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from ragmetrics.config import Rule, drop_name, least_name
from ragmetrics.records import (
    ComparedMeans,
    Finding,
    Level,
    Segment,
    Summary,
    compared_words,
    mix_text,
    movement_text,
)
from ragmetrics.rules.context import Baseline, NightContext, NoBaseline, find_baseline, was_firing
from ragmetrics.rules.dependent_tests import rule_links
from ragmetrics.rules.judge_drift import mean_without_drift, without_judge_drift
from ragmetrics.rules.judge_movement import find_movement
from ragmetrics.rules.question_mix import RowSelection, drop_between
from ragmetrics.rules.rule_check import (
    Limit,
    RuleCheck,
    alert_key,
    no_data,
    of_segment,
    start_finding,
    too_few,
)
from ragmetrics.rules.stale_labels import mean_without_stale_labels, without_stale_labels
from ragmetrics.stats import Drop, QuestionValues
from ragmetrics.text import drop_text

_SHOWN_UNMATCHED = 0.05
"""From this share on, the message shows the share of questions without similar earlier ones."""


def check_drop(
    rule: Rule, limit: float, segment: Segment | None, night: NightContext, now: Summary | None
) -> RuleCheck:
    """Measure tonight's drop from the rule's baseline; `multiple_testing.decide` decides on it.

    A firing alert without anything to compare with is unjudged: it must not look resolved.
    """
    named = Limit(
        limit,
        drop_name(limit, rule.versus),
        f"drop of more than {limit:g}{_share(rule)} against {_versus(rule.versus)}",
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
    firing = was_firing(night.earlier, finding.key)
    line = min(limit, rule.clear) if firing and rule.clear is not None else limit
    case = measure_drop(rule, finding, night, baseline, line)
    if case is None or case.baseline is None:
        few = NoBaseline("too few questions shared with earlier nights")
        return _incomparable(rule, finding, night, few)
    night.baselines[finding.key] = case.baseline
    # Tonight alone with one of `for` baselines, or two to `for` nights together.
    comparisons = rule.for_ if baseline.fixed else 2 * rule.for_ - 1
    return replace(case, comparisons=comparisons, was_firing=firing)


def measure_drop(
    rule: Rule, finding: Finding, night: NightContext, baseline: Baseline, line: float
) -> RuleCheck | None:
    """The drop from a baseline to tonight, without what judge drift and stale labels explain; None
    where there are less than two questions to compare.
    """
    segment = finding.segment
    measured = _measure(rule, segment, night, baseline, line)
    if measured is None:
        return None
    beyond = measured.alone > line
    moves = _movement(night, rule.metric) if beyond else ""
    found = finding.model_copy(update=_describe(measured, finding.limit or 0.0, moves))
    case = RuleCheck(rule, found, measured.drop, beyond=beyond, baseline=measured.baseline)
    case = without_judge_drift(case, night, measured.alone, line)
    return without_stale_labels(case, night, segment, line)


def with_links(case: RuleCheck) -> RuleCheck:
    """The check of a drop with the correlations of its comparisons. With `serving` they are not
    known: another build may be the baseline while an incident lasts.
    """
    rule, baseline = case.rule, case.baseline
    if case.drop is None or baseline is None or rule.versus == "serving":
        return case
    before = len(baseline.nights)
    return replace(case, links=rule_links(rule.for_, before, fixed=baseline.fixed))


@dataclass(frozen=True)
class _Measured:
    """The drop with the smaller p value: of tonight, or of all nights of the incident together."""

    drop: Drop
    alone: float
    """Drop of tonight alone."""
    before: float
    """Mean of all rows of the baseline; `drop` has the mean of the compared questions."""
    baseline: Baseline
    """The baseline, without incident nights where the drop is that of tonight alone."""


def _measure(
    rule: Rule, segment: Segment | None, night: NightContext, baseline: Baseline, line: float
) -> _Measured | None:
    """None where there are less than two questions to compare."""
    before = night.questions(rule.metric, segment, baseline.nights, baseline.build)
    tonight: QuestionValues = night.scores[rule.metric].by_question(segment)
    which = RowSelection(rule.metric, segment)
    alone = drop_between(night, which, baseline, before, [tonight])
    if alone is None:
        return None
    drop, spell = alone, list(baseline.spell)
    if spell and alone.drop > line:
        everything = [*night.questions(rule.metric, segment, spell), tonight]
        pooled = drop_between(night, which, baseline, before, everything)
        if pooled and pooled.drop > line and pooled.p_value < alone.p_value:
            drop = pooled
    used = replace(baseline, spell=spell if drop is not alone else ())
    return _Measured(drop, alone.drop, _mean(before), used)


def _movement(night: NightContext, metric: str) -> str:
    """The judge's movement from night to night in words, where it is known and not 0."""
    found = find_movement(night, metric)
    return movement_text(found) if found and found.sd is not None else ""


def _describe(measured: _Measured, limit: float, moves: str) -> dict[str, Any]:
    """The drop in numbers and in words, as fields of the finding. `decide` completes the words.

    Both means in the words are over the questions that the drop is measured on.
    """
    drop, baseline = measured.drop, measured.baseline
    means = ComparedMeans(
        before=drop.before, now=drop.now, questions=drop.questions, paired=drop.paired
    )
    over = f" in {len(baseline.spell) + 1} nights" if baseline.spell else ""
    change = drop_text(drop.drop, drop.low, drop.high)
    return {
        "message": (
            f"from {compared_words(means, ' to ')}{over} ({baseline.label}{baseline.note}); "
            f"{_mix(drop)}{change}, limit {limit:.3g}{moves and '; '}{moves}"
        ),
        "means": means,
        "baseline": measured.before,
        "baseline_label": baseline.label,
        "drop": drop.drop,
        "drop_low": drop.low,
        "drop_high": drop.high,
        "paired": drop.paired,
        "p_value": drop.p_value,
        "for_nights": None,
        "mix": drop.mix,
        "mix_tags": list(drop.mix_tags),
    }


def _mix(drop: Drop) -> str:
    """The part of the drop that is the mix, as the beginning of a sentence; empty where it is 0."""
    parts = [mix_text(drop.before - drop.now, drop.mix, drop.mix_tags)]
    if parts[0] and drop.alone >= _SHOWN_UNMATCHED:
        parts.append(
            f"{drop.alone:.0%} of the questions have tags that are new or were rare before"
        )
    return "; ".join([*parts, "like for like "]) if parts[0] else ""


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
    text = f"{finding.metric}: nothing to compare with yet: {lacking.reason}"
    if was_firing(night.earlier, finding.key):
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


def check_min(
    rule: Rule, limit: float, segment: Segment | None, night: NightContext, now: Summary | None
) -> RuleCheck:
    """Breach where the mean and its whole interval are below the limit, suspect where only the mean
    is.

    A firing alert stays suspect until the mean is back at `clear`.
    """
    named = Limit(limit, least_name(limit), f"below {limit:g}")
    finding = start_finding(rule, named, segment, night, now)
    if (short := too_few(rule, finding, night, now)) or now is None or now.mean is None:
        return short or RuleCheck(rule, finding)
    firing, explained, drift = was_firing(night.earlier, finding.key), None, ""
    level = _level(rule, limit, now, firing)
    if level != "ok" and (lifted := mean_without_drift(now, night)):
        level, explained = _level(rule, limit, lifted.without, firing), lifted.explained
        drift = f"; {lifted.text}"
    if level != "ok" and (live := mean_without_stale_labels(rule, now, night)):
        left, drift = live
        level = _level(rule, limit, left, firing) if left else "ok"
        explained = (left.mean or 0.0) - now.mean if left else None
    interval = "" if now.low is None or now.high is None else f" [{now.low:.3f}, {now.high:.3f}]"
    text = f"{finding.metric}{of_segment(segment)} is {now.mean:.3f}{interval}, limit {limit:g}"
    result = {"level": level, "message": text + drift, "mde": now.mde, "explained": explained}
    return RuleCheck(rule, finding.model_copy(update=result))


def _level(rule: Rule, limit: float, now: Summary, firing: bool) -> Level:
    mean = now.mean or 0.0
    if mean < limit:
        return "breach" if now.significantly_worse_than(limit) else "suspect"
    return "suspect" if firing and rule.clear is not None and mean < rule.clear else "ok"
