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
from typing import Any

from pydantic import Field

from ragmetrics.model.base import Record as Record
from ragmetrics.model.changes import (
    Move,
    UnwatchedDrop,
)
from ragmetrics.model.finding import Finding
from ragmetrics.model.summary import Summary
from ragmetrics.model.usage import Usage as Usage

MANIFEST_VERSION = 1
EMBEDDINGS = "embeddings"
"""Their name in the usage, beside those of judges."""


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


class SpendLimits(Record):
    """Most that may be asked, or may be spent; None: without limit."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


class BudgetReport(Record):
    """What a budget let a night do; judges on this machine cost nothing and do not count."""

    limits: SpendLimits
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
    falls: list[UnwatchedDrop] = Field(default_factory=list)
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
