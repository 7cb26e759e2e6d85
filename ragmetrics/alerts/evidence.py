"""Evidence: what rules look at, tonight's scores and those of the nights before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias

from ragmetrics.calibration.records import Drift
from ragmetrics.records import Manifest, Segment
from ragmetrics.summarise import MetricScores

Load: TypeAlias = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of an earlier night."""


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
    ) -> dict[str, list[float]]:
        """The values of each question over several earlier nights."""
        found: dict[str, list[float]] = {}
        for one in nights:
            for question, values in self._scores(one, metric).by_question(segment).items():
                found.setdefault(question, []).extend(values)
        return found

    def _scores(self, one: Manifest, metric: str) -> MetricScores:
        """Each night is read once for all segments of a metric, and kept until the next metric."""
        if (metric, one.date) not in self._read:
            if any(name != metric for name, _ in self._read):
                self._read.clear()
            self._read[metric, one.date] = self.load(one, metric)
        return self._read[metric, one.date]
