"""Records of calibrations, stored as JSON.

Calibration             one judge compared with one labelled set
├── MetricCalibration   one metric: verdicts compared with labels, over all rows and by segment
│   └── Agreement       figures, confusion and reliability of some units
├── GoldRank            rank correlation of a metric's row scores with a gold figure
└── AttackResult        how an attack changed the grades of irrelevant contexts
Drift                   the same set and judge at two times
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.judging import JudgeInfo, JudgeName, Usage
from ragmetrics.records.manifest import BrokenFile
from ragmetrics.records.score import Segment

CALIBRATION_VERSION = 1
DRIFT_VERSION: Literal[2] = 2

FigureName = Literal[
    "auc",
    "auc_within",
    "kappa",
    "kappa_classes",
    "kappa_quadratic",
    "alpha",
    "spearman",
    "accuracy",
    "calibration_error",
]

FIGURES: dict[FigureName, str] = {
    "auc": "AUC, pooled",
    "auc_within": "AUC, within row",
    "kappa": "Cohen's kappa",
    "kappa_classes": "kappa, classes",
    "kappa_quadratic": "kappa, quadratic",
    "alpha": "Krippendorff's α",
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "calibration_error": "calibration error",
}
"""Names of the figures, in display order."""


class Figure(Record):
    """A figure with its interval; None where it is not defined, or there is too little data."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class ReliabilityBin(Record):
    """Units whose strength is between `low` and `high`."""

    low: float
    high: float
    n: int
    judged: float
    """Mean strength."""
    observed: float
    """Share of positive labels."""
    observed_low: float | None
    observed_high: float | None


class Confusion(Record):
    """Count of units by label (row) and verdict (column)."""

    labels: list[float]
    verdicts: list[float]
    counts: list[list[int]]


class Agreement(Record):
    """Verdicts compared with labels, over all rows or one segment."""

    segment: Segment | None = None
    rows: int
    units: int
    questions: int
    positive: float
    """Share of units with a positive label."""
    figures: dict[FigureName, Figure]
    confusion: Confusion
    reliability: list[ReliabilityBin] = Field(default_factory=list)
    """Empty where the strengths are not in [0, 1]."""
    calibration_error: float | None = None
    """That of the bins of `reliability`; the figure of this name has bins of equally many units."""


class MetricCalibration(Record):
    """One metric's verdicts compared with the labels."""

    metric: str
    fingerprint: str
    """Fingerprint of judge and prompts."""
    unit: str
    """What one verdict is about: a context, a sentence or a statement."""
    label: str
    strengths: Literal["evidence", "verdict"]
    """What AUC, Spearman and reliability use: the judge's own strengths, or its verdicts."""
    status: dict[str, int]
    """Units by status. Units without a verdict are excluded from the figures."""
    overall: Agreement | None
    """None where no unit has a verdict."""
    segments: list[Agreement] = Field(default_factory=list)
    thresholds: tuple[float, float] | None = None
    """Of a reranker: the scores that fit these labels best as `judge: thresholds:`."""
    cascade_thresholds: tuple[float, float] | None = None
    """Of a reranker: the same for an earlier judge of a cascade, which is certain outside them."""
    certain: float | None = None
    """Share of the contexts outside the thresholds for a cascade."""
    error_after_fit: Figure | None = None
    """Expected calibration error of the probabilities by `calibrate --fit`, each from a fit without
    the questions of its fold."""
    not_fitted: str = ""
    """Why `calibrate --fit` fitted nothing to these labels; empty if it did."""


class GoldRank(Record):
    """Spearman's correlation of a metric's row scores with a gold figure of the rows."""

    metric: str
    gold: str
    spearman: Figure
    rows: int
    status: dict[str, int]
    """Rows that have this gold figure, by status of their score."""


AttackName = Literal["echo", "padding", "orders", "invisible"]

ATTACK_WORDS: dict[AttackName, str] = {
    "echo": "the question put before the context",
    "padding": "the question's words added",
    "orders": "an instruction to the judge",
    "invisible": "the same instruction in invisible characters",
}
"""Description of each attack."""


class AttackResult(Record):
    """The effect of one attack on a judge's grades of irrelevant contexts."""

    attack: AttackName
    contexts: int
    """Irrelevant contexts that were graded with and without the attack. Contexts that have the
    best grade already are left out."""
    lifted: Figure
    """Share of these contexts whose grade is higher with the attack."""


class Calibration(Record):
    """One judge against one labelled set, at one time."""

    version: int = CALIBRATION_VERSION
    name: str
    """Name of the set: its file or folder."""
    source: str
    at: datetime
    ragmetrics: str
    judge: JudgeInfo
    rows: int
    rejected: dict[str, int] = Field(default_factory=dict)
    """Rows that could not be used, by reason."""
    broken: list[BrokenFile] = Field(default_factory=list)
    metrics: list[MetricCalibration]
    gold: list[GoldRank] = Field(default_factory=list)
    attacks: list[AttackResult] = Field(default_factory=list)
    """Empty where no attacks were requested, or no context is labelled irrelevant."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """Metrics that could not be compared with this set, with the reason."""
    usage: Usage = Usage()
    corpus: str | None = None
    """Digest of the set's texts where the judge's replies depend on all of them; else None."""
    refused: str = ""
    """Why this judge could not be asked. Such a record is returned and not stored."""
    redact: bool = False
    """Whether its texts are never published."""
    fit: str = ""
    """The `Recalibration` that was fitted to this set, for `judge: calibration:`; empty if none."""

    @property
    def incomplete(self) -> bool:
        """Whether part of a file, all labels, or all verdicts of a metric are missing."""
        unanswered = any(metric.overall is None for metric in self.metrics)
        return bool(self.broken) or unanswered or not (self.metrics or self.gold)

    def measured(self, metric: str) -> MetricCalibration | None:
        """The calibration of one metric, if there is one."""
        return next((one for one in self.metrics if one.metric == metric), None)


DriftUnknown = Literal["", "no_verdict", "nothing_shared", "set_changed", "too_few"]

DRIFT_UNKNOWN_WORDS: dict[DriftUnknown, str] = {
    "no_verdict": "no data: no readable verdict",
    "nothing_shared": "no data: no unit was judged both times",
    "set_changed": "no data: the labelled set has changed",
    "too_few": "too few to tell",
}
"""Why drift is not known, in words."""


class MetricDrift(Record):
    """Change of one metric's figures on the units that were judged both times."""

    metric: str
    earlier: datetime | None = None
    """Time of the earlier calibration; None where there is nothing to compare with."""
    units: int = 0
    questions: int = 0
    changed: Figure = Figure()
    """Share of verdicts that changed."""
    figures: dict[FigureName, Figure] = Field(default_factory=dict)
    """Later minus earlier: positive is better now."""
    drifted: bool = False
    """Whether quadratic kappa or AUC changed significantly."""
    p_value: float | None = None
    """p value of the largest of these changes, corrected for the number of tested figures."""
    untold: DriftUnknown = ""
    """Why drift is not known; empty where it is known."""

    @property
    def state(self) -> str:
        """`drifted`, `no drift shown`, or why drift is not known."""
        return DRIFT_UNKNOWN_WORDS.get(self.untold) or (
            "drifted" if self.drifted else "no drift shown"
        )


class Drift(Record):
    """Drift of a judge on one set between two times.

    Each metric is compared with the newest calibration that judged some of the same units. A
    calibration without verdicts is passed over.
    """

    version: Literal[2]
    """Version of the drift computation."""
    name: str
    judge: JudgeName
    before: datetime
    """Time of the previous calibration of the judge on the set."""
    earlier: datetime
    """Newest calibration that a metric is compared with; `before` where nothing compares."""
    later: datetime
    same_fingerprint: bool
    """Whether the judge, its settings and its prompts are unchanged."""
    metrics: list[MetricDrift]

    @property
    def drifted(self) -> bool:
        """Whether any metric drifted."""
        return any(metric.drifted for metric in self.metrics)

    @property
    def has_unknown(self) -> bool:
        """Whether the drift of some metric is not known."""
        return not self.metrics or any(metric.untold for metric in self.metrics)


def calibrations_json(
    calibrations: Sequence[Calibration], drifts: Sequence[Drift | None]
) -> dict[str, Any]:
    """The output of `--json`: every calibration with its drift or null."""
    return {
        "calibrations": [
            {
                **calibration.model_dump(mode="json"),
                "drift": drift and drift.model_dump(mode="json"),
            }
            for calibration, drift in zip(calibrations, drifts, strict=True)
        ]
    }
