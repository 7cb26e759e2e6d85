"""Records of the gate for index builds, stored as JSON.

IndexBuild             payload of the event that requests a gate
Gate                   verdict on one build
├── MetricVerdict      verdict of one metric
└── WorseQuestion      a question with a lower score in the new build
FailedGate             a request that ended without a verdict
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from ragmetrics.errors import InputError
from ragmetrics.records.base import Record
from ragmetrics.records.changes import JudgeMovement
from ragmetrics.records.judging import JudgeInfo, Usage
from ragmetrics.records.lost_passages import LostPassages
from ragmetrics.records.manifest import Source
from ragmetrics.records.row import explain_validation_error
from ragmetrics.stats import ALPHA

GATE_VERSION = 1
BUILT = "rag.index.built"
"""Name of the event that requests a gate; its payload is an IndexBuild."""
PASSED = "rag.index.passed"
HELD = "rag.index.held"
INCONCLUSIVE = "rag.index.inconclusive"

Verdict = Literal["promote", "hold", "inconclusive"]

_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
Name = Annotated[str, Field(pattern=f"^{_NAME}$")]
"""Name of a data set or build; it becomes part of a file name."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
_MOST_ERRORS = 5


def _one_store(place: str) -> str:
    """Accept only a folder or a bucket: an event must not make a worker open anything else."""
    if "::" in place:
        raise ValueError("contains `::`, which chains addresses: name the place itself")
    scheme = _SCHEME.match(place)
    if scheme and scheme[1] not in (*_BUCKETS, "file"):
        known = ", ".join(f"{name}://" for name in _BUCKETS)
        raise ValueError(f"{scheme[0]} is not supported: name a path, or a place in {known}")
    return place


Place = Annotated[
    str,
    Field(min_length=1, max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]+$"),
    AfterValidator(_one_store),
]


class IndexBuild(BaseModel):
    """An index build that needs a verdict: the payload of `rag.index.built`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dataset: Name
    build: Name
    logs: Place | None = None
    """Place of its log; None: the place of `gate: logs:` in the settings."""
    serving: Name | None = None
    """The build in service; None: the last promoted build, or the build of the newest night."""
    built: Annotated[AwareDatetime, Field(strict=False)] | None = None
    """When it was built, with its zone; None: when the event occurred."""

    @model_validator(mode="after")
    def _two_builds(self) -> IndexBuild:
        if self.build == self.serving:
            raise ValueError(f"serving: {self.build} cannot be compared with itself")
        return self


def is_name(text: str) -> bool:
    """Whether a text is a valid name of a build: logs may contain anything."""
    return re.fullmatch(_NAME, text) is not None


def make_index_build(payload: Any) -> IndexBuild:
    """Validate the payload of an event; raise InputError that names the wrong keys."""
    try:
        return IndexBuild.model_validate(payload)
    except ValidationError as error:
        raise InputError(
            f"index build: {explain_validation_error(error, most=_MOST_ERRORS)}"
        ) from None


class MetricVerdict(Record):
    """Verdict of one metric on a build, over the questions that both builds have.

    `drop` is positive where the new build is worse. The numbers are None where the builds share
    less than two questions.
    """

    metric: str
    before: float | None
    """Mean of the serving build over the shared questions."""
    after: float | None
    """Mean of the new build over the shared questions."""
    drop: float | None
    low: float | None
    """Lower end of the two-sided 95% interval of the drop."""
    high: float | None
    """Upper end of the two-sided 95% interval of the drop."""
    upper: float | None
    """One-sided 95% upper bound of the drop."""
    p_value: float | None
    """One-sided p value of no drop, adjusted for the gate's metrics (Benjamini-Hochberg)."""
    questions: int
    """Questions that are scored in both builds."""
    asked: int = 0
    """Questions of the serving build to which the metric applies."""
    missing: int = 0
    """Questions of `asked` that could not be compared."""
    paired: bool
    """False: nothing could be compared."""
    max_drop: float
    detectable: float | None
    """Drop that this number of questions shows with 80% power at the measured spread."""
    verdict: Verdict
    further: int | None = None
    """Questions still needed; None: decided, or no number of questions is enough."""
    fingerprint: str = ""
    """Fingerprint of judge, prompts, metric version and parameters; equal on both sides."""
    movement: JudgeMovement | None = None
    """Movement of the judge from night to night; None where it does not affect the drop, because
    both builds were judged on one day."""

    @property
    def significantly_worse(self) -> bool:
        """Whether the new build is significantly worse, as in a comparison without a limit."""
        return self.drop is not None and self.drop > 0 and (self.p_value or 0.0) < ALPHA


class WorseQuestion(Record):
    """A question with a lower score in the new build, by one metric."""

    metric: str
    user_input: str
    id: str
    """Id of the new build's row."""
    before: float
    after: float


class Gate(Record):
    """The verdict on an index build with its evidence: `gates/BUILD.json`."""

    version: int = GATE_VERSION
    dataset: str
    build: str
    serving: str | None
    """None if the serving build is not known."""
    verdict: Verdict
    reasons: list[str]
    """Reasons of the verdict, one sentence each."""
    further: int | None = None
    """Questions still needed; None: decided, or no number of questions is enough."""
    metrics: list[MetricVerdict] = Field(default_factory=list)
    fallen: list[WorseQuestion] = Field(default_factory=list)
    """By metric, the largest drop first."""
    lost_passages: LostPassages | None = None
    """What happened to passages that questions needed and lost in the new build."""
    missing: int = 0
    """The serving build's questions that could not be compared by some metric."""
    missing_why: dict[str, int] = Field(default_factory=dict)
    """Counts by reason: `absent` from the new build's log, `judge_failed`, `unreadable` ..."""
    quarantined: int = 0
    """Rows of the new build's log that could not be read."""
    logs: str
    """Place of the new build's log."""
    content: str = ""
    """Digest of the new build's log: a copy has the same digest, a changed log another."""
    serving_logs: str | None = None
    """Place of the serving build's log, or its nights."""
    judge: JudgeInfo
    usage: Usage = Usage()
    source: Source
    """What was read of the new build."""
    serving_source: Source | None = None
    """What was read of the serving build, where it has a log."""
    problems: list[str] = Field(default_factory=list)
    """Why parts could not be scored; their rows count as `judge_failed`."""
    started_at: datetime
    finished_at: datetime
    """Time of the first decision with this result."""
    built_at: datetime | None = None
    """When the index was built, or first announced; None: not known."""
    told: bool = False
    """Whether all channels confirmed the message."""
    heard: list[str] = Field(default_factory=list)
    """The channels that confirmed the message."""
    redact: bool = False
    """Whether its texts are never published."""

    @property
    def order(self) -> datetime:
        """The build's place among all: builds may be evaluated in another order than they were
        made. Without a time of the build, and for one in the future, it is the decision's.
        """
        return min(self.built_at or self.finished_at, self.finished_at)

    @property
    def scored_metrics(self) -> list[str]:
        """The metrics that were compared; none where there was nothing to compare."""
        return [metric.metric for metric in self.metrics if metric.paired]

    @property
    def is_of_logs(self) -> bool:
        """Whether two logs were compared, and no builds: a log stands for itself."""
        return self.build == self.logs

    @property
    def is_decided(self) -> bool:
        """Whether the build was promoted or held."""
        return self.verdict != "inconclusive"


FAILED_GATES = "gates/undecided"


class FailedGate(Record):
    """An event, or a call by hand, that ended without a verdict."""

    dataset: str
    """The data set of the settings; the event may name another one."""
    reason: str
    carried: str
    """The event's payload as text, shortened where it is long."""
    event_id: str | None = None
    at: datetime
    told: bool = False
    """Whether all channels confirmed the message."""
    heard: list[str] = Field(default_factory=list)
    """The channels that confirmed the message."""
    redact: bool = False
    """Whether the payload is never published."""

    @property
    def path(self) -> str:
        """Its file in the store. A repeat that fails for the same reason has the same file."""
        text = "\n".join((self.event_id or self.carried, self.reason))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10)
        return f"{FAILED_GATES}/{digest.hexdigest()}.json"
