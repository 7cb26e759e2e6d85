"""What a night leaves behind: the records that are stored as JSON and shown to people.

Manifest (one run of one night)
├── Source        what was read, what was quarantined and why
├── Summary       one metric over all rows, or over one segment of them
├── Finding       what one alert rule says of this night
├── Fall          a metric that no rule watches, and that surely got worse
├── Usage         what the judge was asked and what that cost
└── BudgetReport  what it might have cost, and how much was judged for that
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

MANIFEST_VERSION = 1
EMBEDDINGS = "embeddings"
"""Their name in the usage, beside those of judges."""


class Record(BaseModel):
    """Base of stored records: unknown keys are kept out, values do not change."""

    model_config = ConfigDict(frozen=True, extra="ignore")


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


class Usage(Record):
    """What was asked of a judge, or of several."""

    requests: int = 0
    answered_from_store: int = 0
    shared: int = 0
    """Answered by an equal request of the same run."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the endpoint had in its cache."""
    completion_tokens: int = 0
    usd: float | None = None
    """None where the model's price is not known."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Replies and calls that could not be used, by kind; most were asked again."""

    def __add__(self, other: Usage) -> Usage:
        """Both together; the money is known where it is of all that was asked."""
        failures = Counter(self.failures) + Counter(other.failures)
        paid = [one for one in (self, other) if one.prompt_tokens or one.completion_tokens]
        spent = [one.usd for one in (self, other) if one in paid or one.usd is not None]
        known = [usd for usd in spent if usd is not None]
        return Usage(
            requests=self.requests + other.requests,
            answered_from_store=self.answered_from_store + other.answered_from_store,
            shared=self.shared + other.shared,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            usd=round(sum(known), 6) if known and len(known) == len(spent) else None,
            failures=dict(sorted(failures.items())),
        )


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


class JudgeInfo(Record):
    """Who gave the verdicts."""

    name: str
    fingerprint: str
    note: str = ""
    """Shown wherever the judge's numbers are, as that it is a baseline and no LLM."""
    panel: list[str] = Field(default_factory=list)
    """The names of its judges, where it is a panel of several."""


Level = Literal["ok", "suspect", "breach", "no_data"]
State = Literal["ok", "pending", "firing"]
Transition = Literal["fired", "resolved", "reminded"]


class Finding(Record):
    """What one rule says of one night: a decision on numbers, with the numbers.

    `key` is the identity of the alert: dataset, metric, segment and rule. `state` and
    `transition` are filled in by the state machine.
    """

    key: str
    kind: Literal["metric", "no_data", "quarantine", "judge_failures", "judge_drift"]
    level: Level
    severity: Literal["critical", "warning"] = "critical"
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
    baseline_label: str | None = None
    """`2026-11-18` or `the 7 nights before`."""
    drop: float | None = None
    drop_low: float | None = None
    drop_high: float | None = None
    p_value: float | None = None
    limit: float | None = None
    compared: bool = True
    """False of an `ok` that says nothing: a drop had no earlier night to be measured against."""
    for_nights: int = 2
    """Suspects fire after this many nights in a row."""
    state: State = "ok"
    transition: Transition | None = None
    since: date | None = None
    """First night of the present pending or firing spell."""


class Fall(Record):
    """A metric without a drop rule that surely got worse: said in the headline, and by no alert."""

    metric: str
    before: float
    now: float
    label: str
    """What it was compared with: `2026-11-18` or `7 nights before`."""
    drop: float
    """Positive where it is worse, also of a metric in which lower is better; so its interval."""
    low: float
    high: float
    questions: int


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
    worst: list[WorstRow]
    usage: Usage
    """Of judges and embeddings that are reached over a network: others cost nothing."""
    usage_by_judge: dict[str, Usage] = Field(default_factory=dict)
    """By judge, those that cost nothing too, and of the embeddings."""
    usage_by_metric: dict[str, dict[str, Usage]] = Field(default_factory=dict)
    """`usage` by metric, and of each by judge. What several metrics share stands with the one that
    asked first; of fused requests, with all of them, as `context_recall + context_relevance`."""
    budget: BudgetReport | None = None
    problems: list[str] = Field(default_factory=list)
    """Why parts could not be scored at all, or not by all judges; rows of missing parts count
    as `judge_failed`."""
    splits: dict[str, int] = Field(default_factory=dict)
    """Texts that pysbd could not split safely, by reason: a plain splitter was used."""

    def summary(self, metric: str) -> Summary | None:
        """The metric over all rows, if this run scored it."""
        return next((s for s in self.metrics if s.metric == metric), None)
