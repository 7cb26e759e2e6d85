"""Corrections of a drop: their order, what each takes out or adds, and what notes say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ragmetrics.records import JudgeMovement
from ragmetrics.rules.corrections import (
    CORRECTIONS,
    JudgeFall,
    Sides,
    StaleRows,
    corrected,
    judge_change,
    judge_drift,
    judge_movement,
    mix,
    stale_labels,
)
from ragmetrics.rules.sides import judge_fall
from ragmetrics.stats import Drop, LevelError, compare
from tests.fakes.past import a_night, scores, view

MOVES = JudgeMovement(sd=0.01, nights=20, freedom=12.0)


def a_drop(size: float, spread: float = 0.1, questions: int = 200) -> Drop:
    """A drop of some size between different questions."""
    random = np.random.default_rng(5)
    values = 0.7 + random.normal(0, spread, questions).clip(-0.25, 0.25)
    before = {f"a{place}": [float(value)] for place, value in enumerate(values)}
    now = {f"b{place}": [float(value - size)] for place, value in enumerate(values)}
    drop = compare(before, now)
    assert drop
    return drop


@dataclass(frozen=True)
class MadeUp(Sides):
    """Sides of which everything is known."""

    fall: Drop | None = None
    error: float = 0.0
    stale: StaleRows | None = None
    part: float = 0.0

    @property
    def movement(self) -> JudgeMovement | None:
        """A usual one, where the level moves."""
        return MOVES if self.error else None

    def like_for_like(self, drop: Drop) -> Drop:
        """Without the part of the mix."""
        return replace(drop, drop=drop.drop - self.part) if self.part else drop

    def level(self, drop: Drop) -> LevelError | None:
        """The error of the level."""
        return LevelError(self.error, 12.0) if self.error else None

    def judge_fall(self) -> JudgeFall | None:
        """A fall of which half of the verdicts are new."""
        return JudgeFall(self.fall, 0.5) if self.fall else None

    def stale_rows(self) -> StaleRows | None:
        """What is given."""
        return self.stale


def test_sides_of_which_nothing_is_known_correct_nothing() -> None:
    """Without tags, movement, labelled set and stale labels a drop is what it is."""
    drop = a_drop(0.1)
    found = corrected(drop, Sides())
    assert (found.measured, found.left, found.notes, found.explained) == (drop, drop, [], None)


def test_the_whole_list_has_one_order() -> None:
    """What measures a drop comes before what explains a part of it."""
    assert list(CORRECTIONS) == [mix, judge_change, judge_movement, judge_drift, stale_labels]


def test_each_correction_gets_what_the_one_before_left() -> None:
    """The mix goes first, movement widens the rest, and half of the judge's fall explains."""
    drop, fall = a_drop(0.1), a_drop(0.04, 0.01)
    found = corrected(drop, MadeUp(fall=fall, error=0.01, part=0.02))
    assert found.measured.drop == pytest.approx(drop.drop - 0.02)
    assert found.measured.error > drop.error
    assert found.left
    assert found.left.drop == pytest.approx(drop.drop - 0.02 - fall.drop / 2)
    assert found.explained == pytest.approx(fall.drop / 2)
    assert [note.explains for note in found.notes] == [False, True]


def test_a_list_without_a_correction_leaves_its_part() -> None:
    """A caller that names two corrections has those two."""
    sides = MadeUp(fall=a_drop(0.04, 0.01), error=0.01, part=0.02)
    found = corrected(a_drop(0.1), sides, (mix, judge_movement))
    assert found.left == found.measured
    assert found.explained is None


def test_nothing_is_left_where_too_few_rows_have_labels() -> None:
    """All of the drop counts as explained, and the drop as it was measured stays."""
    drop = a_drop(0.1)
    found = corrected(drop, MadeUp(stale=StaleRows(90, 100, too_few=True)))
    assert found.left is None
    assert (found.measured, found.explained) == (drop, drop.drop)


def test_stale_labels_explain_what_other_questions_did_not_lose() -> None:
    """The drop of the questions with good labels is left."""
    drop, left = a_drop(0.1), a_drop(0.03)
    found = corrected(drop, MadeUp(stale=StaleRows(20, 200, left=left)))
    assert found.left == left
    assert found.explained == pytest.approx(drop.drop - left.drop)


class _Levels:
    """A labelled set whose levels moved so."""

    def __init__(self, move: Drop) -> None:
        self._move = move

    def moved(self, *_: Any) -> Drop:
        return self._move


@pytest.mark.parametrize(("size", "sign", "explains"), [(0.05, 1, True), (0.05, -1, False)])
def test_a_judge_that_scores_lower_explains_no_rise(size: float, sign: int, explains: bool) -> None:
    """Where lower is better, scores are negated: a judge that scores lower makes them better."""
    night = view(a_night(scores([0.5, 0.6], "context_recall")))
    night = replace(night, fixed_sets=_Levels(a_drop(size, 0.01)))  # type: ignore[arg-type]
    found = judge_fall(night, "context_recall", [], [night.manifest], sign)
    assert (found is not None) is explains


def test_a_judge_that_scores_higher_explains_a_rise() -> None:
    """The scores of a metric in which lower is better rose with the level of the judge."""
    night = view(a_night(scores([0.5, 0.6], "context_recall")))
    night = replace(night, fixed_sets=_Levels(a_drop(-0.05, 0.01)))  # type: ignore[arg-type]
    found = judge_fall(night, "context_recall", [], [night.manifest], -1)
    assert found
    assert found.part == pytest.approx(0.05, abs=0.01)
