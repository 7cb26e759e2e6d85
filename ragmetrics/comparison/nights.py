"""Comparison of a night with the night before: for its page of changes, and each metric's change.

The night before is the newest earlier night that has a metric scored in the same way, so that the
numbers compare. Metrics that were scored in another way are listed with the reason.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ragmetrics.comparison.comparison import make_comparison, measure
from ragmetrics.comparison.sides import ScoredSide, scored_side, shown_tags
from ragmetrics.errors import StoreError
from ragmetrics.records import ComparedMeans, Comparison, Manifest, MetricChange, Move
from ragmetrics.rules import correct_drop
from ragmetrics.scoring import MetricScores
from ragmetrics.storage import Files, is_missing

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
LoadScores: TypeAlias = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of a night."""

ROWS = 5
"""Questions listed per metric."""


def night_before(now: Manifest, earlier: Sequence[Manifest]) -> Manifest | None:
    """The newest earlier night that has a comparable metric; `earlier` has the oldest first."""
    return next((one for one in reversed(earlier) if _comparable(one, now)), None)


def compare_with_night_before(
    files: Files, before: Manifest, now: Manifest, load: LoadScores
) -> Comparison:
    """Compare a night with an earlier one, by the comparable metrics and the night's tags."""
    names = _comparable(before, now)
    a, b = (_side(files, one, names, load) for one in (before, now))
    refused, tags = _refused(before, now), shown_tags(now, before)
    return make_comparison(a, b, names, tags, rows=ROWS, refused=refused)


def find_moves(now: Manifest, earlier: Sequence[Manifest], load: LoadScores) -> list[Move]:
    """The change of each metric since the night before, for metrics with enough questions.

    Empty where the scores of that night are no longer in the store.
    """
    before = night_before(now, earlier)
    try:
        found = (
            [_move(before, now, name, load) for name in _unsampled(before, now)] if before else []
        )
    except StoreError as error:
        if not is_missing(error):
            raise
        log.warning("%s: changes since the night before are not known: %s", now.date, error)
        return []
    return [one for one in found if one]


def question_means(scores: MetricScores) -> pd.Series[float]:
    """The mean of each question's scored rows that compare."""
    return scores.compared.groupby("question", sort=False)["value"].mean()


def _unsampled(before: Manifest, now: Manifest) -> list[str]:
    """The comparable metrics without a sample: the mean of a sampled night is an estimate."""
    sampled = {one.metric for night in (before, now) for one in night.metrics if one.sample}
    return [name for name in _comparable(before, now) if name not in sampled]


def _move(before: Manifest, now: Manifest, metric: str, load: LoadScores) -> Move | None:
    then, tonight = (question_means(load(one, metric)) for one in (before, now))
    old, new = (np.asarray(one, dtype=np.float64) for one in (then.reindex(tonight.index), tonight))
    summary = now.summary(metric)
    movement = summary.movement if summary else None
    found = measure(
        metric, old, new, correct=lambda drop: correct_drop(drop, metric, [before], [now], movement)
    )
    if not found.paired or found.difference is None or found.low is None or found.high is None:
        return None
    by, low, high = found.difference, found.low, found.high
    gained = (new - old)[~np.isnan(old)]
    error = float(gained.std(ddof=1)) / math.sqrt(len(gained))
    means = ComparedMeans(
        before=found.mean_a or 0.0,
        now=found.mean_b or 0.0,
        questions=found.questions,
        paired=found.paired,
    )
    moved = {"by": by, "low": low, "high": high, "means": means, "error": error}
    return Move(metric=metric, since=before.date, run=before.run, **moved)


def cached_load(
    load: LoadScores,
    tonight: Manifest,
    before: Manifest | None,
    scores: Mapping[str, MetricScores] | None = None,
) -> LoadScores:
    """A loader that caches the scores of a night and of the night before: rules, rows and changes
    all read them. `scores` are tonight's scores, where they were read already.
    """
    nights = [(one.date, one.run) for one in (tonight, before) if one]
    known = {(nights[0], metric): one for metric, one in (scores or {}).items()}

    def loaded(night: Manifest, metric: str) -> MetricScores:
        key = (night.date, night.run), metric
        if key in known:
            return known[key]
        found = load(night, metric)
        if key[0] in nights:
            known[key] = found
        return found

    return loaded


def _comparable(before: Manifest, now: Manifest) -> list[str]:
    """The metrics that both nights scored in the same way."""
    return [
        metric.metric
        for metric in now.metrics
        if metric.scored and (old := before.summary(metric.metric)) and old.scored
        if old.fingerprint == metric.fingerprint
    ]


def _refused(before: Manifest, now: Manifest) -> list[MetricChange]:
    """The metrics that cannot be compared, with the reason. At least one night has their scores."""
    found = []
    for name in dict.fromkeys(one.metric for night in (now, before) for one in night.metrics):
        old, new = before.summary(name), now.summary(name)
        known = [bool(one and one.scored) for one in (old, new)]
        if old and new and all(known):
            if old.fingerprint != new.fingerprint:
                found.append(MetricChange(metric=name, reason=_otherwise(before, now, name)))
        elif any(known):
            reason = f"no row was scored {'before' if known[1] else 'after'}"
            found.append(
                MetricChange(metric=name, reason=reason, questions_a=None if known[0] else 0)
            )
    return found


def _otherwise(before: Manifest, now: Manifest, metric: str) -> str:
    if before.judge.of(metric).fingerprint == now.judge.of(metric).fingerprint:
        return "its prompt, parameters or version changed: the numbers cannot be compared"
    return "the judge changed: the numbers cannot be compared"


def _side(files: Files, night: Manifest, names: Sequence[str], load: LoadScores) -> ScoredSide:
    scores = {name: load(night, name) for name in names}
    return scored_side(f"night {night.date} (run {night.run})", files, [night], scores)
