"""What an index build is gated by, and what the gate says: records that are stored as JSON.

IndexBuild             the event that asks for a gate
Gate                   the verdict of one build
├── MetricVerdict      what one metric says of it
└── FallenQuestion     a question that the new build serves worse
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragmetrics.errors import InputError
from ragmetrics.model.changes import JudgeMovement
from ragmetrics.model.manifest import JudgeInfo, Record, Source, Usage
from ragmetrics.model.row import explain_validation_error

GATE_VERSION = 1
BUILT = "rag.index.built"
"""The event that asks for a gate; its payload is an IndexBuild."""
PASSED = "rag.index.passed"
HELD = "rag.index.held"
INCONCLUSIVE = "rag.index.inconclusive"

Verdict = Literal["promote", "hold", "inconclusive"]

_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
Name = Annotated[str, Field(pattern=f"^{_NAME}$")]
"""Of a data set or build: it becomes part of a file's name."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
_MOST_TOLD = 5


def _one_store(place: str) -> str:
    """A folder or a bucket: a worker opens nothing else for whoever may post events."""
    if "::" in place:
        raise ValueError("holds `::`, by which one address leads to another: name the place itself")
    scheme = _SCHEME.match(place)
    if scheme and scheme[1] not in (*_BUCKETS, "file"):
        known = ", ".join(f"{name}://" for name in _BUCKETS)
        raise ValueError(f"{scheme[0]} is no store of logs: name a path, or a place in {known}")
    return place


Place = Annotated[
    str,
    Field(min_length=1, max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]+$"),
    AfterValidator(_one_store),
]


class IndexBuild(BaseModel):
    """An index build that waits for its verdict: the payload of `rag.index.built`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dataset: Name
    build: Name
    logs: Place | None = None
    """Where its log is; None: where `gate: logs:` of the settings says."""
    serving: Name | None = None
    """The build that serves; None: the last that was promoted, or that the newest night names."""

    @model_validator(mode="after")
    def _two_builds(self) -> IndexBuild:
        if self.build == self.serving:
            raise ValueError(f"serving: {self.build} cannot be held against itself")
        return self


def is_name(text: str) -> bool:
    """Whether a build may be called so: logs may hold anything."""
    return re.fullmatch(_NAME, text) is not None


def make_index_build(payload: Any) -> IndexBuild:
    """Validate the payload of an event; raise InputError with what is wrong with which keys."""
    try:
        return IndexBuild.model_validate(payload)
    except ValidationError as error:
        raise InputError(
            f"index build: {explain_validation_error(error, most=_MOST_TOLD)}"
        ) from None


class MetricVerdict(Record):
    """What one metric says of a build, over the questions that both builds have.

    `drop` is positive where the new build is worse. The numbers are None where the builds share
    less than two questions.
    """

    metric: str
    before: float | None
    """Mean of the serving build over the shared questions,"""
    after: float | None
    """and of the new one."""
    drop: float | None
    low: float | None
    high: float | None
    """Two-sided 95% interval of the drop."""
    upper: float | None
    """One-sided 95% upper bound of the drop: what it is surely not above."""
    p_value: float | None
    """One-sided, against no drop; adjusted for the gate's metrics (Benjamini-Hochberg)."""
    questions: int
    """Scored in both builds."""
    asked: int = 0
    """Of the serving build, by this metric,"""
    missing: int = 0
    """and those of them that could not be compared."""
    paired: bool
    """False: nothing could be compared."""
    max_drop: float
    detectable: float | None
    """Drop that so many questions with such a spread would show with 80% power."""
    verdict: Verdict
    further: int | None = None
    """Questions still needed; None: decided, or no number of them would do."""
    fingerprint: str = ""
    """Of judge, prompts, metric version and parameters: equal on both sides."""
    movement: JudgeMovement | None = None
    """How far the judge moves from night to night; None where the drop holds nothing of it, as
    both builds were judged on one day."""


class FallenQuestion(Record):
    """A question that the new build serves worse, by one metric."""

    metric: str
    user_input: str
    id: str
    """Of the new build's row."""
    before: float
    after: float


class Gate(Record):
    """The verdict on an index build, with all that it rests on: `gates/BUILD.json`."""

    version: int = GATE_VERSION
    dataset: str
    build: str
    serving: str | None
    """None: nothing says which build serves."""
    verdict: Verdict
    reasons: list[str]
    """Why, one sentence each."""
    further: int | None = None
    """Questions still needed; None: decided, or no number of them would do."""
    metrics: list[MetricVerdict] = Field(default_factory=list)
    fallen: list[FallenQuestion] = Field(default_factory=list)
    """By metric, those that fell furthest first."""
    missing: int = 0
    """The serving build's questions that could not be compared by some metric."""
    missing_why: dict[str, int] = Field(default_factory=dict)
    """`absent` from the new build's log, `judge_failed`, `unreadable` ..."""
    quarantined: int = 0
    """Rows of the new build's log that could not be read."""
    logs: str
    """Where the new build's rows were read,"""
    content: str = ""
    """Digest of that log: a copy of it is the same, a build that was mended is another."""
    serving_logs: str | None = None
    """and the serving one's: a place, or nights."""
    judge: JudgeInfo
    usage: Usage = Usage()
    source: Source
    """What was read of the new build,"""
    serving_source: Source | None = None
    """and of the serving one, where it has a log."""
    problems: list[str] = Field(default_factory=list)
    """Why parts could not be scored; their rows count as `judge_failed`."""
    started_at: datetime
    finished_at: datetime
    """When this was decided first."""
    told: bool = False
    """Whether all channels confirmed the message,"""
    heard: list[str] = Field(default_factory=list)
    """and those that did."""
    redact: bool = False
    """Whether its texts are kept out of all that is published, for good."""

    @property
    def scored_metrics(self) -> list[str]:
        """The metrics that were compared; none where there was nothing to compare."""
        return [one.metric for one in self.metrics if one.paired]

    @property
    def is_decided(self) -> bool:
        """Whether the build was promoted or held."""
        return self.verdict != "inconclusive"


FAILED_GATES = "gates/undecided"


class FailedGate(Record):
    """An event, or a call by hand, that came to no verdict."""

    dataset: str
    """Of the settings; what the event says may differ."""
    reason: str
    carried: str
    """What the event said, as text, cut where it is long."""
    event_id: str | None = None
    at: datetime
    told: bool = False
    """Whether all channels confirmed the message,"""
    heard: list[str] = Field(default_factory=list)
    """and those that did."""
    redact: bool = False
    """Whether what was said is kept out of all that is published, for good."""

    @property
    def path(self) -> str:
        """Its file in the store: the same for a repeat that fails for the same reason."""
        text = "\n".join((self.event_id or self.carried, self.reason))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10)
        return f"{FAILED_GATES}/{digest.hexdigest()}.json"
