"""Figures of a judge: its verdicts beside their labels, and row scores beside gold figures.

A unit is one judged item. A gold figure rates a whole row and is compared with the metric of its
own name; the figures of known labelled sets are compared with the metric that measures the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ragmetrics.people.calibration.agreement_figures import (
    auc_statistic,
    auc_within_statistic,
    calibration_error_statistic,
    confusion,
    kappa_statistic,
    reliability,
    spearman_statistic,
)
from ragmetrics.people.calibration.labelled import LabelledRow
from ragmetrics.people.calibration.labelled_sets import AskedRow, LabelQuestion
from ragmetrics.records import (
    Agreement,
    Confusion,
    Figure,
    FigureName,
    GoldRank,
    Score,
    Segment,
    Status,
)
from ragmetrics.stats import Numbers, Statistic, alpha_statistic, mean_interval, ratio, resampled

Name = TypeVar("Name", bound=str)
_MOST_SEGMENTS = 20
_FEWEST_UNITS = 10
GOLD = {
    "char_recall": "context_recall",
    "char_precision": "context_relevancy",
    "context_relevance_sentence": "context_relevancy",
    "context_relevance_chunk": "context_relevancy_chunks",
    "chunk_precision": "context_relevancy_chunks",
}
"""Gold figure -> metric."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One judged item: its label, and its verdict or the reason for none."""

    id: str
    """Id of the row."""
    question: str
    """Key of the question, which is the cluster."""
    unit: str
    content: str
    """Digest of the judged texts."""
    label: float
    verdict: float | None
    strength: float | None = None
    status: Status = Status.SCORED
    segments: Mapping[str, str] = field(default_factory=dict)
    row: str = ""
    """Position of the row in the set, as ids may repeat; empty in records of older versions."""


def units_of(
    row: AskedRow,
    question: LabelQuestion,
    verdicts: Sequence[float] | None,
    status: Status = Status.SCORED,
    strengths: Sequence[float] | None = None,
) -> list[Unit]:
    """The units of a question with their verdicts; without verdicts, `status` says why."""
    labelled, nothing = row.labelled, [None] * len(question.units)
    return [
        Unit(
            id=labelled.row.id,
            question=labelled.question,
            unit=unit,
            content=question.content,
            label=label,
            verdict=verdict,
            strength=strength,
            status=status,
            segments=labelled.segments,
            row=str(row.number),
        )
        for unit, label, verdict, strength in zip(
            question.units, question.labels, verdicts or nothing, strengths or nothing, strict=True
        )
    ]


@dataclass(frozen=True)
class Columns:
    """Units with a verdict, as arrays."""

    rows: NDArray[np.str_]
    questions: NDArray[np.str_]
    labels: Numbers
    verdicts: Numbers
    strengths: Numbers
    label_from: float
    verdict_from: float

    @property
    def positive(self) -> Numbers:
        """1 where the label is positive."""
        return (self.labels >= self.label_from).astype(np.float64)

    @property
    def expected(self) -> Numbers:
        """What a strength should be on average: the label, where half a label counts as half."""
        return self.positive if self.label_from >= 1 else self.labels

    @property
    def said(self) -> Numbers:
        """1 where the verdict is positive."""
        return (self.verdicts >= self.verdict_from).astype(np.float64)


def columns(
    units: Sequence[Unit], label_from: float, verdict_from: float, strong: bool | None = None
) -> Columns:
    """The units with a verdict. Where not every unit has a strength, the verdicts replace them.

    `strong` says whether to use the strengths, for the comparison of two judges.
    """
    judged = [(unit, unit.verdict) for unit in units if unit.verdict is not None]
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
    """Whether every verdict has a strength."""
    judged = [unit for unit in units if unit.verdict is not None]
    return bool(judged) and all(one.strength is not None for one in judged)


def statistics(data: Columns) -> dict[FigureName, Statistic]:
    """The figures as functions of resampling counts.

    Rank figures and the calibration error use the strengths, agreement figures the verdicts. The
    calibration error is of strengths in [0, 1] alone. Kappa and accuracy use positive
    or not; the others use the values, halves included.
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
    if len(data.strengths) and data.strengths.min() >= 0 and data.strengths.max() <= 1:
        found["calibration_error"] = calibration_error_statistic(data.expected, data.strengths)
    return found


def agreement(data: Columns, segment: Segment | None = None) -> Agreement | None:
    """All figures of some units; None where there is no unit."""
    if not len(data.labels):
        return None
    table = confusion(data.labels, data.verdicts)
    bins, error = reliability(data.positive, data.strengths, data.questions)
    return Agreement(
        segment=segment,
        rows=len(np.unique(data.rows)),
        units=len(data.labels),
        questions=len(np.unique(data.questions)),
        positive=float(data.positive.mean()),
        figures=figures_of(statistics(data), data.questions, _by_chance(data, data.strengths)),
        confusion=Confusion(
            labels=list(table),
            verdicts=list(next(iter(table.values()))),
            counts=[list(line.values()) for line in table.values()],
        ),
        reliability=bins,
        calibration_error=error,
    )


def figure(value: float | None, interval: tuple[float, float] | None) -> Figure:
    """A figure as a record. A figure that is not defined has no interval."""
    if value is None or interval is None:
        return Figure(value=value)
    return Figure(value=value, low=interval[0], high=interval[1])


def figures_of(
    statistics: Mapping[Name, Statistic],
    questions: Sequence[str] | NDArray[np.str_],
    by_chance: Mapping[Name, Statistic] | None = None,
) -> dict[Name, Figure]:
    """The figures of some units with their intervals, clustered by question: see `resampled`."""
    values = resampled(statistics, questions, by_chance)
    return {name: figure(*value) for name, value in values.items()}


def calibration_error(data: Columns, probabilities: Numbers) -> Figure:
    """The expected calibration error of other probabilities of the same units."""
    error: dict[FigureName, Statistic] = {
        "calibration_error": calibration_error_statistic(data.expected, probabilities)
    }
    figures = figures_of(error, data.questions, _by_chance(data, probabilities))
    return figures["calibration_error"]


def _by_chance(data: Columns, probabilities: Numbers) -> dict[FigureName, Statistic]:
    """The figures that chance alone makes positive, as it would make them."""
    statistic = calibration_error_statistic(data.expected, probabilities, by_chance=True)
    return {"calibration_error": statistic}


def mean_figure(values: Sequence[float], questions: Sequence[str]) -> Figure:
    """The mean of some units with its interval, clustered by question."""
    mean = mean_interval(np.array(values, dtype=np.float64), questions)
    return Figure(value=mean.mean, low=mean.low, high=mean.high) if mean else Figure()


def by_segment(units: Sequence[Unit]) -> list[tuple[Segment, list[Unit]]]:
    """The units by language, run and tag. Only tags with 2 to 20 values and enough units count."""
    values: dict[str, dict[str, list[Unit]]] = {}
    for unit in units:
        for tag, value in unit.segments.items():
            values.setdefault(tag, {}).setdefault(value, []).append(unit)
    return [
        (Segment(tag=tag, value=value), inside)
        for tag, groups in sorted(values.items())
        if 2 <= len(groups) <= _MOST_SEGMENTS
        for value, inside in sorted(groups.items())
        if len(inside) >= _FEWEST_UNITS
    ]


def by_status(units: Iterable[Unit | Score]) -> dict[str, int]:
    """Count of units, or scores of rows, by status."""
    return dict(Counter(unit.status.value for unit in units))


@dataclass(frozen=True, slots=True)
class GoldScore:
    """A row's gold figure and the metric's score of the row."""

    metric: str
    gold: str
    value: float
    question: str
    score: Score


def gold_metrics(
    labelled: LabelledRow, wanted: Sequence[str] | None, known: Container[str]
) -> list[tuple[str, str, float]]:
    """The row's gold figures of known metrics as (metric, name of the figure, value)."""
    found = []
    for key, value in labelled.labels.gold.items():
        name = GOLD.get(key, key)
        if value is not None and name in known and (wanted is None or name in wanted):
            found.append((name, key, value))
    return found


def gold_ranks(scores: Iterable[GoldScore]) -> list[GoldRank]:
    """Spearman's correlation of scores and gold figures, by metric and figure."""
    groups: dict[tuple[str, str], list[GoldScore]] = {}
    for score in scores:
        groups.setdefault((score.metric, score.gold), []).append(score)
    return [_rank(*names, inside) for names, inside in sorted(groups.items())]


def _rank(metric: str, gold: str, scores: Sequence[GoldScore]) -> GoldRank:
    pairs = [(score, score.score.value) for score in scores if score.score.value is not None]
    statistic = spearman_statistic([one.value for one, _ in pairs], [value for _, value in pairs])
    return GoldRank(
        metric=metric,
        gold=gold,
        spearman=figures_of({"spearman": statistic}, [one.question for one, _ in pairs])[
            "spearman"
        ],
        rows=len(pairs),
        status=by_status(score.score for score in scores),
    )
