"""What a night leaves behind: the records that are stored as JSON and shown to people.

Manifest (one run of one night)
├── Source        what was read, what was quarantined and why
├── Summary       one metric over all rows, or over one segment of them
├── Finding       what one alert rule says of this night
├── Usage         what the judge was asked and what that cost
├── BudgetReport  what it might have cost, and how much was judged for that
└── SampleReport  how many rows were judged of all, and what all would have cost
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from ragmetrics.model.base import Record as Record
from ragmetrics.model.changes import (
    CarrierShare,
    ComparedMeans,
    DatedChange,
    Fall,
    JudgeMovement,
    Move,
)
from ragmetrics.model.silence import Severity, Silence
from ragmetrics.model.usage import Usage as Usage

MANIFEST_VERSION = 1
EMBEDDINGS = "embeddings"
"""Their name in the usage, beside those of judges."""


class Segment(Record):
    """The rows whose tag has this value, as in `section=billing`."""

    tag: str
    value: str

    def __str__(self) -> str:
        return f"{self.tag}={self.value}"


class JudgeSummary(Record):
    """What one judge of a panel makes of the same rows."""

    name: str
    mean: float | None
    scored: int
    failed: int
    """Rows that it was asked about and gave no usable verdict on."""


class SampledMean(Record):
    """What the judged rows of a sampled night say of the mean alone, and what the embedded judge
    adds to that.
    """

    rows: int | None
    """That the mean is of, judged or not; None where nobody knows how many can be scored."""
    mean: float
    low: float | None
    high: float | None
    weight: float
    """Of the embedded judge: 0 where it does not help, and the mean is that of the judged rows."""
    spread: float | None
    """Standard deviation of a row, as if all rows were questions of their own."""
    correlation: float | None
    """Of both judges over the judged rows."""


class Summary(Record):
    """Mean of one metric with its interval, and what was left out of it.

    `mean`, `low` and `high` are None where no row was scored. `questions` counts the distinct
    questions, which are the clusters of the interval.
    """

    metric: str
    segment: Segment | None = None
    mean: float | None
    low: float | None
    high: float | None
    scored: int
    questions: int
    mde: float | None = None
    """How far the mean must be below a level to be told from it, one-sided at 5%, on four nights
    of five; above it where lower is better."""
    status: dict[str, int]
    fingerprint: str
    """Of judge, prompts, metric version and parameters: only equal ones compare."""
    histogram: list[int] = Field(default_factory=list)
    """Count of rows in ten equal bins of [0, 1]; values outside fall into the end bins."""
    judges: list[JudgeSummary] = Field(default_factory=list)
    """Of a panel, each judge's own."""
    agreement: float | None = None
    """Krippendorff's alpha of a panel's judges over the rows' values: 1 in full agreement, 0 as
    by chance."""
    spread: float | None = None
    """Mean standard deviation of a row's value over a judge's repeats."""
    higher_is_better: bool = True
    sample: SampledMean | None = None
    """Where a sample was judged: then mean and interval are of all rows, by both judges."""
    movement: JudgeMovement | None = None
    """How far the judge's level moves from night to night; None: it does not, or is not known."""

    def loss(self, before: float) -> float:
        """How much worse the mean is than a value; negative where it is better."""
        loss = before - (self.mean or 0.0)
        return loss if self.higher_is_better else -loss

    def surely_worse_than(self, value: float) -> bool:
        """Whether the whole interval is on the bad side of a value."""
        if self.low is None or self.high is None:
            return False
        return self.high < value if self.higher_is_better else self.low > value


class BrokenFile(Record):
    """A file that could not be read to its end."""

    file: str
    line: int
    reason: str


class Source(Record):
    """What the night was read from."""

    logs: str
    files: int
    rows: int
    quarantined: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    """Quarantined rows by reason."""
    skipped: dict[str, int] = Field(default_factory=dict)
    """Records that are no retrievals, as most spans of a trace are, by reason."""
    broken: list[BrokenFile] = Field(default_factory=list)
    problem: str | None = None
    """Why nothing could be read at all."""
    golden: int = 0
    """Rows that were joined to the golden set,"""
    golden_questions: int = 0
    """and to how many of its questions."""
    index_builds: dict[str, int] = Field(default_factory=dict)
    oldest: datetime | None = None
    newest: datetime | None = None


class Limits(Record):
    """Most that may be asked, or may be spent; None: without limit."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


class BudgetReport(Record):
    """What a budget let a night do; judges on this machine cost nothing and do not count."""

    limits: Limits
    estimated: Usage
    """Of all rows, before any was judged."""
    share: float
    """Of the questions, those that were judged; 1 where the budget did not bind."""
    spent: Usage
    rows_over: int = 0
    """Rows that are not judged, or not by all metrics, for that."""
    rows_cut_off: int = 0
    """Of them, those of questions that were to be judged: what was left did not reach so far."""


class SampleReport(Record):
    """How a night was sampled, what that cost, and what all rows would have cost."""

    rows: int | None
    """Of each metric that were to be judged, or"""
    half_width: float | None
    """what the interval of each mean was to be either way."""
    strata: list[str] = Field(default_factory=list)
    seed: int = 0
    judged: int = 0
    """Rows that any metric was judged on."""
    spent: Usage
    whole: Usage | None
    """About what all rows would have cost, by what the judged ones did; None where that cannot be
    told, as their answers were known."""


class JudgeInfo(Record):
    """Who gave the verdicts."""

    name: str
    fingerprint: str
    note: str = ""
    """Shown wherever the judge's numbers are, as that it is a baseline and no LLM."""
    panel: list[str] = Field(default_factory=list)
    """The names of its judges, where it is a panel of several."""


FindingKind = Literal[
    "metric", "no_data", "quarantine", "judge_failures", "judge_drift", "stale_labels"
]
Level = Literal["ok", "suspect", "breach", "no_data"]
State = Literal["ok", "pending", "firing"]
Transition = Literal["fired", "escalated", "resolved", "reminded"]


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
    carriers: list[CarrierShare] | None = None
    """What carries its drop, the largest share first; None: not looked into."""
    silence: Silence | None = None
    """Why people are not told of it, or not reminded."""
    escalation: Escalation | None = None
    """How much worse it is than at the last notification; None: not significantly so."""
    ended: Silence | None = None
    """The silence that tonight's escalation ended."""
    unsilenced: datetime | None = None
    """Silences made until then have ended, as the alert escalated."""


class WorstRow(Record):
    """A row shown to people because its value is among the lowest."""

    id: str
    metric: str
    value: float
    user_input: str
    shard: int = 0
    position: int = 0
    """Where the row stands in its shard's part."""


class Manifest(Record):
    """One run of one night, written last: a run without it does not exist."""

    version: int = MANIFEST_VERSION
    dataset: str
    date: date
    run: str
    started_at: datetime
    finished_at: datetime
    seen_at: datetime | None = None
    """When it looked for the night's files. Of a night's runs the latest speaks for it."""
    ranked_at: datetime | None = None
    """In place of `seen_at` where a run of the same night says that it looked for its files in the
    future: a moment after that."""
    supersedes: str | None = None
    """The run of the same night that it takes the place of."""
    difference: str = ""
    """What it read more or less than that one, in words."""
    taken_over: int = 0
    """Parts that an earlier run of the night had scored already."""
    ragmetrics: str
    source: Source
    judge: JudgeInfo
    shards: int
    metrics: list[Summary]
    segments: list[Summary]
    findings: list[Finding]
    falls: list[Fall] = Field(default_factory=list)
    moves: list[Move] = Field(default_factory=list)
    """Since the night before that compares, of the metrics that enough questions of both tell."""
    worst: list[WorstRow]
    usage: Usage
    """Of judges and embeddings that are reached over a network: others cost nothing."""
    usage_by_judge: dict[str, Usage] = Field(default_factory=dict)
    """By judge, those that cost nothing too, and of the embeddings."""
    usage_by_metric: dict[str, dict[str, Usage]] = Field(default_factory=dict)
    """`usage` by metric, and of each by judge. What several metrics share stands with the one that
    asked first; of fused requests, with all of them, as `context_recall + context_relevance`."""
    budget: BudgetReport | None = None
    sample: SampleReport | None = None
    labelled: Usage | None = None
    """What judging the labelled set for judge drift cost: in no other figure, and in no budget."""
    problems: list[str] = Field(default_factory=list)
    """Why parts have no score, or not by all judges; rows of missing ones are `judge_failed`."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """That it ran by, without secrets: the chief ones, and those that are not the defaults."""
    flow_run: str = ""
    """Where Prefect shows the run; empty where it ran without, or without a server."""
    splits: dict[str, int] = Field(default_factory=dict)
    """Texts that pysbd could not split safely, by reason: a plain splitter was used."""

    @property
    def redacts(self) -> bool:
        """Whether it ran with `redact: true`: its texts are kept out of all that is published."""
        return self.settings.get("redact") is True

    def summary(self, metric: str) -> Summary | None:
        """The metric over all rows, if this run scored it."""
        return next((s for s in self.metrics if s.metric == metric), None)
