"""`max_drop` rules: how far a mean fell, tonight or since its spell began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics.alert_settings import Rule, drop_name
from ragmetrics.alerts.baselines import Lacking, find_baseline
from ragmetrics.alerts.cases import (
    Case,
    Limit,
    no_data,
    of_segment,
    start_finding,
    too_few,
)
from ragmetrics.alerts.evidence import Baseline, Night, Questions, held_against
from ragmetrics.alerts.judge_drift import less_judge_drift
from ragmetrics.alerts.movement import find_movement, level_between
from ragmetrics.alerts.spells import was_firing
from ragmetrics.alerts.turnover import less_stale_labels
from ragmetrics.changes import NO_CHANGE, drop_text
from ragmetrics.judge_movement import movement_text
from ragmetrics.records import Finding, Segment, Summary
from ragmetrics.stats.comparisons import Drop
from ragmetrics.stats.night_movement import with_movement


def hold_drop(
    rule: Rule, limit: float, segment: Segment | None, night: Night, now: Summary | None
) -> Case | None:
    """Measure tonight against the rule's baseline; `family.decide` says what it comes to.

    None where a firing alert has nothing to be compared with: it must not look resolved.
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
    if isinstance(baseline, Lacking):
        return _incomparable(rule, finding, night, baseline)
    firing = was_firing(night.earlier, finding.key)
    line = min(limit, rule.clear) if firing and rule.clear is not None else limit
    measured = _measure(rule, segment, night, baseline, line)
    if measured is None:
        few = Lacking("too few questions shared with earlier nights")
        return _incomparable(rule, finding, night, few)
    night.baselines[finding.key] = measured.baseline
    moves = _movement(night, rule.metric) if measured.alone > line else ""
    case = Case(
        rule,
        finding.model_copy(update=_told(finding, measured, limit, moves)),
        measured.drop,
        # Tonight with one of `for` baselines, and two to `for` nights together.
        rule.for_ if baseline.fixed else 2 * rule.for_ - 1,
        measured.alone > line,
        firing,
    )
    case = less_judge_drift(case, night, measured.alone, line)
    return less_stale_labels(case, night, segment, line)


@dataclass(frozen=True)
class _Measured:
    """The surer of two drops: tonight's, or that of all nights of the spell together."""

    drop: Drop
    alone: float
    """Tonight's own drop."""
    before: float
    after: float
    baseline: Baseline
    """Without a spell where tonight alone is told."""


def _measure(
    rule: Rule, segment: Segment | None, night: Night, baseline: Baseline, line: float
) -> _Measured | None:
    """None where there are less than two questions to compare."""
    before = night.questions(rule.metric, segment, baseline.nights, baseline.build)
    tonight: Questions = night.scores[rule.metric].by_question(segment)
    alone = _held(night, rule.metric, baseline, before, [tonight])
    if alone is None:
        return None
    drop, now, spell = alone, [tonight], list(baseline.spell)
    if spell and alone.drop > line:
        everything = [*night.questions(rule.metric, segment, spell), tonight]
        pooled = _held(night, rule.metric, baseline, before, everything)
        if pooled and pooled.drop > line and pooled.p_value < alone.p_value:
            drop, now = pooled, everything
    told = Baseline(
        baseline.nights,
        baseline.label,
        baseline.build,
        spell if drop is not alone else (),
        baseline.fixed,
    )
    return _Measured(drop, alone.drop, _mean(before), _mean(now), told)


def _held(
    night: Night,
    metric: str,
    baseline: Baseline,
    before: Sequence[Questions],
    now: Sequence[Questions],
) -> Drop | None:
    """The drop from the baseline to tonight, or to the spell with it, as sure as the judge's
    movement from night to night allows."""
    drop = held_against(before, now)
    if drop is None:
        return None
    nights = [*baseline.spell, night.manifest][-len(now) :]
    return with_movement(drop, level_between(night, metric, baseline.nights, nights))


def _movement(night: Night, metric: str) -> str:
    """How far the judge moves from night to night, where that is known to be something."""
    found = find_movement(night, metric)
    return movement_text(found) if found and found.sd is not None else ""


def _told(finding: Finding, measured: _Measured, limit: float, moves: str) -> dict[str, Any]:
    """What the finding says of the drop, in numbers and in one sentence."""
    drop, baseline = measured.drop, measured.baseline
    over = f" over {len(baseline.spell) + 1} nights" if baseline.spell else ""
    change = drop_text(drop.drop, drop.low, drop.high)
    # Means are of all rows, and the drop of the questions compared: either may go the other way.
    fell = drop.drop > 0 and measured.after < measured.before and not change.startswith(NO_CHANGE)
    message = (
        f"{finding.metric}{of_segment(finding.segment)} {'fell' if fell else 'went'} "
        f"from {measured.before:.3f} ({baseline.label}) to {measured.after:.3f}{over}; {change} "
        f"over {drop.questions} {'shared ' if drop.paired else ''}questions, limit {limit:g}"
        f"{moves and '; '}{moves}"
    )
    return {
        "message": message,
        "baseline": measured.before,
        "baseline_label": baseline.label,
        "drop": drop.drop,
        "drop_low": drop.low,
        "drop_high": drop.high,
        "paired": drop.paired,
        "p_value": drop.p_value,
        "for_nights": None,
    }


def _mean(nights: Sequence[Questions]) -> float:
    total, rows = 0.0, 0
    for values in (values for night in nights for values in night.values()):
        total, rows = total + sum(values), rows + len(values)
    return total / rows


def _incomparable(rule: Rule, finding: Finding, night: Night, lacking: Lacking) -> Case | None:
    """Nothing to compare with yet is fine; what no further night can mend is no data."""
    if lacking.for_good:
        return no_data(rule, finding, f"{finding.metric}: {lacking.reason}")
    if was_firing(night.earlier, finding.key):
        return None
    text = f"{finding.metric}: nothing to compare with yet: {lacking.reason}"
    return Case(rule, finding.model_copy(update={"message": text, "compared": False}))


def _versus(versus: str) -> str:
    kind, _, which = versus.partition(":")
    return {
        "previous": "the previous night",
        "trailing": f"the {which} nights before",
        "pinned": f"run {which}",
        "serving": "the serving index build",
    }[kind]
