"""Share of a night's verdicts that are new replies, and what the judge's movement adds by them.

Only new replies move with the judge; cached ones stay as they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from ragmetrics.metrics import bundled_metrics, label_targets
from ragmetrics.records import EMBEDDINGS, JudgeMovement, Manifest, Usage
from ragmetrics.stats import LevelError


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
