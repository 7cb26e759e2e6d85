"""Movement of a night's judge from night to night, estimated from the earlier nights.

It combines two sources: the changes of golden questions in each night's manifest, and the labelled
set that the same judge scores again each night.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from scipy import special

from ragmetrics.people import level_error, may_move, moving_share
from ragmetrics.records import JudgeMovement, Manifest, Move, Summary
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.level_series import spread_of_nights
from ragmetrics.rules.likely_movement import (
    FEWEST_STEPS,
    degrees_of_freedom,
    estimate_movement,
    informative_steps,
)
from ragmetrics.stats import CONFIDENCE, LevelError, NightStep

NIGHTS = 28
"""Newest comparable nights for the estimate: four weeks."""
_ERRORS = float(special.ndtri(0.5 + CONFIDENCE / 2))


def find_movement(night: NightContext, metric: str) -> JudgeMovement | None:
    """The judge's movement in a metric; None where its verdicts are computed on this machine.

    It is estimated from at most 28 comparable nights. With fewer than eight nights it is not known
    and adds no error.
    """
    if metric not in night.movements:
        night.movements[metric] = _find(night, metric)
    return night.movements[metric]


def _find(night: NightContext, metric: str) -> JudgeMovement | None:
    nights = [one for one in night.comparable(metric) if not _is_moved(one, metric)][-NIGHTS:]
    if not any(may_move(manifest, metric) for manifest in (*nights, night.manifest)):
        return None
    if len(nights) < 2:  # there is no step from one night to another
        return JudgeMovement(sd=None, nights=len(nights))
    by_day: dict[date, list[NightStep]] = defaultdict(list)
    for day, step in _steps(night, metric, nights):
        if informative_steps([step]):
            by_day[day].append(step)
    sd = estimate_movement([step for own in by_day.values() for step in own])
    count = len(by_day) + 1 if by_day else 1
    if sd is None or len(by_day) < FEWEST_STEPS:
        return JudgeMovement(sd=None, nights=count)
    return JudgeMovement(sd=sd, nights=count, freedom=degrees_of_freedom(len(by_day)))


def _is_moved(night: Manifest, metric: str) -> bool:
    """Whether another judge scored a night, whose own movement says nothing of tonight's."""
    summary = night.summary(metric)
    return summary is not None and summary.moved_by is not None


def level_between(
    night: NightContext, metric: str, before: Sequence[Manifest], now: Sequence[Manifest]
) -> LevelError | None:
    """The error that the judge's movement adds to a metric's drop between some nights."""
    return level_error(find_movement(night, metric), metric, before, now)


def with_movements(night: NightContext) -> list[Summary]:
    """The night's summaries with the movement of their judge, and that of their levels."""
    return [
        metric.model_copy(update={"movement": _with_level(night, metric.metric)})
        for metric in night.manifest.metrics
    ]


def _with_level(night: NightContext, metric: str) -> JudgeMovement | None:
    moves = find_movement(night, metric)
    if moves is None or len(night.comparable(metric)) <= FEWEST_STEPS:
        return moves
    if (spread := spread_of_nights(night, metric)) is None:
        return moves
    level = {"level": spread.error, "level_freedom": spread.freedom, "level_seen": spread.is_seen}
    return moves.model_copy(update=level)


def _steps(
    night: NightContext, metric: str, nights: Sequence[Manifest]
) -> Iterator[tuple[date, NightStep]]:
    """The steps of both sources with their later night. Nights judged on one day give no step."""
    known = {(manifest.date, manifest.run): manifest for manifest in nights}
    for later in nights:
        for move in later.moves:
            before = known.get((move.since, move.run))
            if move.metric == metric and before and _on_other_days(before, later):
                yield later.date, NightStep(move.by, _error(move), moving_share(later, metric))
    if night.fixed_sets:
        yield from night.fixed_sets.steps(metric, nights)


def _on_other_days(one: Manifest, other: Manifest) -> bool:
    return one.started_at.date() != other.started_at.date()


def _error(move: Move) -> float:
    """The error from the questions alone; for an earlier version's move, from its interval."""
    return (move.high - move.low) / (2 * _ERRORS) if move.error is None else move.error
