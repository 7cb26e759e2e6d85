"""The corrections of a drop: what makes two sets of scores differ besides retrieval.

    align -> drop -> mix, judge movement, judge drift, stale labels -> decision -> words

A correction takes a drop and its two sides, and returns the drop that is left with a note. Every
comparison names its list; `CORRECTIONS` is the whole list, in the one order.

    mix             the earlier rows are weighted to the later mix of tags (`question_mix`)
    judge movement  error of a level that moves from night to night without a cause
    judge drift     left  = drop - f * move          f: share of the night's verdicts that are new
                    se^2  = se_drop^2 + f^2 * se_move^2
                    low   = left - sqrt((drop - low_drop)^2 + f^2 * (high_move - move)^2)
    stale labels    in a metric on ids, the drop of the questions whose labels are not stale

`move` is the drop of the judge's level on the fixed labelled set between the same nights. Only a
significant move in the direction of the drop counts. So a metric that fell because of its judge
alone does not fire, and one that fell further does.
Sources: Kish 1965, "Survey Sampling", for the variance of a difference; Newcombe 1998 for the
interval of one, its sides squared and added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from ragmetrics.people import carried_movement, fresh_share, level_error
from ragmetrics.records import JudgeMovement, Manifest, Summary
from ragmetrics.rules.coded_rows import RowCoder
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.judge_movement import find_movement, level_between
from ragmetrics.rules.level_series import spread_of_nights
from ragmetrics.rules.question_mix import MixedRows, RowSelection, like_by_tags, without_mix
from ragmetrics.scoring import MetricScores, summarise
from ragmetrics.stats import (
    Drop,
    LevelError,
    MeanDifference,
    QuestionValues,
    compare_nights,
    detectable,
    likely_movement,
    with_movement,
)

DRIFT_NIGHTS = 7
"""Nights before tonight that the judges' level is compared with, for a mean."""
SURE = 0.01
"""Significance level for a move of the judges, over all metrics together."""
ID_METRICS = ("id_recall", "id_precision", "hit_rate", "mrr", "ndcg")


@dataclass(frozen=True)
class JudgeFall:
    """A significant drop of the judges' level, and the share of the verdicts that it affects."""

    move: Drop
    share: float

    @property
    def part(self) -> float:
        """The part of a drop that it explains."""
        return self.share * self.move.drop


@dataclass(frozen=True)
class StaleRows:
    """The questions with stale labels among those of a side, and the drop without them."""

    stale: int
    of: int
    too_few: bool = False
    """Whether too few rows remain."""
    left: Drop | None = None


class Sides:
    """The two sides of a drop, as far as corrections ask: what is not known corrects nothing."""

    @property
    def movement(self) -> JudgeMovement | None:
        """The judge's movement from night to night."""
        return None

    def like_for_like(self, drop: Drop) -> Drop:
        """The drop for one mix of tags."""
        return drop

    def level(self, drop: Drop) -> LevelError | None:
        """The error that movement of the level adds to a drop."""
        return None

    def judge_fall(self) -> JudgeFall | None:
        """The significant fall of the judges' level between the sides."""
        return None

    def stale_rows(self) -> StaleRows | None:
        """What stale labels change; None where no label is stale."""
        return None


@dataclass(frozen=True)
class Note:
    """What a correction did. The words of a finding are made of these notes."""

    drop: Drop
    """The drop before the correction."""
    movement: JudgeMovement | None = None
    fall: JudgeFall | None = None
    stale: StaleRows | None = None
    left: Drop | None = None

    @property
    def explains(self) -> bool:
        """Whether the correction explains a part of the drop; others measure it."""
        return self.fall is not None or self.stale is not None

    @property
    def explained(self) -> float | None:
        """The explained part of the drop; None where it is not known."""
        if self.fall:
            return self.fall.part
        if self.stale and self.left:
            return self.drop.drop - self.left.drop
        return self.drop.drop if self.stale and self.stale.too_few else None


Correction: TypeAlias = Callable[[Drop, Sides], tuple[Drop | None, Note | None]]


def mix(drop: Drop, sides: Sides) -> tuple[Drop, Note | None]:
    """The drop like for like; its fields `mix` and `mix_tags` say what was taken out."""
    return sides.like_for_like(drop), None


def judge_movement(drop: Drop, sides: Sides) -> tuple[Drop, Note | None]:
    """The drop with the error of a level that moves without a cause."""
    moved = with_movement(drop, sides.level(drop))
    return moved, Note(drop, movement=sides.movement, left=moved) if sides.movement else None


def judge_drift(drop: Drop, sides: Sides) -> tuple[Drop, Note | None]:
    """The drop without a significant fall of the judges' level."""
    if (fall := sides.judge_fall()) is None:
        return drop, None
    left = subtract_drift(drop, fall.move, fall.share)
    return left, Note(drop, fall=fall, left=left)


def stale_labels(drop: Drop, sides: Sides) -> tuple[Drop | None, Note | None]:
    """The drop of the questions whose labels are not stale; None where too few remain."""
    if (stale := sides.stale_rows()) is None:
        return drop, None
    return stale.left, Note(drop, stale=stale, left=stale.left)


CORRECTIONS: Sequence[Correction] = (mix, judge_movement, judge_drift, stale_labels)


@dataclass(frozen=True)
class Corrected:
    """A drop with its corrections."""

    measured: Drop
    """Before the corrections that explain a part of it."""
    left: Drop | None
    """What is not explained; None where too few questions remain."""
    notes: Sequence[Note] = ()

    @property
    def explained(self) -> float | None:
        """The part that judge drift and stale labels explain; None without one."""
        parts = [part for note in self.notes if (part := note.explained) is not None]
        return sum(parts) if parts else None


def corrected(
    drop: Drop, sides: Sides, corrections: Sequence[Correction] = CORRECTIONS
) -> Corrected:
    """A drop after some corrections, in their order."""
    left: Drop | None = drop
    notes: list[Note] = []
    for correct in corrections:
        if left is not None:
            left, note = correct(left, sides)
            notes += [note] if note else []
    explaining = (note.drop for note in notes if note.explains)
    measured = next(explaining, left)
    return Corrected(drop if measured is None else measured, left, notes)


@dataclass(frozen=True)
class NightSides(Sides):
    """The rows of a baseline, and those of tonight or of the nights of an incident with it."""

    night: NightContext
    rows: RowSelection
    baseline: Baseline
    now: Sequence[Manifest]
    least_rows: int = 0
    """Fewest questions of tonight that have to remain without those with stale labels."""
    in_order: bool = True
    """Whether p may come from the order of each question's nights (`stats.compare_nights`)."""

    def corrected(self, corrections: Sequence[Correction] = CORRECTIONS) -> Corrected | None:
        """The drop, corrected; None where there are less than two questions to compare."""
        drop = self._drop()
        return corrected(drop, self, corrections) if drop else None

    def _drop(self) -> Drop | None:
        """The drop of the questions that both sides have to share, before any correction."""
        which = self._aligned
        now = self.night.questions(which.metric, which.segment, self.now)
        sides = ([_selected(one, which) for one in side] for side in (self.before, now))
        return compare_nights(*sides, in_order=self.in_order)

    @cached_property
    def before(self) -> Sequence[QuestionValues]:
        """The scores of the baseline, night by night."""
        base, rows = self.baseline, self.rows
        return self.night.questions(rows.metric, rows.segment, base.nights, base.build)

    @property
    def _aligned(self) -> RowSelection:
        """The rows without golden questions that one side could not have: a question that was
        added or retired between the sides would move the mean of every metric with a reference.
        """
        source, before = self.night.manifest.source, self.baseline.nights
        if not before or not (source.golden_since or source.golden_until):
            return self.rows
        newest, oldest = max(one.date for one in before), min(one.date for one in self.now)
        added = {key for key, day in source.golden_since.items() if newest < day}
        retired = {key for key, day in source.golden_until.items() if day <= oldest}
        return replace(self.rows, without={*self.rows.without, *added, *retired})

    @property
    def movement(self) -> JudgeMovement | None:
        """The judge's movement, from the nights before."""
        return find_movement(self.night, self.rows.metric)

    def like_for_like(self, drop: Drop) -> Drop:
        """The drop for tonight's mix of tags, and for its day of the week."""
        return without_mix(drop, self.night, self._aligned, self.baseline, self.now)

    def level(self, drop: Drop) -> LevelError | None:
        """The movement of the judge, or that of the nights where it is larger.

        What is likely of the nights without being seen counts by the verdicts that are new. Where
        questions recur, they show how far the judge moves; until they have, what is usual counts,
        since levels of the same questions vary by less than their errors say.
        """
        night, metric, before = self.night, self.rows.metric, self.baseline.nights
        judge = level_between(night, metric, before, self.now)
        if metric not in night.spreads:
            night.spreads[metric] = spread_of_nights(night, metric)
        spread, moves = night.spreads[metric], self.movement
        if spread is None:
            return judge
        share = math.sqrt(1 / len(before) + 1 / len(self.now))
        if not spread.is_seen:
            share = carried_movement(metric, before, self.now)
            if not share or (drop.paired and moves and moves.sd is not None):
                return judge
            if drop.paired:
                spread = likely_movement([], drop.error / share, 0.0, max(1.0, abs(drop.before)))
        nights = replace(spread, error=spread.error * share)
        return nights if judge is None or nights.error > judge.error else judge

    def judge_fall(self) -> JudgeFall | None:
        """The fall of the judges' level on the fixed set between the same nights."""
        before, sign = self.baseline.nights, self.rows.sign
        return judge_fall(self.night, self.rows.metric, before, self.now, sign)

    def stale_rows(self) -> StaleRows | None:
        """The drop of the other questions, with the corrections that measure it."""
        night, which = self.night, self.rows
        if not night.stale or which.metric not in ID_METRICS or which.without:
            return None
        [asked] = night.questions(which.metric, which.segment, [night.manifest])
        stale = len(asked.keys() & night.stale)
        if not stale:
            return None
        if len(asked) - stale < self.least_rows:
            return StaleRows(stale, len(asked), too_few=True)
        others = replace(self, rows=replace(which, without=night.stale))
        left = others.corrected((mix, judge_movement))
        return StaleRows(stale, len(asked), left=left.left if left else None)


@dataclass(frozen=True)
class RunSides(Sides):
    """The rows of some runs, and those of others."""

    metric: str
    before: Sequence[Manifest]
    now: Sequence[Manifest]
    moves: JudgeMovement | None = None
    """The judge's movement from night to night."""
    scores: tuple[MetricScores, MetricScores] | None = None
    """The rows of both sides with their tags; None: pairs, which have one mix."""

    @property
    def movement(self) -> JudgeMovement | None:
        """The judge's movement, where it is known."""
        return self.moves

    def like_for_like(self, drop: Drop) -> Drop:
        """The drop for the later mix of the tags that both sides have."""
        if self.scores is None or drop.paired:
            return drop
        coder = RowCoder()
        old, new = (
            coder.code(name, rows, ()) for name, rows in zip("ab", self.scores, strict=True)
        )
        both = old.tags.keys() & new.tags.keys()
        return like_by_tags(drop, MixedRows([old.with_tags(both)], [new.with_tags(both)]))

    def level(self, drop: Drop) -> LevelError | None:
        """The error that the judge's movement adds."""
        return level_error(self.moves, self.metric, self.before, self.now)


def correct_drop(
    drop: Drop,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    movement: JudgeMovement | None = None,
    scores: tuple[MetricScores, MetricScores] | None = None,
) -> Drop:
    """The drop of a metric between any two runs, by mix and judge movement.

    Judge drift is left out, as other runs than a night's have no labelled set, and stale labels, as
    only a night among nights shows which documents are gone.
    """
    sides = RunSides(metric, before, now, movement, scores)
    return corrected(drop, sides, (mix, judge_movement)).measured


def _selected(values: QuestionValues, which: RowSelection) -> QuestionValues:
    if not which.without and which.sign > 0:
        return values
    return {
        question: [which.sign * value for value in scores]
        for question, scores in values.items()
        if question not in which.without
    }


def judge_fall(
    night: NightContext,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    sign: int = 1,
) -> JudgeFall | None:
    """The fall of the judges' level between some nights, or with sign -1 its rise; None where it is
    not significant.
    """
    move = night.fixed_sets.moved(metric, before, now) if night.fixed_sets else None
    share = fresh_share(night.manifest, metric)
    if move and sign < 0:
        move = replace(
            move, drop=-move.drop, low=-move.high, high=-move.low, p_value=1 - move.p_value
        )
    if move is None or move.drop <= 0 or move.p_value >= SURE or not share:
        return None
    return JudgeFall(move, share)


def subtract_drift(drop: Drop, move: Drop, share: float = 1.0) -> Drop:
    """A drop minus a share of the judges' move between the same nights.

    Its variance is the sum of both variances. p is one-sided, for the hypothesis that nothing
    remains, and never below the p of the drop itself. Degrees of freedom: Satterthwaite 1946.
    """
    plain, other = drop.error, share * move.error
    error = math.hypot(plain, other)
    freedom = error**4 / (plain**4 / drop.freedom + other**4 / move.freedom)
    left = MeanDifference(drop.drop - share * move.drop, error, freedom)
    below = math.hypot(drop.drop - drop.low, share * (move.high - move.drop))
    above = math.hypot(drop.high - drop.drop, share * (move.drop - move.low))
    return replace(
        drop,
        drop=left.difference,
        low=left.difference - below,
        high=left.difference + above,
        p_value=max(drop.p_value, left.p_value),
        error=error,
        freedom=freedom,
        mde=detectable(error, freedom),
    )


@dataclass(frozen=True)
class CorrectedMean:
    """Tonight's mean without what judge drift or stale labels explain."""

    summary: Summary | None
    """None where too few rows remain."""
    explained: float | None
    fall: JudgeFall | None = None
    stale: StaleRows | None = None


def mean_without_drift(now: Summary, night: NightContext, _: int = 0) -> CorrectedMean | None:
    """Tonight's mean corrected for the judges' move since the seven nights before, with its
    interval widened by that of the move. None where there is no significant move.
    """
    before = night.comparable(now.metric)[-DRIFT_NIGHTS:]
    fall = judge_fall(night, now.metric, before, [night.manifest])
    if fall is None or now.mean is None or now.low is None or now.high is None:
        return None
    move, mean = fall.move, now.mean + fall.part
    update = {
        "mean": mean,
        "low": mean - math.hypot(now.mean - now.low, fall.share * (move.drop - move.low)),
        "high": mean + math.hypot(now.high - now.mean, fall.share * (move.high - move.drop)),
    }
    return CorrectedMean(now.model_copy(update=update), fall.part, fall=fall)


def mean_without_stale_labels(
    now: Summary, night: NightContext, least_rows: int
) -> CorrectedMean | None:
    """Tonight's mean without the questions with stale labels; None where no label is stale."""
    scores = night.scores.get(now.metric)
    if not night.stale or now.metric not in ID_METRICS or scores is None:
        return None
    rows = scores.table[~scores.table["question"].isin(sorted(night.stale))]
    left = summarise(replace(scores, table=rows), "", now.segment)
    stale = StaleRows(now.questions - left.questions, now.questions)
    if not stale.stale:
        return None
    if left.mean is None or left.scored < least_rows:
        return CorrectedMean(None, None, stale=replace(stale, too_few=True))
    return CorrectedMean(left, left.mean - (now.mean or 0.0), stale=stale)


MEAN_CORRECTIONS: Sequence[Callable[[Summary, NightContext, int], CorrectedMean | None]] = (
    mean_without_drift,
    mean_without_stale_labels,
)
