"""Drops and means of id metrics without the questions whose labels are stale."""

from __future__ import annotations

from dataclasses import replace

from ragmetrics.config import Rule
from ragmetrics.records import Segment, Summary
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.golden_dates import without_questions
from ragmetrics.rules.question_mix import RowSelection, drop_between
from ragmetrics.rules.rule_check import RuleCheck
from ragmetrics.scoring import summarise

ID_METRICS = ("id_recall", "id_precision", "hit_rate", "mrr", "ndcg")


def without_stale_labels(
    case: RuleCheck, night: NightContext, segment: Segment | None, line: float
) -> RuleCheck:
    """The check of a drop in an id metric, without the questions with stale labels."""
    baseline = case.baseline
    metric = case.finding.metric
    if not night.stale or metric not in ID_METRICS or baseline is None or case.drop is None:
        return case
    before = night.questions(metric, segment, baseline.nights, baseline.build)
    spell = night.questions(metric, segment, baseline.spell)
    tonight = night.scores[metric].by_question(segment)
    before, spell, (last,) = (
        [without_questions(one, night.stale) for one in side] for side in (before, spell, [tonight])
    )
    count = len(tonight) - len(last)
    if not count:
        return case
    note = (
        f"{case.finding.message}; the labels of {count:,} of {len(tonight):,} questions are stale"
    )
    if len(last) < case.rule.min_rows:
        finding = {"message": f"{note}, too few questions remain", "explained": case.drop.drop}
        return RuleCheck(case.rule, case.finding.model_copy(update=finding), baseline=baseline)
    which = RowSelection(metric, segment, night.stale)
    left = drop_between(night, which, baseline, before, [*spell, last])
    alone = drop_between(night, which, baseline, before, [last])
    if left is None or alone is None:
        return RuleCheck(
            case.rule, case.finding.model_copy(update={"message": note}), baseline=baseline
        )
    text = f"{note}, without them the drop is {left.drop:.3f} [{left.low:.3f}, {left.high:.3f}]"
    part = case.drop.drop - left.drop
    return replace(
        case,
        finding=case.finding.model_copy(update={"message": text, "explained": part}),
        drop=left,
        beyond=alone.drop > line,
    )


def mean_without_stale_labels(
    rule: Rule, now: Summary, night: NightContext
) -> tuple[Summary | None, str] | None:
    """Tonight's mean without the questions with stale labels, and a note on it. The mean is None
    where too few rows remain. The result is None where no label is stale.
    """
    scores = night.scores.get(now.metric)
    if not night.stale or now.metric not in ID_METRICS or scores is None:
        return None
    rows = scores.table[~scores.table["question"].isin(sorted(night.stale))]
    left = summarise(replace(scores, table=rows), "", now.segment)
    count = now.questions - left.questions
    if not count:
        return None
    note = f"; the labels of {count:,} of {now.questions:,} questions are stale"
    if left.mean is None or left.scored < rule.min_rows:
        return None, f"{note}, too few questions remain"
    return left, f"{note}, without them it is {left.mean:.3f}"


def stale_of(metric: str, night: NightContext) -> set[str]:
    """The questions that do not count for a metric: for an id metric, those with stale labels."""
    return night.stale if metric in ID_METRICS else set()
