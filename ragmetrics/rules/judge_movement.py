"""Movement of a night's judge from night to night, estimated from the earlier nights.

It combines two sources: the changes of golden questions in each night's manifest, and the labelled
set that the same judge scores again each night. Only new replies move with the judge; cached ones
stay as they are, so a night moves by the share of its verdicts that are new.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from scipy import special

from ragmetrics.metrics import bundled_metrics, label_targets
from ragmetrics.records import EMBEDDINGS, JudgeMovement, Manifest, Move, Summary, Usage
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


def fresh_share(night: Manifest, metric: str) -> float:
    """Share of a metric's requests that went to the judge: cached replies do not drift.

    1 where the usage is not known, as for judges that cost nothing and are always asked.
    """
    own = [usage for by_judge in _usages(night, metric) for usage in by_judge.values()]
    asked = sum(one.requests for one in own)
    known = asked + sum(one.answered_from_store for one in own)
    return asked / known if known else 1.0


def _usages(night: Manifest, metric: str) -> list[Mapping[str, Usage]]:
    """Usage by judge of the requests for a metric, some of them shared with other metrics."""
    wanted = {metric, label_targets().get(metric, metric)}
    return [
        by_judge
        for name, by_judge in night.usage_by_metric.items()
        if wanted & set(name.split(" + "))
    ]


def moving_share(night: Manifest, metric: str) -> float:
    """Share of a metric's verdicts that are new replies of a remote judge. Cached ones do not move.

    0 for judges on this machine and for metrics without a judge. Requests shared with another
    metric are in that metric's usage; then the share is that of the whole night. In a run that
    replaces an earlier one of its night, cached verdicts count as verdicts of this night.
    """
    asked = _verdicts(night, metric)
    if asked is None:
        return 0.0
    new, known = asked
    return 1.0 if night.supersedes else new / known


def may_move(night: Manifest, metric: str) -> bool:
    """Whether a remote judge gave a metric's verdicts, on that night or before."""
    return _verdicts(night, metric) is not None


def _verdicts(night: Manifest, metric: str) -> tuple[int, int] | None:
    """New requests of a metric, and all its requests; None where no remote judge was asked."""
    own = _request_counts(_usages(night, metric))
    if own:
        return own
    known = bundled_metrics().get(metric)
    asks = known is not None and bool(known.prompts)
    return _request_counts(night.usage_by_metric.values()) if asks else None


def _request_counts(usages: Iterable[Mapping[str, Usage]]) -> tuple[int, int] | None:
    """New requests, and all requests; None where there are none."""
    judged = [one for own in usages for name, one in own.items() if name != EMBEDDINGS]
    new = sum(one.requests for one in judged)
    known = new + sum(one.answered_from_store for one in judged)
    return (new, known) if known else None


def carried_movement(metric: str, before: Sequence[Manifest], now: Sequence[Manifest]) -> float:
    """Error of the difference of two sides, in standard deviations of a night's level."""
    days: dict[date | None, float] = defaultdict(float)
    fresh = 0.0
    for night in now:
        share = moving_share(night, metric) / len(now)
        days[_day(night)] += share
        fresh += share
    for night in before:
        share = moving_share(night, metric)
        days[_day(night)] -= fresh * share / len(before)
        days[None] -= fresh * (1 - share) / len(before)  # of some earlier day
    return math.sqrt(sum(part**2 for part in days.values()))


def is_of_one_day(before: Sequence[Manifest], now: Sequence[Manifest]) -> bool:
    """Whether all runs of two sides began on the same day."""
    return len({_day(one) for one in (*before, *now)}) <= 1


def _day(night: Manifest) -> date:
    """The day of a run's verdicts. A backfill judges many nights on one day."""
    return night.started_at.date()


def level_error(
    movement: JudgeMovement | None, metric: str, before: Sequence[Manifest], now: Sequence[Manifest]
) -> LevelError | None:
    """Error that the judge's movement adds to a difference; None where it is 0 or not known."""
    if movement is None or not movement.sd or not before or not now:
        return None
    error = movement.sd * carried_movement(metric, before, now)
    return LevelError(error, movement.freedom) if error else None


def newest_movement(metric: str, nights: Iterable[Manifest]) -> JudgeMovement | None:
    """The judge's movement by the newest of some nights that has it."""
    for night in sorted(nights, key=lambda one: one.date, reverse=True):
        if (found := night.summary(metric)) and found.movement:
            return found.movement
    return None
