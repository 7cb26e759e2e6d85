"""The sides of a drop between nights, or between any runs: what the corrections ask them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from ragmetrics.records import JudgeMovement, Manifest
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.corrections import (
    CORRECTIONS,
    Corrected,
    Correction,
    JudgeFall,
    Sides,
    StaleRows,
    corrected,
    judge_change,
    judge_movement,
    mix,
)
from ragmetrics.rules.judge_movement import (
    carried_movement,
    find_movement,
    fresh_share,
    level_error,
)
from ragmetrics.rules.level_series import spread_of_nights
from ragmetrics.rules.likely_movement import likely_movement
from ragmetrics.rules.question_mix import MixedRows, RowSelection, like_by_tags, without_mix
from ragmetrics.rules.tagged_rows import RowCoder
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import Drop, LevelError, OffsetError, QuestionValues, compare_nights

SURE = 0.01
"""Significance level for a move of the judges, over all metrics together."""
ID_METRICS = ("id_recall", "id_precision", "hit_rate", "mrr", "ndcg")


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

    def across_change(self, drop: Drop) -> Drop:
        """The drop with the error of the offset, where nights of an old judge were moved by it.

        Where both judged every question, it is the drop by the old judge, with its own test.
        """
        which, nights = self._aligned, (self.baseline.nights, self.now)
        if (offset := offset_error(which.metric, *nights, which.sign)) is None:
            return drop
        now = self.night.questions(which.metric, which.segment, self.now)
        sides = [[_selected(one, which) for one in side] for side in (self.before, now)]
        known = offset.differences.keys()
        if drop.paired and all(known >= night.keys() for side in sides for night in side):
            by_old = [
                [_by_old(*one, which.metric, offset) for one in zip(of, values, strict=True)]
                for of, values in zip(nights, sides, strict=True)
            ]
            return compare_nights(*by_old, in_order=self.in_order) or drop
        return offset.added_to(drop, *map(_question_means, sides))

    def level(self, drop: Drop) -> LevelError | None:
        """The movement of the judge, or that of the nights where it is larger."""
        night, metric = self.night, self.rows.metric
        spread = spread_of_nights(night, metric)
        return level_of(drop, metric, self.baseline.nights, self.now, self.movement, spread)

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
        left = others.corrected((mix, judge_change, judge_movement))
        return StaleRows(stale, len(asked), left=left.left if left else None)


def _selected(values: QuestionValues, which: RowSelection) -> QuestionValues:
    if not which.without and which.sign > 0:
        return values
    return {
        question: [which.sign * value for value in scores]
        for question, scores in values.items()
        if question not in which.without
    }


def _by_old(
    night: Manifest, values: QuestionValues, metric: str, offset: OffsetError
) -> QuestionValues:
    """A night's values by the old judge: those of the new one with each question's difference."""
    summary = night.summary(metric)
    if summary is None or summary.moved_by:
        return values
    mean = sum(offset.differences.values()) / len(offset.differences)
    return {
        question: [value + offset.differences[question] - mean for value in scores]
        for question, scores in values.items()
    }


def _question_means(nights: Sequence[QuestionValues]) -> dict[str, float]:
    """The mean of each question over the rows of all nights."""
    values: dict[str, list[float]] = defaultdict(list)
    for night in nights:
        for question, scores in night.items():
            values[question].extend(scores)
    return {question: sum(scores) / len(scores) for question, scores in values.items()}


def offset_error(
    metric: str, before: Sequence[Manifest], now: Sequence[Manifest], sign: int = 1
) -> OffsetError | None:
    """The error of the offset by which nights of an old judge were moved; None where none was, and
    where both sides have the same share of such nights, so that it cancels.
    """
    summaries = [[one.summary(metric) for one in side] for side in (before, now)]
    known = [[one for one in side if one] for side in summaries]
    offset = next((one.moved_by for side in known for one in side if one.moved_by), None)
    if offset is None:
        return None
    old, new = (
        sum(one.scored for one in side if one.moved_by) / max(1, sum(one.scored for one in side))
        for side in known
    )
    if old == new:
        return None
    differences = {name: sign * value for name, value in offset.differences.items()}
    return OffsetError(old - new, offset.error, offset.freedom, differences)


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

    def across_change(self, drop: Drop) -> Drop:
        """The drop with the error of the offset; of pairs both errors count as independent."""
        if (offset := offset_error(self.metric, self.before, self.now)) is None:
            return drop
        sides = [_question_means([side.by_question()]) for side in self.scores or ()]
        return offset.added_to(drop, *sides)

    def level(self, drop: Drop) -> LevelError | None:
        """The movement of the judge, or that of the nights where it is larger."""
        return level_by_movement(drop, self.metric, self.before, self.now, self.moves)


def level_by_movement(
    drop: Drop,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    movement: JudgeMovement | None,
) -> LevelError | None:
    """The error that movement of the level adds to a drop, by what a night's manifest says.

    Of questions that recur it must be seen: what is assumed would cost two thirds of the power.
    """
    spread = None
    if movement and movement.level is not None and (movement.level_seen or not drop.paired):
        spread = LevelError(movement.level, movement.level_freedom, movement.level_seen)
    return level_of(drop, metric, before, now, movement, spread)


def level_of_builds(
    drop: Drop,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    movement: JudgeMovement | None,
) -> LevelError | None:
    """The error that movement of the level adds to a drop between two builds, with that of the
    offset where the serving build's nights were moved by one.
    """
    level = level_by_movement(drop, metric, before, now, movement)
    if (offset := offset_error(metric, before, now)) is None:
        return level
    error, freedom = abs(offset.share) * offset.error, offset.freedom
    if level is None:
        return LevelError(error, freedom)
    return LevelError(math.hypot(level.error, error), min(level.freedom, freedom))


def level_of(
    drop: Drop,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    movement: JudgeMovement | None,
    spread: LevelError | None,
) -> LevelError | None:
    """The error of the judge's movement, or that of the levels of nights where it is larger.

    What is likely of the nights without being seen counts by the verdicts that are new. Where
    questions recur, they show how far the judge moves; until they have, what is usual counts, since
    levels of the same questions vary by less than their errors say.
    """
    judge = level_error(movement, metric, before, now)
    if spread is None or not before or not now:
        return judge
    share = _nights_apart(before, now)
    if not spread.is_seen:
        share = carried_movement(metric, before, now)
        if not share or (drop.paired and movement and movement.sd is not None):
            return judge
        if drop.paired:
            spread = likely_movement([], drop.error / share, 0.0, max(1.0, abs(drop.before)))
    nights = replace(spread, error=spread.error * share)
    return nights if nights.error > (judge.error if judge else 0.0) else judge


def _nights_apart(before: Sequence[Manifest], now: Sequence[Manifest]) -> float:
    """Error of the difference of two sides, in standard deviations of a night's level: what both
    have of one night cancels, as of two builds that served together. A gate's runs have no night of
    their own, so the day of judging counts too.
    """
    parts: dict[tuple[date, date], float] = defaultdict(float)
    for side, sign in ((before, -1), (now, 1)):
        for night in side:
            parts[night.date, night.started_at.date()] += sign / len(side)
    return math.sqrt(sum(part**2 for part in parts.values()))


def correct_drop(
    drop: Drop,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    movement: JudgeMovement | None = None,
    scores: tuple[MetricScores, MetricScores] | None = None,
) -> Drop:
    """The drop of a metric between any two runs, by mix, change of judge and judge movement.

    Judge drift is left out, as other runs than a night's have no labelled set, and stale labels, as
    only a night among nights shows which documents are gone.
    """
    sides = RunSides(metric, before, now, movement, scores)
    return corrected(drop, sides, (mix, judge_change, judge_movement)).measured
