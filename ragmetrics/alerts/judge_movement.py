"""How far a night's judge moves from night to night, by the nights before it.

Two sources, taken together: the golden questions, by the moves that each night's record keeps, and
the labelled set, which the same judge scores afresh each night.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from scipy import special

from ragmetrics.alerts.context import NightContext
from ragmetrics.calibration import level_error, may_move, moving_share
from ragmetrics.model import JudgeMovement, Manifest, Move, Summary
from ragmetrics.stats import (
    CONFIDENCE,
    FEWEST_STEPS,
    LevelError,
    NightStep,
    degrees_of_freedom,
    estimate_movement,
    informative_steps,
)

NIGHTS = 28
"""Newest nights that compare, from which it is estimated: four weeks."""
_ERRORS = float(special.ndtri(0.5 + CONFIDENCE / 2))


def find_movement(night: NightContext, metric: str) -> JudgeMovement | None:
    """How far the judge moves in a metric; None of one whose verdicts are computed here.

    From the nights before that compare, at most 28 of them. With fewer than eight nights it is not
    known, and adds nothing.
    """
    if metric not in night.movements:
        night.movements[metric] = _find(night, metric)
    return night.movements[metric]


def _find(night: NightContext, metric: str) -> JudgeMovement | None:
    nights = night.comparable(metric)[-NIGHTS:]
    if not any(may_move(one, metric) for one in (*nights, night.manifest)):
        return None
    by_day: dict[date, list[NightStep]] = defaultdict(list)
    for day, step in _steps(night, metric, nights):
        if informative_steps([step]):
            by_day[day].append(step)
    sd = estimate_movement([step for own in by_day.values() for step in own])
    count = len(by_day) + 1 if by_day else min(1, len(nights))
    if sd is None or len(by_day) < FEWEST_STEPS:
        return JudgeMovement(sd=None, nights=count)
    return JudgeMovement(sd=sd, nights=count, freedom=degrees_of_freedom(len(by_day)))


def level_between(
    night: NightContext, metric: str, before: Sequence[Manifest], now: Sequence[Manifest]
) -> LevelError | None:
    """What the judge's movement adds to the error of a metric's drop between some nights."""
    return level_error(find_movement(night, metric), metric, before, now)


def with_movements(night: NightContext) -> list[Summary]:
    """The night's summaries, each with how far its judge moves."""
    return [
        one.model_copy(update={"movement": find_movement(night, one.metric)})
        for one in night.manifest.metrics
    ]


def _steps(
    night: NightContext, metric: str, nights: Sequence[Manifest]
) -> Iterator[tuple[date, NightStep]]:
    """The steps of both sources, by the later night; of nights that were judged on one day none."""
    known = {(one.date, one.run): one for one in nights}
    for one in nights:
        for move in one.moves:
            before = known.get((move.since, move.run))
            if move.metric == metric and before and _on_other_days(before, one):
                yield one.date, NightStep(move.by, _error(move), moving_share(one, metric))
    if night.fixed_sets:
        yield from night.fixed_sets.steps(metric, nights)


def _on_other_days(one: Manifest, other: Manifest) -> bool:
    return one.started_at.date() != other.started_at.date()


def _error(move: Move) -> float:
    """By the questions alone; of an earlier version's move, what its interval says."""
    return (move.high - move.low) / (2 * _ERRORS) if move.error is None else move.error


__all__ = ["find_movement", "level_between", "with_movements"]
