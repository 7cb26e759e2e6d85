"""The questions of live traffic: how often each was asked, and its score night by night."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ragmetrics.errors import InputError
from ragmetrics.records import Manifest
from ragmetrics.scoring import MetricScores, load_scores
from ragmetrics.storage import Files, RowLocation, RunRef, passing_over

_FIRST = "context_relevance"
_EMPTY = 1e-9


@dataclass
class LiveQuestion:
    """A question that is not golden."""

    key: str
    night: Manifest
    """The newest night that asked it."""
    place: RowLocation
    """Its row on that night."""
    asked: int = 0
    means: list[float] = field(default_factory=list)
    """The mean score on each night that asked it, oldest first."""
    is_of_newest: bool = False
    """Whether the newest of all nights asked it."""
    failed: bool = True
    """Whether every score is 0."""


def read_live_questions(
    files: Files, nights: Sequence[Manifest], golden: Collection[str]
) -> tuple[dict[str, LiveQuestion], str]:
    """The questions of some nights by their keys, without golden ones; and the metric that was
    read. A night whose scores are gone is left out.

    Raises InputError where no night has a metric that reads the contexts, StoreError where the
    store is down.
    """
    metric = _metric(nights)
    found: dict[str, LiveQuestion] = {}
    for night in nights:
        if not night.summary(metric):
            continue
        with passing_over():
            scores = load_scores(files, RunRef.of(night), metric)
            _add(found, night, scores, golden, newest=night is nights[-1])
    return found, metric


def _metric(nights: Sequence[Manifest]) -> str:
    """The metric of the newest night whose values suggestions are based on."""
    names = [
        metric.metric
        for metric in nights[-1].metrics
        if metric.scored and metric.higher_is_better and "context" in metric.metric
    ]
    if not names:
        raise InputError(
            f"night {nights[-1].date} has no score of the contexts: add {_FIRST} to `metrics:`"
        )
    return _FIRST if _FIRST in names else names[0]


def _add(
    found: dict[str, LiveQuestion],
    night: Manifest,
    scores: MetricScores,
    golden: Collection[str],
    *,
    newest: bool,
) -> None:
    values: dict[str, list[float]] = {}
    rows = scores.scored
    columns = (rows[name].tolist() for name in ("question", "value", "shard", "position"))
    for key, value, shard, position in zip(*columns, strict=True):
        if key in golden:
            continue
        place = (int(shard), int(position))
        one = found.setdefault(key, LiveQuestion(key, night, place))
        one.asked += 1
        one.night, one.place, one.is_of_newest = night, place, newest
        one.failed = one.failed and value <= _EMPTY
        values.setdefault(key, []).append(value)
    for key, of_night in values.items():
        found[key].means.append(fmean(of_night))
