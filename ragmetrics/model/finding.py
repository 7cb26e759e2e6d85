"""Findings: what the alert rules say about one night, as records that are stored as JSON."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from ragmetrics.model.base import Record as Record
from ragmetrics.model.changes import ComparedMeans, ContributorShare, DatedChange
from ragmetrics.model.silence import Severity, Silence
from ragmetrics.model.summary import Segment


class Notification(Record):
    """What people were last told of an alert that fires."""

    night: date
    run: str = ""
    """Whose numbers they were; empty where an earlier version sent it."""
    level: Level = "breach"
    mean: float | None = None


class Escalation(Record):
    """How much worse a firing alert is than at its last notification: significantly, and by more
    than the rule's `worse_by`.
    """

    notified: Notification
    label: str
    """The night that tonight is compared with: `2026-11-18`."""
    before: float
    """Its mean, and"""
    now: float
    """tonight's, of the questions that were compared; of a check of logs or judge, the shares of
    rows."""
    drop: float
    """How much worse that is; positive."""
    low: float
    high: float
    p_value: float
    """One-sided, against no change for the worse, after control of the night's escalations."""
    n: int
    """Questions that were compared, or rows of a share."""
    limit: float

    @property
    def is_share(self) -> bool:
        """Whether it is of a share of rows, of which more is worse."""
        return self.now > self.before

    def __str__(self) -> str:
        """`worse than in the last message (2026-11-18): 0.466 → 0.258, drop 0.208 [...]`."""
        what, unit = ("rise", "rows") if self.is_share else ("drop", "questions")
        return (
            f"worse than in the last message ({self.label}): {self.before:.3f} → {self.now:.3f}, "
            f"{what} {self.drop:.3f} [{self.low:.3f}, {self.high:.3f}] over {self.n:,} {unit}, "
            f"limit {self.limit:g}"
        )


class Finding(Record):
    """What one rule says of one night: a decision on numbers, with the numbers.

    `key` is the identity of the alert: dataset, metric, segment and rule. `state` and
    `transition` are filled in by the state machine.
    """

    key: str
    kind: FindingKind
    level: Level
    severity: Severity = "critical"
    rule: str
    """The rule in words: `context_recall below 0.7`."""
    message: str
    """The finding as one plain sentence with its numbers."""
    metric: str | None = None
    segment: Segment | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    questions: int = 0
    baseline: float | None = None
    """Mean of all rows of the nights before."""
    baseline_label: str | None = None
    """`2026-11-18` or `the 7 nights before`."""
    means: ComparedMeans | None = None
    """Of the questions that the drop is measured on."""
    drop: float | None = None
    drop_low: float | None = None
    drop_high: float | None = None
    paired: bool | None = None
    """Whether a drop is that of the questions of both sides, each against itself."""
    mix: float | None = None
    """Of what the mean fell, the part that comes of another mix of tags; `drop` is without it.
    None: not compared like with like."""
    mix_tags: list[str] = Field(default_factory=list)
    """The tags by which it was; `weekday` for the day of the week."""
    explained: float | None = None
    """Of a drop, what judge drift or stale labels explain; of a mean, how much higher it were."""
    affects: list[str] = Field(default_factory=list)
    """Of judge drift: the metrics in which the judge moved."""
    p_value: float | None = None
    """Of a drop, after control of the family; 1 where it is not beyond the limit."""
    mde: float | None = None
    """Smallest change for the worse that is found on four nights of five: of a drop by the rule, as
    strict as it is, and if no other rule finds one; of a mean by a one-sided test at 5%."""
    limit: float | None = None
    compared: bool = True
    """False of an `ok` that says nothing: a drop had no earlier night to be measured against."""
    for_nights: int | None = 2
    """Suspects fire after this many nights in a row; None: only a breach fires."""
    state: State = "ok"
    transition: Transition | None = None
    since: date | None = None
    """First night of the present pending or firing spell."""
    change: DatedChange | None = None
    """Of a firing metric alert: when its level fell; None where no single night can be told."""
    carriers: list[ContributorShare] | None = None
    """What carries its drop, the largest share first; None: not looked into."""
    silence: Silence | None = None
    """Why people are not told of it, or not reminded."""
    escalation: Escalation | None = None
    """How much worse it is than at the last notification; None: not significantly so."""
    ended: Silence | None = None
    """The silence that tonight's escalation ended."""
    unsilenced: datetime | None = None
    """Silences made until then have ended, as the alert escalated."""


FindingKind = Literal[
    "metric", "no_data", "quarantine", "judge_failures", "judge_drift", "stale_labels"
]


Level = Literal["ok", "suspect", "breach", "no_data"]


State = Literal["ok", "pending", "firing"]


Transition = Literal["fired", "escalated", "resolved", "reminded"]
