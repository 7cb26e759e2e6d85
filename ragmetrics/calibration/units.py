"""Units: each verdict beside its label, and the figures made of many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ragmetrics.model import (
    Agreement,
    Confusion,
    Figure,
    FigureName,
    ReliabilityBin,
    Segment,
    Status,
)
from ragmetrics.stats import (
    Floats,
    Statistic,
    alpha_statistic,
    auc_statistic,
    auc_within_statistic,
    bootstrap_intervals,
    confusion,
    kappa_statistic,
    ratio,
    reliability,
    spearman_statistic,
    unweighted,
)

_MOST_SEGMENTS = 20
_FEWEST_UNITS = 10


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing judged: its label, and the verdict on it or the reason for none."""

    id: str
    """The row's."""
    question: str
    """The cluster."""
    unit: str
    content: str
    """Equal where the same texts were judged."""
    label: float
    verdict: float | None
    strength: float | None = None
    status: Status = Status.SCORED
    segments: Mapping[str, str] = field(default_factory=dict)
    row: str = ""
    """The row's place in the set, since ids may stand twice; empty in what older versions kept."""


@dataclass(frozen=True)
class Columns:
    """Units with a verdict, as arrays."""

    rows: NDArray[np.str_]
    questions: NDArray[np.str_]
    labels: Floats
    verdicts: Floats
    strengths: Floats
    label_from: float
    verdict_from: float

    @property
    def positive(self) -> Floats:
        """1 where the label is positive."""
        return (self.labels >= self.label_from).astype(np.float64)

    @property
    def said(self) -> Floats:
        """1 where the verdict is positive."""
        return (self.verdicts >= self.verdict_from).astype(np.float64)


def columns(
    units: Sequence[Unit], label_from: float, verdict_from: float, strong: bool | None = None
) -> Columns:
    """The units that got a verdict; verdicts stand in where not every one has a strength.

    `strong` says whether to use the strengths, where two judges are to be held together.
    """
    judged = [(one, one.verdict) for one in units if one.verdict is not None]
    verdicts = np.array([verdict for _, verdict in judged], dtype=np.float64)
    strengths = [one.strength for one, _ in judged]
    strong = has_strengths(units) if strong is None else strong
    return Columns(
        np.array([one.row or one.id for one, _ in judged], dtype=np.str_),
        np.array([one.question for one, _ in judged], dtype=np.str_),
        np.array([one.label for one, _ in judged], dtype=np.float64),
        verdicts,
        np.array(strengths, dtype=np.float64) if strong else verdicts,
        label_from,
        verdict_from,
    )


def has_strengths(units: Iterable[Unit]) -> bool:
    """Whether the judge said of every verdict how strongly it believes in it."""
    judged = [one for one in units if one.verdict is not None]
    return bool(judged) and all(one.strength is not None for one in judged)


def statistics(data: Columns) -> dict[FigureName, Statistic]:
    """The figures, ready to be resampled.

    Ranks are those of the strengths; agreement is that of the verdicts: plain kappa and accuracy
    of positive or not, the others of the values as they stand, halves among them.
    """
    agreed = (data.positive == data.said).astype(np.float64)
    found: dict[FigureName, Statistic] = {
        "auc": auc_statistic(data.positive, data.strengths),
        "auc_within": auc_within_statistic(data.rows, data.positive, data.strengths),
        "kappa": kappa_statistic(data.positive, data.said),
        "kappa_quadratic": kappa_statistic(data.labels, data.verdicts, "quadratic"),
        "alpha": alpha_statistic([data.labels, data.verdicts], "ordinal"),
        "spearman": spearman_statistic(data.labels, data.strengths),
        "accuracy": lambda counts: ratio(counts @ agreed, counts.sum(1)),
    }
    if min(len(np.unique(data.labels)), len(np.unique(data.verdicts))) > 2:
        found["kappa_classes"] = kappa_statistic(data.labels, data.verdicts)
    return found


def agreement(data: Columns, segment: Segment | None = None) -> Agreement | None:
    """All figures of some units, None where there is no unit."""
    if not len(data.labels):
        return None
    figures = statistics(data)
    intervals = bootstrap_intervals(figures, data.questions)
    table = confusion(data.labels, data.verdicts)
    told = reliability(data.positive, data.strengths, data.questions)
    return Agreement(
        segment=segment,
        rows=len(np.unique(data.rows)),
        units=len(data.labels),
        questions=len(np.unique(data.questions)),
        positive=float(data.positive.mean()),
        figures={
            name: figure(unweighted(statistic, len(data.labels)), intervals[name])
            for name, statistic in figures.items()
        },
        confusion=Confusion(
            labels=list(table),
            verdicts=list(next(iter(table.values()))),
            counts=[list(line.values()) for line in table.values()],
        ),
        reliability=[
            ReliabilityBin(**{name: getattr(one, name) for name in one.__slots__})
            for one in (told.bins if told else ())
        ],
        calibration_error=told.error if told else None,
    )


def figure(value: float | None, interval: tuple[float, float] | None) -> Figure:
    """A figure as a record; one that is not defined has no interval."""
    if value is None or interval is None:
        return Figure(value=value)
    return Figure(value=value, low=interval[0], high=interval[1])


def by_segment(units: Sequence[Unit]) -> list[tuple[Segment, list[Unit]]]:
    """The units by language, run and tag: tags with 2 to 20 values, those with enough units."""
    values: dict[str, dict[str, list[Unit]]] = {}
    for one in units:
        for tag, value in one.segments.items():
            values.setdefault(tag, {}).setdefault(value, []).append(one)
    return [
        (Segment(tag=tag, value=value), inside)
        for tag, groups in sorted(values.items())
        if 2 <= len(groups) <= _MOST_SEGMENTS
        for value, inside in sorted(groups.items())
        if len(inside) >= _FEWEST_UNITS
    ]


def by_status(units: Iterable[Unit]) -> dict[str, int]:
    """Count of units by status."""
    return dict(Counter(one.status.value for one in units))
