"""Records of calibrations, kept as JSON.

Calibration       one judge against one labelled set
├── Measured      one metric: verdicts against labels, over all rows and by segment
│   └── Agreement figures, confusion and reliability of some units
├── GoldRank      a metric's row scores against a gold figure of the rows
└── Attacked      irrelevant contexts that an attack lifted
Drift             the same set and judge at two times
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from ragmetrics.model.manifest import BrokenFile, JudgeInfo, Record, Usage
from ragmetrics.model.summary import Segment

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
}
"""The figures, in the order they are shown."""


class Figure(Record):
    """A figure with its interval; None where it is not defined, or the data cannot tell."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class ReliabilityBin(Record):
    """Units whose strength falls between `low` and `high`."""

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
    """How often each verdict (column) met each label (row)."""

    labels: list[float]
    verdicts: list[float]
    counts: list[list[int]]


class Agreement(Record):
    """Verdicts against labels, over all rows or one segment of them."""

    segment: Segment | None = None
    rows: int
    units: int
    questions: int
    positive: float
    """Share of units with a positive label."""
    figures: dict[FigureName, Figure]
    confusion: Confusion
    reliability: list[ReliabilityBin] = Field(default_factory=list)
    """Empty where the strengths are no shares in [0, 1]."""
    calibration_error: float | None = None


class Measured(Record):
    """One metric's verdicts against the labels."""

    metric: str
    fingerprint: str
    """Of judge and prompts."""
    unit: str
    """What one verdict is about: a context, a sentence or a statement."""
    label: str
    strengths: Literal["evidence", "verdict"]
    """What AUC, Spearman and reliability are of: the judge's own strengths, or its verdicts."""
    status: dict[str, int]
    """Units by status: those without a verdict are in no figure."""
    overall: Agreement | None
    """None where no unit got a verdict."""
    segments: list[Agreement] = Field(default_factory=list)


class GoldRank(Record):
    """Spearman's correlation of a metric's row scores with a gold figure of the rows."""

    metric: str
    gold: str
    spearman: Figure
    rows: int
    status: dict[str, int]
    """Rows with this gold figure, by status of their score."""


AttackName = Literal["echo", "padding", "orders", "invisible"]

ATTACK_WORDS: dict[AttackName, str] = {
    "echo": "the question put before the context",
    "padding": "the question's words added",
    "orders": "an order to the judge",
    "invisible": "the same order in invisible characters",
}
"""What each attack does, in words."""


class Attacked(Record):
    """What one attack on irrelevant contexts did to a judge's grades."""

    attack: AttackName
    contexts: int
    """Irrelevant contexts with a grade as they are, not the best one, and a grade attacked."""
    lifted: Figure
    """Share of them that got a higher grade by the attack."""


class Calibration(Record):
    """One judge against one labelled set, at one time."""

    version: int = CALIBRATION_VERSION
    name: str
    """Of the set: its file or folder."""
    source: str
    at: datetime
    ragmetrics: str
    judge: JudgeInfo
    rows: int
    rejected: dict[str, int] = Field(default_factory=dict)
    """Rows that could not be used, by reason."""
    broken: list[BrokenFile] = Field(default_factory=list)
    metrics: list[Measured]
    gold: list[GoldRank] = Field(default_factory=list)
    attacks: list[Attacked] = Field(default_factory=list)
    """Empty where nobody asked for them, or no context is labelled irrelevant."""
    skipped: dict[str, str] = Field(default_factory=dict)
    """Metrics that could not be held against this set, and why."""
    usage: Usage = Usage()
    corpus: str | None = None
    """Digest of the set's texts, of a judge whose replies depend on all of them; else None."""
    refused: str = ""
    """Why this judge of several could not be asked; such a record is told and not kept."""
    redact: bool = False
    """Whether its texts are kept out of all that is published, for good."""

    @property
    def short(self) -> bool:
        """Whether something is missing: of a file, of all labels, or of a metric's verdicts."""
        unanswered = any(one.overall is None for one in self.metrics)
        return bool(self.broken) or unanswered or not (self.metrics or self.gold)

    def measured(self, metric: str) -> Measured | None:
        """One metric, if it was calibrated."""
        return next((one for one in self.metrics if one.metric == metric), None)


Untold = Literal["", "no_verdict", "nothing_shared", "set_changed", "too_few"]

UNTOLD: dict[Untold, str] = {
    "no_verdict": "no data: no readable verdict",
    "nothing_shared": "no data: no unit was judged both times",
    "set_changed": "no data: the labelled set has changed",
    "too_few": "too few to tell",
}
"""Why drift cannot be told, in words."""


class MetricDrift(Record):
    """How one metric's figures changed on the units that were judged both times."""

    metric: str
    earlier: datetime | None = None
    """When those units were judged before; None where there is nothing to compare with."""
    units: int = 0
    questions: int = 0
    changed: Figure = Figure()
    """Share of verdicts that changed."""
    figures: dict[FigureName, Figure] = Field(default_factory=dict)
    """Later less earlier: positive is better now."""
    drifted: bool = False
    """Chance does not explain the change in quadratic kappa or in AUC."""
    p_value: float | None = None
    """How often chance alone changes one of them as much, all figures tested accounted for."""
    untold: Untold = ""
    """Why nothing can be told, where it cannot."""

    @property
    def state(self) -> str:
        """In words: `drifted`, `no drift shown`, or why neither."""
        return UNTOLD.get(self.untold) or ("drifted" if self.drifted else "no drift shown")


class Drift(Record):
    """A judge on one set at two times.

    Each metric is compared with the last calibration that judged some of the same units: after
    one without verdicts that is an older one.
    """

    version: Literal[2]
    """Of how drift is told."""
    name: str
    judge: str
    before: datetime
    """When the judge was calibrated on the set before."""
    earlier: datetime
    """What the metrics are compared with, the newest of it; `before` where nothing compares."""
    later: datetime
    same_fingerprint: bool
    """Whether the judge, its settings and its prompts were those of before."""
    metrics: list[MetricDrift]

    @property
    def drifted(self) -> bool:
        """Whether any metric's did."""
        return any(one.drifted for one in self.metrics)

    @property
    def silent(self) -> bool:
        """Whether nothing can be told of some metric."""
        return not self.metrics or any(one.untold for one in self.metrics)


def calibrations_json(
    found: Sequence[Calibration], drifts: Sequence[Drift | None]
) -> dict[str, Any]:
    """What `--json` prints: every calibration, each with its drift or null."""
    return {
        "calibrations": [
            {**one.model_dump(mode="json"), "drift": drift and drift.model_dump(mode="json")}
            for one, drift in zip(found, drifts, strict=True)
        ]
    }
