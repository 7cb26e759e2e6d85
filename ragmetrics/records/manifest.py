"""Records of one night's run, stored as JSON.

Manifest (one run of one night)
├── Source        what was read, and what was quarantined
├── Summary       one metric over all rows, or over one segment
├── Finding       the decision of one alert rule
├── Usage         judge requests and their cost
├── BudgetReport  estimated cost, and the share of questions that was judged
└── SampleReport  number of judged rows, and the cost of all rows
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from ragmetrics.records.base import Record
from ragmetrics.records.changes import Move, UnwatchedDrop
from ragmetrics.records.finding import AlertState, Finding
from ragmetrics.records.golden import LabelReport
from ragmetrics.records.judge_bridge import JudgeBridge, JudgeOffset
from ragmetrics.records.judging import (
    CanaryReport,
    JudgeInfo,
    JudgeName,
    SpendLimits,
    Usage,
    VerdictCount,
    with_current_judges,
)
from ragmetrics.records.lost_passages import LostPassages
from ragmetrics.records.score import Summary
from ragmetrics.records.topics import TopicReport

MANIFEST_VERSION = 1


class BrokenFile(Record):
    """A file that could not be read to its end."""

    file: str
    line: int
    reason: str


class Source(Record):
    """What was read for a night."""

    logs: str
    files: int
    rows: int
    quarantined: int = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    """Quarantined rows by reason."""
    skipped: dict[str, int] = Field(default_factory=dict)
    """Records that are not retrievals (most spans of a trace), by reason."""
    dropped: dict[str, int] = Field(default_factory=dict)
    """Optional fields that could not be read and were left out of their rows, by reason."""
    note: str = ""
    """How logs in an unknown layout were read, or which settings would read them."""
    broken: list[BrokenFile] = Field(default_factory=list)
    problem: str | None = None
    """Why nothing could be read at all."""
    golden: int = 0
    """Rows that match a golden question."""
    golden_questions: int = 0
    """Distinct golden questions that have a row."""
    golden_since: dict[str, date] = Field(default_factory=dict)
    """First nights of the golden questions that were added in the last 60 days, by their keys."""
    golden_until: dict[str, date] = Field(default_factory=dict)
    """First nights without the golden questions that were retired in the last 60 days."""
    index_builds: dict[str, int] = Field(default_factory=dict)
    oldest: datetime | None = None
    newest: datetime | None = None
    dated: int = 0
    """Rows with a time."""
    outside: int = 0
    """Rows whose time is outside the night."""
    digest: str = ""
    """A digest of the rows in any order; empty where an earlier version read them."""
    ids: str = ""
    """A digest of the ids of the rows in any order; empty where the log has none."""
    questions: str = ""
    """A digest of the questions in any order; empty where an earlier version read them."""
    retrieved: str = ""
    """A digest of the questions with their passages in any order; empty where an earlier version
    read them."""

    @property
    def quarantined_share(self) -> float:
        """Share of the rows that are quarantined."""
        return self.quarantined / max(1, self.rows + self.quarantined)

    @property
    def quarantined_text(self) -> str:
        """`3 of 40 rows (8%) could not be read, most often: no question (2)`."""
        rows = self.rows + self.quarantined
        return (
            f"{self.quarantined:,} of {rows:,} rows ({self.quarantined_share:.0%}) could not be "
            f"read, most often: {_most_often(self.reasons)}"
        )

    @property
    def why_no_rows(self) -> str:
        """Why nothing was read, with the reason of most records; empty if something was."""
        text = self.problem or ""
        if self.broken:
            text += f"; {self.broken[0].file}: {self.broken[0].reason}"
        elif self.reasons:
            text += f"; {self.quarantined:,} quarantined, most often: {_most_often(self.reasons)}"
        return f"{text}\n{self.note}" if self.note else text

    @property
    def is_dated(self) -> bool:
        """Whether at least half of the rows have a time."""
        return self.rows > 0 and 2 * self.dated >= self.rows

    @property
    def undated(self) -> str:
        """What a log without times leaves unknown; empty where most rows have one."""
        if not self.digest or self.is_dated:
            return ""
        missing = self.rows - self.dated
        return f"{missing:,} without a time, so whether they are of this night is not known"


def _most_often(reasons: Mapping[str, int]) -> str:
    reason, count = next(iter(reasons.items()), ("", 0))
    return f"{reason} ({count:,})"


class BudgetReport(Record):
    """How a night used its budget. Judges on this machine cost nothing and do not count."""

    limits: SpendLimits
    estimated: Usage
    """Estimate for all rows, made before any row was judged."""
    share: float
    """Share of questions that were judged; 1 where the budget was enough for all."""
    spent: Usage
    rows_over: int = 0
    """Rows that the budget left without a verdict by some metric."""
    rows_cut_off: int = 0
    """Rows of `rows_over` whose questions were selected, but the budget was used up first."""


class SampleReport(Record):
    """How a night was sampled, its cost, and the cost of all rows."""

    rows: int | None
    """Requested rows per metric; None where `half_width` is given."""
    half_width: float | None
    """Requested half width of the interval of each mean; None where `rows` is given."""
    strata: list[str] = Field(default_factory=list)
    seed: int = 0
    cheap: str = ""
    """A sentence on the learned judge, where `cheap: learned` asks for it."""
    learned: bool = False
    """Whether the learned judge scored all rows by some metric."""
    judged: int = 0
    """Rows that some metric was judged on."""
    spent: Usage
    whole: Usage | None
    """Estimated cost of all rows, from the cost of the judged rows; None where all answers came
    from the cache."""
    draw: str = "uniform"
    """How rows are drawn by the settings: `uniform` or `active`."""
    cheap_fingerprint: str = ""
    """Fingerprint of the judge of all rows; empty without active sampling."""
    uniform: dict[str, str] = Field(default_factory=dict)
    """Metrics whose rows had equal chances despite active sampling, and why."""


class WorstRow(Record):
    """A row that is shown because its value is among the lowest."""

    id: str
    metric: str
    value: float
    user_input: str
    shard: int = 0
    position: int = 0
    """Position of the row in its shard's part."""
    trace_url: str = ""
    """Address of its trace in a tracing tool; empty if that is not known."""


DaysByModel: TypeAlias = dict[str, date]


class Manifest(Record):
    """One run of one night. It is written last: a run without a manifest does not exist."""

    version: int = MANIFEST_VERSION
    dataset: str
    date: date
    run: str
    started_at: datetime
    finished_at: datetime
    seen_at: datetime | None = None
    """When it listed the night's files. The night's current run is the one with the latest time."""
    ranked_at: datetime | None = None
    """Replaces `seen_at` where an older run of the same night has a time in the future: a moment
    after that time."""
    supersedes: str | None = None
    """The run of the same night that this run replaces."""
    difference: str = ""
    """Difference of the input to that run, in words."""
    taken_over: int = 0
    """Parts reused from an earlier run of the night."""
    ragmetrics: str
    source: Source
    judge: JudgeInfo
    shards: int
    bridge: JudgeBridge | None = None
    """How the judge's scores compare with those of the judge that it replaced; None: it replaced
    none."""
    metrics: list[Summary]
    segments: list[Summary]
    findings: list[Finding]
    falls: list[UnwatchedDrop] = Field(default_factory=list)
    moves: list[Move] = Field(default_factory=list)
    """Changes since the last comparable night, for metrics with enough common questions."""
    lost_passages: LostPassages | None = None
    """What happened to passages that questions needed and lost; None: not known."""
    topics: TopicReport | None = None
    """What happened to the topics of the questions; None: `topics` is off."""
    worst: list[WorstRow]
    usage: Usage
    """Usage of judges and embeddings behind a network; local ones cost nothing."""
    usage_by_judge: dict[JudgeName, Usage] = Field(default_factory=dict)
    """Usage by judge, local judges and embeddings included."""
    usage_by_metric: dict[str, dict[JudgeName, Usage]] = Field(default_factory=dict)
    """`usage` by metric, then by judge. A shared request counts for the metric that asked first. In
    nights of `fuse: row`, which was removed, a request counts for several metrics together:
    `context_recall + context_relevance`."""
    budget: BudgetReport | None = None
    sample: SampleReport | None = None
    labelled: Usage | None = None
    """Usage of the labelled set for judge drift. No other figure and no budget includes it."""
    bridged: Usage | None = None
    """Usage of the replaced judge. No other figure includes it."""
    labels: LabelReport | None = None
    """The labels of people that were read; None without `labels:` in the settings."""
    problems: list[str] = Field(default_factory=list)
    """Why parts have no score, or lack a judge, and why many rows have no verdict. Rows of missing
    parts are `judge_failed`."""
    changed_parameters: dict[str, str] = Field(default_factory=dict)
    """Parameters of requests that a model does not take, and what was sent in their place, by name
    of the judge."""
    verdicts: dict[JudgeName, dict[str, VerdictCount]] = Field(default_factory=dict)
    """The verdicts of the judges that are asked, by judge and prompt."""
    canaries: dict[JudgeName, CanaryReport] = Field(default_factory=dict)
    """What the judges that can be asked at once said of obvious questions."""
    shutdowns: DaysByModel | None = None
    """When models of judges are shut down, by their names, as their endpoints say; None: not
    known."""
    settings: Annotated[dict[str, Any], BeforeValidator(with_current_judges)] = Field(
        default_factory=dict
    )
    """Settings of the run without secrets: the main ones, and those that differ from defaults."""
    damaged: list[str] = Field(default_factory=list)
    """Files of the store that could not be read, and what was done without them."""
    late: bool = False
    """Whether it was first published after a newer night, so that its message says so."""
    silent: bool = False
    """Whether it was published without messages: by a backfill, or again after a newer night."""
    alerts: dict[str, AlertState] | None = None
    """The states of alerts before this night, without those that are ok and were never reported;
    None: of an earlier version."""
    flow_run: str = ""
    """URL of the run in Prefect; empty without Prefect or its server."""
    splits: dict[str, int] = Field(default_factory=dict)
    """Texts that a plain splitter split, because pysbd could not do so safely; by reason."""

    @property
    def redacts(self) -> bool:
        """Whether it ran with `redact: true`: its texts are never published."""
        return self.settings.get("redact") is True

    @property
    def quoting(self) -> list[str]:
        """Sentences that may quote a logged text or a label, and that findings may repeat."""
        texts = [*self.problems, self.labels.problem if self.labels else ""]
        texts += [reason for summary in self.metrics for reason in summary.unanswered]
        return [one for one in texts if one]

    def summary(self, metric: str) -> Summary | None:
        """The summary of the metric over all rows, if this run scored it."""
        return next((s for s in self.metrics if s.metric == metric), None)


def across_change(nights: Sequence[Manifest], bridge: JudgeBridge | None) -> list[Manifest]:
    """Nights whose numbers by an old judge are moved by the offset, so that they compare with those
    of the judge that replaced it; other nights as they are.
    """
    offsets = {one.replaced: one for one in (bridge.offsets if bridge else ()) if not one.apart}
    return [_moved_night(night, offsets) for night in nights]


def _moved_night(night: Manifest, offsets: Mapping[str, JudgeOffset]) -> Manifest:
    if not any(one.fingerprint in offsets for one in night.metrics):
        return night
    moved = {
        name: [_moved(one, offsets.get(one.fingerprint)) for one in getattr(night, name)]
        for name in ("metrics", "segments")
    }
    return night.model_copy(update=moved)


def _moved(summary: Summary, offset: JudgeOffset | None) -> Summary:
    """A summary in the level of the new judge; its interval has the error of the offset too."""
    if offset is None or summary.metric != offset.metric:
        return summary
    by, mean = offset.offset, summary.mean
    update: dict[str, Any] = {"fingerprint": offset.fingerprint, "moved_by": offset}
    if mean is not None:
        low, high = summary.low, summary.high
        below = None if low is None else math.hypot(mean - low, by - offset.low)
        above = None if high is None else math.hypot(high - mean, offset.high - by)
        update["mean"] = mean + by
        update["low"] = None if below is None else mean + by - below
        update["high"] = None if above is None else mean + by + above
    update["by_tag"] = {
        tag: {
            value: cell.model_copy(update={"mean": cell.mean + by}) for value, cell in cells.items()
        }
        for tag, cells in summary.by_tag.items()
    }
    return summary.model_copy(update=update)
