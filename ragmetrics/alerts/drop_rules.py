"""`max_drop` rules: how far a mean fell, tonight or since its spell began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragmetrics.alerts.baselines import NoBaseline, find_baseline
from ragmetrics.alerts.context import Baseline, NightContext
from ragmetrics.alerts.firing_history import was_firing
from ragmetrics.alerts.judge_drift import without_judge_drift
from ragmetrics.alerts.judge_movement import find_movement
from ragmetrics.alerts.like_with_like import drop_between
from ragmetrics.alerts.question_mix import RowSelection
from ragmetrics.alerts.rule_check import Limit, RuleCheck, no_data, start_finding, too_few
from ragmetrics.alerts.stale_labels import without_stale_labels
from ragmetrics.config import Rule, drop_name
from ragmetrics.model import (
    ComparedMeans,
    Finding,
    Segment,
    Summary,
    compared_words,
    drop_text,
    mix_text,
    movement_text,
)
from ragmetrics.stats import Drop, QuestionValues

_TOLD_ALONE = 0.05
"""Share of questions with no like before, from which it is told."""


def check_drop(
    rule: Rule, limit: float, segment: Segment | None, night: NightContext, now: Summary | None
) -> RuleCheck:
    """Measure tonight against the rule's baseline; `family.decide` says what it comes to.

    A firing alert that has nothing to be compared with is unjudged: it must not look resolved.
    """
    named = Limit(
        limit,
        drop_name(limit, rule.versus),
        f"drop of more than {limit:g} against {_versus(rule.versus)}",
    )
    finding = start_finding(rule, named, segment, night, now)
    if short := too_few(rule, finding, night, now):
        return short
    baseline = find_baseline(rule, night, finding.key)
    if isinstance(baseline, NoBaseline):
        return _incomparable(rule, finding, night, baseline)
    firing = was_firing(night.earlier, finding.key)
    line = min(limit, rule.clear) if firing and rule.clear is not None else limit
    case = measure_drop(rule, finding, night, baseline, line)
    if case is None or case.baseline is None:
        few = NoBaseline("too few questions shared with earlier nights")
        return _incomparable(rule, finding, night, few)
    night.baselines[finding.key] = case.baseline
    # Tonight with one of `for` baselines, and two to `for` nights together.
    comparisons = rule.for_ if baseline.fixed else 2 * rule.for_ - 1
    return replace(case, comparisons=comparisons, was_firing=firing)


def measure_drop(
    rule: Rule, finding: Finding, night: NightContext, baseline: Baseline, line: float
) -> RuleCheck | None:
    """The drop from a baseline to tonight, less what judge drift and stale labels explain of it;
    None where there are less than two questions to compare.
    """
    segment = finding.segment
    measured = _measure(rule, segment, night, baseline, line)
    if measured is None:
        return None
    beyond = measured.alone > line
    moves = _movement(night, rule.metric) if beyond else ""
    told = finding.model_copy(update=_told(measured, finding.limit or 0.0, moves))
    case = RuleCheck(rule, told, measured.drop, beyond=beyond, baseline=measured.baseline)
    case = without_judge_drift(case, night, measured.alone, line)
    return without_stale_labels(case, night, segment, line)


@dataclass(frozen=True)
class _Measured:
    """The surer of two drops: tonight's, or that of all nights of the spell together."""

    drop: Drop
    alone: float
    """Tonight's own drop."""
    before: float
    """Mean of all rows of the baseline; `drop` has that of the questions compared."""
    baseline: Baseline
    """Without a spell where tonight alone is told."""


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
    told = replace(baseline, spell=spell if drop is not alone else ())
    return _Measured(drop, alone.drop, _mean(before), told)


def _movement(night: NightContext, metric: str) -> str:
    """How far the judge moves from night to night, where that is known to be something."""
    found = find_movement(night, metric)
    return movement_text(found) if found and found.sd is not None else ""


def _told(measured: _Measured, limit: float, moves: str) -> dict[str, Any]:
    """What the finding says of the drop, in numbers and in words, which `family.decide` completes.

    Both means in them are of the questions that the drop is measured on.
    """
    drop, baseline = measured.drop, measured.baseline
    means = ComparedMeans(
        before=drop.before, now=drop.now, questions=drop.questions, paired=drop.paired
    )
    over = f" in {len(baseline.spell) + 1} nights" if baseline.spell else ""
    change = drop_text(drop.drop, drop.low, drop.high)
    return {
        "message": (
            f"from {compared_words(means, ' to ')}{over} ({baseline.label}); "
            f"{_mix(drop)}{change}, limit {limit:g}{moves and '; '}{moves}"
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
    """What of the drop is the mix, ahead of what is left of it; empty where that is nothing."""
    told = [mix_text(drop.before - drop.now, drop.mix, drop.mix_tags)]
    if told[0] and drop.alone >= _TOLD_ALONE:
        told.append(f"{drop.alone:.0%} of the questions have tags that are new or were rare before")
    return "; ".join([*told, "like for like "]) if told[0] else ""


def _mean(nights: Sequence[QuestionValues]) -> float:
    total, rows = 0.0, 0
    for values in (values for night in nights for values in night.values()):
        total, rows = total + sum(values), rows + len(values)
    return total / rows


def _incomparable(
    rule: Rule, finding: Finding, night: NightContext, lacking: NoBaseline
) -> RuleCheck:
    """Nothing to compare with yet is fine; what no further night can mend is no data."""
    if lacking.for_good:
        return no_data(rule, finding, f"{finding.metric}: {lacking.reason}")
    text = f"{finding.metric}: nothing to compare with yet: {lacking.reason}"
    if was_firing(night.earlier, finding.key):
        firing = finding.model_copy(update={"message": text, "level": "breach"})
        return RuleCheck(rule, firing, unjudged=True)
    return RuleCheck(rule, finding.model_copy(update={"message": text, "compared": False}))


def _versus(versus: str) -> str:
    kind, _, which = versus.partition(":")
    return {
        "previous": "the previous night",
        "trailing": f"the {which} nights before",
        "pinned": f"run {which}",
        "serving": "the serving index build",
    }[kind]
