"""Evidence: what rules look at, tonight's scores and those of the nights before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeAlias

from ragmetrics.calibration.records import Drift
from ragmetrics.records import Manifest, Segment
from ragmetrics.stats.comparisons import Drop, compare
from ragmetrics.stats.orderings import LEAST, chance_of_order
from ragmetrics.summarise import MetricScores

Load: TypeAlias = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of an earlier night."""
Questions: TypeAlias = Mapping[str, Sequence[float]]
"""Of one night, the values of each question's rows."""


@dataclass(frozen=True)
class Night:
    """What the rules look at: the manifest so far, this night's scores, and the nights before.

    `drifts` are the newest of this night's judges, one per labelled set.
    """

    manifest: Manifest
    scores: dict[str, MetricScores]
    earlier: Sequence[Manifest]
    load: Load
    drifts: Sequence[Drift] = ()
    _read: dict[tuple[str, date], MetricScores] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def comparable(self, metric: str) -> list[Manifest]:
        """The earlier nights that were scored in the same way by the same judge."""
        now = self.manifest.summary(metric)
        return [
            one
            for one in self.earlier
            if now
            and (summary := one.summary(metric))
            and summary.scored
            and summary.fingerprint == now.fingerprint
        ]

    def questions(
        self, metric: str, segment: Segment | None, nights: Sequence[Manifest]
    ) -> list[Questions]:
        """The values of each question on some earlier nights."""
        return [self._scores(one, metric).by_question(segment) for one in nights]

    def _scores(self, one: Manifest, metric: str) -> MetricScores:
        """Each night is read once for all segments of a metric, and kept until the next metric."""
        if (metric, one.date) not in self._read:
            if any(name != metric for name, _ in self._read):
                self._read.clear()
            self._read[metric, one.date] = self.load(one, metric)
        return self._read[metric, one.date]


def held_against(before: Sequence[Questions], now: Sequence[Questions]) -> Drop | None:
    """How far a mean fell from some nights to others.

    Where they share their questions, p is that of the order of each question's nights; of more
    questions than that can be told of, or beyond what it can show, it is that of the t test.
    """
    drop = compare(together(before), together(now))
    if drop is None or not drop.paired:
        return drop
    chance = chance_of_order(_means(before), _means(now))
    if chance is None or (chance <= LEAST and drop.p_value < chance):
        return drop
    return replace(drop, p_value=chance)


def together(nights: Sequence[Questions]) -> dict[str, list[float]]:
    """The values of each question over several nights."""
    found: dict[str, list[float]] = {}
    for night in nights:
        for question, values in night.items():
            found.setdefault(question, []).extend(values)
    return found


def _means(nights: Sequence[Questions]) -> list[dict[str, float]]:
    return [
        {question: sum(values) / len(values) for question, values in night.items()}
        for night in nights
    ]
