"""The input of the alert rules: tonight's scores, and those of earlier nights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from ragmetrics.alerts.coded_rows import RowCoder
from ragmetrics.model import BUILDS, Drift, JudgeMovement, Manifest, Notification, Segment
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import QuestionValues

if TYPE_CHECKING:
    from ragmetrics.alerts.document_ids import IdReader
    from ragmetrics.calibration import FixedSets


Load: TypeAlias = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of an earlier night."""


@dataclass(frozen=True)
class Baseline:
    """What a drop is measured from: the rows of some nights, of one index build or of all."""

    nights: Sequence[Manifest]
    label: str = ""
    build: str | None = None
    """Only the rows of this index build count; None: all rows."""
    spell: Sequence[Manifest] = ()
    """The nights of the current incident before tonight; they are judged together with it."""
    fixed: bool = False
    """Whether the baseline does not depend on the alert's history."""
    usual: Sequence[Manifest] = ()
    """All nights before the incident on which the alert was not firing."""
    past: Sequence[Manifest] = ()
    """All nights before the incident, including nights on which the alert was firing."""


def _no_run(_: str) -> Manifest | None:
    return None


def _no_build() -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class NightContext:
    """The input of the rules: the manifest so far, this night's scores, and the earlier nights.

    `drifts` are the newest drifts of this night's judges, one per labelled set. `find_run` finds a
    run of the store by its name. `serving` lists the index builds promoted to serve this night,
    newest first. Only rules that need these two call them. `fixed_sets` give the judges' levels on
    labelled sets in each night.
    """

    manifest: Manifest
    scores: dict[str, MetricScores]
    earlier: Sequence[Manifest]
    load: Load
    drifts: Sequence[Drift] = ()
    find_run: Callable[[str], Manifest | None] = _no_run
    serving: Callable[[], Sequence[str]] = _no_build
    fixed_sets: FixedSets | None = None
    ids: IdReader | None = None
    """Reads which contexts a night retrieved."""
    notified: Mapping[str, Notification] = field(default_factory=dict)
    """The last notification of each firing alert, by the alert's key."""
    mix_tags: Sequence[str] | None = None
    """Tags by which nights are compared like with like; None: those that explain the scores."""
    stale: set[str] = field(default_factory=set, init=False, compare=False)
    """Questions of tonight whose labels name documents that no longer exist."""
    baselines: dict[str, Baseline] = field(default_factory=dict, init=False, compare=False)
    """The baseline of each alert's drop, by the alert's key."""
    coder: RowCoder = field(default_factory=RowCoder, init=False, repr=False, compare=False)
    """The rows of nights as numbers."""
    movements: dict[str, JudgeMovement | None] = field(
        default_factory=dict, init=False, compare=False
    )
    """Cached movement of the judge from night to night, by metric."""
    _read: dict[tuple[str, str], MetricScores] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def comparable(self, metric: str) -> list[Manifest]:
        """The earlier nights that were scored in the same way by the same judge."""
        return [one for one in self.earlier if self.compares(one, metric)]

    def compares(self, one: Manifest, metric: str) -> bool:
        """Whether a run scored the metric in the same way and by the same judge as tonight."""
        now, summary = self.manifest.summary(metric), one.summary(metric)
        return bool(now and summary and summary.scored and summary.fingerprint == now.fingerprint)

    def questions(
        self,
        metric: str,
        segment: Segment | None,
        nights: Sequence[Manifest],
        build: str | None = None,
    ) -> list[QuestionValues]:
        """The values of each question on some nights, for one index build or all."""
        return [self.rows(metric, one, build).by_question(segment) for one in nights]

    def rows(self, metric: str, one: Manifest, build: str | None = None) -> MetricScores:
        """A metric's scores of a night, for one index build or all.

        Each night is read once for all segments of a metric, and cached until the next metric.
        """
        if one.run == self.manifest.run and one.date == self.manifest.date:
            return _of_build(self.scores[metric], build)
        place = f"{one.date}/{one.run}"
        if (metric, place) not in self._read:
            if any(name != metric for name, _ in self._read):
                self._read.clear()
            self._read[metric, place] = self.load(one, metric)
        return _of_build(self._read[metric, place], build)


def _of_build(scores: MetricScores, build: str | None) -> MetricScores:
    if build is None:
        return scores
    table = scores.table
    return replace(scores, table=table[table[BUILDS] == build] if BUILDS in table else table[:0])
