"""Evidence: what rules look at, tonight's scores and those of the nights before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from ragmetrics.alerts.coded_rows import RowCoder
from ragmetrics.model.calibration import Drift
from ragmetrics.model.changes import BUILDS, JudgeMovement
from ragmetrics.model.manifest import Manifest, Notification, Segment
from ragmetrics.scoring.summary import MetricScores
from ragmetrics.stats.comparisons import Drop, compare
from ragmetrics.stats.permutation_test import LEAST, chance_of_order

if TYPE_CHECKING:
    from ragmetrics.alerts.document_ids import IdReader
    from ragmetrics.calibration.judge_level import FixedSets

ASKED_ALIKE = 0.9
"""Rows that a question has now, to those before, from which its nights compare one by one."""

Load: TypeAlias = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of an earlier night."""
Questions: TypeAlias = Mapping[str, Sequence[float]]
"""Of one night, the values of each question's rows."""


@dataclass(frozen=True)
class Baseline:
    """What a drop is measured against: the rows of some nights, of one index build or of all."""

    nights: Sequence[Manifest]
    label: str = ""
    build: str | None = None
    """Of these nights, only the rows of this index build."""
    spell: Sequence[Manifest] = ()
    """The nights of the present spell before tonight, to be judged with it."""
    fixed: bool = False
    """Whether it is the same whatever the alert's history is."""
    usual: Sequence[Manifest] = ()
    """All nights before the spell on which the alert was not firing: these may be more."""
    past: Sequence[Manifest] = ()
    """All nights before the spell. A day of the week that fired every week is among them."""


def _no_run(_: str) -> Manifest | None:
    return None


def _no_build() -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Night:
    """What the rules look at: the manifest so far, this night's scores, and the nights before.

    `drifts` are the newest of this night's judges, one per labelled set. `find_run` finds any run
    of the store by its name, `serving` the index builds that were promoted to serve this night,
    newest first; both are asked only by rules that need them. `fixed_sets` know how the judges
    scored labelled sets in each night.
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
    """By key of the alert, what people were last told of those that fire."""
    mix_tags: Sequence[str] | None = None
    """Tags by which nights are compared like with like; None: those that explain the scores."""
    stale: set[str] = field(default_factory=set, init=False, compare=False)
    """Questions of tonight whose labels name documents that are gone."""
    baselines: dict[str, Baseline] = field(default_factory=dict, init=False, compare=False)
    """What each alert's drop was measured against, as its finding tells it."""
    coder: RowCoder = field(default_factory=RowCoder, init=False, repr=False, compare=False)
    """The rows of nights as numbers."""
    movements: dict[str, JudgeMovement | None] = field(
        default_factory=dict, init=False, compare=False
    )
    """How far the judge moves from night to night in each metric, as it was found."""
    _read: dict[tuple[str, str], MetricScores] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def comparable(self, metric: str) -> list[Manifest]:
        """The earlier nights that were scored in the same way by the same judge."""
        return [one for one in self.earlier if self.compares(one, metric)]

    def compares(self, one: Manifest, metric: str) -> bool:
        """Whether a run scored the metric, in the same way by the same judge as tonight's."""
        now, summary = self.manifest.summary(metric), one.summary(metric)
        return bool(now and summary and summary.scored and summary.fingerprint == now.fingerprint)

    def questions(
        self,
        metric: str,
        segment: Segment | None,
        nights: Sequence[Manifest],
        build: str | None = None,
    ) -> list[Questions]:
        """The values of each question on some earlier nights, of one index build or of all."""
        return [self.rows(metric, one, build).by_question(segment) for one in nights]

    def rows(self, metric: str, one: Manifest, build: str | None = None) -> MetricScores:
        """A metric's scores of a night, of one index build or of all.

        Each night is read once for all segments of a metric, and kept until the next metric.
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


def held_against(before: Sequence[Questions], now: Sequence[Questions]) -> Drop | None:
    """How far a mean fell from some nights to others.

    Where they share their questions, p is that of the order of each question's nights; of more
    questions than that can be told of, or beyond what it can show, it is that of the t test. The
    larger of both where questions have fewer rows now: a mean of fewer rows moves more by itself
    than those that it would be dealt with.
    """
    drop = compare(together(before), together(now))
    if drop is None or not drop.paired:
        return drop
    chance = chance_of_order(question_means(before), question_means(now))
    if chance is None or (chance <= LEAST and drop.p_value < chance):
        return drop
    fewer = _rows_each(now, before) < ASKED_ALIKE * _rows_each(before, now)
    return replace(drop, p_value=max(chance, drop.p_value) if fewer else chance)


def _rows_each(nights: Sequence[Questions], others: Sequence[Questions]) -> float:
    """Rows that a question has on a night, on average, of the questions of both."""
    shared = set[str]().union(*others)
    rows = [len(values) for night in nights for name, values in night.items() if name in shared]
    return sum(rows) / len(rows)


def together(nights: Sequence[Questions]) -> dict[str, list[float]]:
    """The values of each question over several nights."""
    found: dict[str, list[float]] = {}
    for night in nights:
        for question, values in night.items():
            if own := found.get(question):
                own.extend(values)
            else:
                found[question] = list(values)
    return found


def question_means(nights: Sequence[Questions]) -> list[dict[str, float]]:
    """The mean of each question's rows, night by night."""
    return [
        {question: sum(values) / len(values) for question, values in night.items()}
        for night in nights
    ]
