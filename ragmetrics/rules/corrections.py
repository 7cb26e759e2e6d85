"""The corrections of a drop: what makes two sets of scores differ besides retrieval.

    align -> drop -> corrections -> decision -> words

A correction takes a drop and its two sides, and returns the drop that is left with a note. Every
comparison names its list; `CORRECTIONS` is the whole list, in the one order.

In their order:

    mix             the earlier rows are weighted to the later mix of tags (`question_mix`)
    judge change    error of the offset by which an old judge's rows were moved (`OffsetError`)
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
from typing import TypeAlias

from ragmetrics.records import JudgeMovement
from ragmetrics.stats import Drop, LevelError, MeanDifference, detectable, with_movement


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

    def across_change(self, drop: Drop) -> Drop:
        """The drop with the error of the offset between the judges of both sides."""
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


def judge_change(drop: Drop, sides: Sides) -> tuple[Drop, Note | None]:
    """The drop with the error of the offset by which rows of an old judge were moved."""
    return sides.across_change(drop), None


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


CORRECTIONS: Sequence[Correction] = (mix, judge_change, judge_movement, judge_drift, stale_labels)


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
