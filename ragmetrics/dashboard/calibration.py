"""Judges compared with labelled rows, for their page and for the line on a night's page."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragmetrics.dashboard.formatting import count
from ragmetrics.dashboard.night_tables import STATUS
from ragmetrics.people import STEPS, History, judge_names, repeats
from ragmetrics.records import (
    Agreement,
    Calibration,
    Drift,
    Figure,
    FigureName,
    JudgeInfo,
    Manifest,
    MetricCalibration,
    MetricDrift,
    Status,
    fingerprint,
)
from ragmetrics.text import slug

_MOST_TAGS = 6
_STEPS = (0.0, 0.1, 0.2)
"""How far an AUC with one, two or three marks is below that of all rows."""


@dataclass(frozen=True)
class CalibrationPoint:
    """One metric in one calibration."""

    calibration: Calibration
    measured: MetricCalibration
    drift: MetricDrift | None
    """The comparison with the calibration before."""
    changed: bool
    """Whether the judge's settings or prompts differ from those of the calibration before."""

    @property
    def drifted(self) -> bool:
        """Whether the metric drifted since the calibration before."""
        return bool(self.drift and self.drift.drifted)

    @property
    def level(self) -> float | None:
        """The mean verdict. The set never changes, so only the judge can move it."""
        return _mean(self.measured, of_labels=False)

    @property
    def labelled(self) -> float | None:
        """The mean label of the same units."""
        return _mean(self.measured, of_labels=True)

    def figure(self, name: FigureName) -> Figure:
        """A figure over all rows; it has no value if there is none."""
        overall = self.measured.overall
        return overall.figures.get(name, Figure()) if overall else Figure()


def _mean(measured: MetricCalibration, *, of_labels: bool) -> float | None:
    """The mean verdict or label of the units with a verdict; None if there are none."""
    if measured.overall is None:
        return None
    confusion = measured.overall.confusion
    columns = [sum(column) for column in zip(*confusion.counts, strict=True)]
    values, units = (
        (confusion.labels, list(map(sum, confusion.counts)))
        if of_labels
        else (confusion.verdicts, columns)
    )
    total = sum(value * count for value, count in zip(values, units, strict=True))
    return total / sum(units) if sum(units) else None


@dataclass(frozen=True)
class Standing:
    """One judge on one labelled set, with all its calibrations."""

    history: tuple[Calibration, ...]
    """Oldest first."""
    drifts: tuple[Drift, ...]

    @property
    def newest(self) -> Calibration:
        """The newest calibration, which is shown in full."""
        return self.history[-1]

    @property
    def drift(self) -> Drift | None:
        """The comparison of the newest calibration with those before."""
        return next((drift for drift in self.drifts if drift.later == self.newest.at), None)

    @property
    def drifted(self) -> bool:
        """Whether the newest calibration shows drift."""
        return bool(self.drift and self.drift.drifted)

    @property
    def state(self) -> tuple[str, str]:
        """The name of an icon, and the words."""
        if self.drifted:
            return "firing", "drifted"
        if self.newest.incomplete:
            return "incomplete", "incomplete"
        if not self.drift:
            return "unwatched", "first calibration"
        untold = next((metric.state for metric in self.drift.metrics if metric.untold), "")
        return (
            ("no_data", untold or "no data") if self.drift.has_unknown else ("ok", "no drift shown")
        )

    @property
    def anchor(self) -> str:
        """Its place on the page."""
        return anchor(self.newest)

    def points(self, metric: str) -> list[CalibrationPoint]:
        """The metric over time, oldest first."""
        found = [(one, one.measured(metric)) for one in self.history[-STEPS:]]
        scored = [(one, measured) for one, measured in found if measured and measured.overall]
        points = [CalibrationPoint(one, measured, None, False) for one, measured in scored[:1]]
        for (before, asked), (later, measured) in pairwise(scored):
            same = (before.judge.fingerprint, asked.fingerprint)
            changed = same != (later.judge.fingerprint, measured.fingerprint)
            points.append(CalibrationPoint(later, measured, self._step(later, metric), changed))
        return points

    def moved(self, metric: str) -> MetricDrift | None:
        """The change of a metric since the calibration before."""
        return self._step(self.newest, metric)

    def _step(self, calibration: Calibration, metric: str) -> MetricDrift | None:
        metrics = [m for one in self.drifts if one.later == calibration.at for m in one.metrics]
        return next((one for one in metrics if one.metric == metric), None)


@dataclass(frozen=True)
class Trust:
    """A calibration of a night's judge on one set, the nearest in time."""

    calibration: Calibration
    exact: bool | None
    """Whether it is of the same judge; None for a panel, whose judges are known by name only."""
    anchor: str

    @property
    def figures(self) -> list[tuple[str, Figure]]:
        """Quadratic kappa by metric."""
        return [
            (metric.metric, metric.overall.figures["kappa_quadratic"])
            for metric in self.calibration.metrics
            if metric.overall
        ]


def anchor(calibration: Calibration) -> str:
    """The place of a set and judge on the page; always the same."""
    key = f"{calibration.name}\n{calibration.judge.name}".encode("utf-8", "replace")
    return f"{slug(calibration.name)}-{hashlib.blake2b(key, digest_size=4).hexdigest()}"


def standings(history: History) -> list[Standing]:
    """Every judge on every set: first the sets with drift, then the most recent."""
    pairs: dict[tuple[str, str], list[Calibration]] = {}
    for calibration in history.calibrations:
        pairs.setdefault((calibration.name, calibration.judge.name), []).append(calibration)
    listed = [
        Standing(tuple(calibrations), tuple(d for d in history.drifts if (d.name, d.judge) == pair))
        for pair, calibrations in pairs.items()
    ]
    drifted = {one.newest.name for one in listed if one.drifted}
    newest = {one.newest.name: one.newest.at for one in sorted(listed, key=lambda s: s.newest.at)}

    def order(one: Standing) -> tuple[bool, float, str, bool, str]:
        name = one.newest.name
        age = -newest[name].timestamp()
        return name not in drifted, age, name, not one.drifted, one.newest.judge.name

    return sorted(listed, key=order)


def trusted(manifest: Manifest, calibrations: Sequence[Calibration]) -> list[Trust]:
    """For each set and judge of a night, the calibration nearest in time.

    A calibration of the same judge is preferred to one of another judge with the same name.
    """
    judges = manifest.judge.each
    names = [name for judge in judges for name in judge_names(judge)]
    nearest: dict[tuple[str, str], Trust] = {}
    for calibration in sorted(calibrations, key=lambda one: abs(one.at - manifest.finished_at)):
        exact = (
            None if manifest.judge.panel else any(_is_of(calibration.judge, one) for one in judges)
        )
        key = calibration.name, calibration.judge.name
        better = key not in nearest or bool(exact) > bool(nearest[key].exact)
        if (exact or calibration.judge.name in names) and better:
            nearest[key] = Trust(calibration, exact, anchor(calibration))
    return [nearest[key] for key in sorted(nearest)]


def _is_of(calibrated: JudgeInfo, judge: JudgeInfo) -> bool:
    """Whether a night's single judge is the calibrated one, asked once or several times."""
    often = fingerprint("panel", "", [(calibrated.fingerprint, repeats(judge))])  # as a night's
    return judge.fingerprint in (calibrated.fingerprint, often)


def unanswered(measured: MetricCalibration) -> list[str]:
    """`12 unreadable verdict`: the units without a verdict, by reason."""
    return [
        f"{count(units)} {STATUS.get(status, status)}"
        for status, units in sorted(measured.status.items())
        if status != Status.SCORED and units
    ]


@dataclass(frozen=True)
class SegmentCell:
    """One metric over one value of a tag."""

    agreement: Agreement
    shade: int
    """0 to 3: how far its AUC is significantly below that of all rows."""


@dataclass(frozen=True)
class SegmentTable:
    """The metrics by the values of one tag; None if there are too few units."""

    tag: str
    metrics: tuple[str, ...]
    lines: tuple[tuple[str, tuple[SegmentCell | None, ...]], ...]


def segment_tables(calibration: Calibration) -> list[SegmentTable]:
    """One table per tag, languages first."""
    tags: dict[str, dict[str, dict[str, SegmentCell]]] = {}
    for measured in calibration.metrics:
        for segment in measured.segments:
            if segment.segment and measured.overall:
                values = tags.setdefault(segment.segment.tag, {})
                cell = SegmentCell(segment, _shade(segment, measured.overall))
                values.setdefault(segment.segment.value, {})[measured.metric] = cell
    ordered = sorted(tags, key=lambda tag: (tag != "language", tag))[:_MOST_TAGS]
    names = [metric.metric for metric in calibration.metrics]
    return [_table(tag, tags[tag], names) for tag in ordered]


def _table(
    tag: str, values: dict[str, dict[str, SegmentCell]], names: Sequence[str]
) -> SegmentTable:
    metrics = tuple(name for name in names if any(name in cells for cells in values.values()))
    lines = tuple(
        (value, tuple(cells.get(name) for name in metrics))
        for value, cells in sorted(values.items())
    )
    return SegmentTable(tag, metrics, lines)


def _shade(one: Agreement, overall: Agreement) -> int:
    here, whole = one.figures.get("auc", Figure()), overall.figures.get("auc", Figure())
    if None in (here.high, here.value, whole.value) or (here.high or 0) >= (whole.value or 0):
        return 0
    return sum((whole.value or 0) - (here.value or 0) >= step for step in _STEPS)
