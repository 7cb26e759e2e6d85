"""What a comparison says: records for JSON, a terminal and pandas.

Comparison
├── ComparedSide     A and B: what they are, who judged them
├── Change           one metric from A to B, over all rows or over those of a segment
├── MovedQuestion    a question that both sides have, and that moved far by one metric
├── MovedRow         the same question once, by all metrics, and what was retrieved for it
│   └── MovedContext one retrieved context: it left, it came, or it has another rank
└── OneSided         the questions that one side alone has
    └── LoneQuestion one of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from ragmetrics.model.manifest import JudgeInfo, Record, Usage
from ragmetrics.model.summary import Segment
from ragmetrics.stats import ALPHA

if TYPE_CHECKING:
    import pandas as pd


class ComparedSide(Record):
    """One of the two sides."""

    name: str
    """As `logs/new.jsonl`, `night 2026-11-19 (run 1f2e3d4c5b)`, `build 42 (builds/42/)`."""
    dataset: str
    judge: JudgeInfo
    rows: int
    quarantined: int = 0
    redact: bool = False
    """Whether a run of it keeps its texts out of all that is published, for good."""


class MetricChange(Record):
    """How far a metric moved from A to B. Numbers are None where there was nothing to compare.

    Paired: over the questions of both sides, each against itself. Else over the questions of each
    side. A question counts once, as the mean of its rows.
    """

    metric: str
    segment: Segment | None = None
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    """B less A; where like is held against like, without `mix`."""
    low: float | None = None
    high: float | None = None
    """Its two-sided 95% interval."""
    p_value: float | None = None
    """One-sided, against the hypothesis that B is not worse than A."""
    p_adjusted: float | None = None
    """The same after Benjamini-Hochberg over all changes of the comparison."""
    mde: float | None = None
    """Smallest drop that so many questions show with 80% power."""
    paired: bool | None = None
    mix: float | None = None
    """Of what the mean moved from A to B, the part that comes of another mix of tags. None: not
    held like against like."""
    mix_tags: list[str] = Field(default_factory=list)
    """The tags by which it was."""
    questions: int = 0
    """Compared: of both sides where they are paired, else of B."""
    questions_a: int | None = None
    questions_b: int | None = None
    """Scored on each side; None: not looked at, as the sides were scored in different ways."""
    higher_is_better: bool = True
    reason: str = ""
    """Why there was nothing to compare."""

    @property
    def loss(self) -> float | None:
        """How much worse B is; negative where it is better."""
        if self.difference is None:
            return None
        return -self.difference if self.higher_is_better else self.difference

    @property
    def surely_better(self) -> bool:
        """Whether the whole interval is on the good side of 0."""
        if self.low is None or self.high is None:
            return False
        return self.low > 0 if self.higher_is_better else self.high < 0

    def surely_lost(self, limit: float = 0.0) -> bool:
        """Whether B is worse by more than a limit, and surely worse: as a gate holds a build."""
        if self.loss is None or self.p_adjusted is None:
            return False
        return self.loss > limit and self.p_adjusted < ALPHA


class MovedQuestion(Record):
    """A question of both sides, by one metric."""

    metric: str
    user_input: str
    """Empty where the rows of B are no longer in the store."""
    id: str
    """Of B's first row of it."""
    value_a: float
    value_b: float
    """Means of its rows."""


class MovedContext(Record):
    """A context that was retrieved for a question on one side or on both."""

    text: str
    """Its beginning; of B where both sides have it."""
    id: str | None = None
    rank_a: int | None
    """From 1; None: A did not retrieve it, so it came."""
    rank_b: int | None
    """None: B did not retrieve it, so it left."""
    rewritten: bool = False
    """Whether it has the same id and another text."""


class RowValue(Record):
    """A question by one metric; None on a side that could not be scored."""

    metric: str
    value_a: float | None
    value_b: float | None
    higher_is_better: bool = True


class MovedRow(Record):
    """A question that moved far by some metric: all its values, and what was retrieved for it."""

    user_input: str
    id: str
    """Of B's first row of it,"""
    id_a: str
    """and of A's."""
    values: list[RowValue]
    contexts: list[MovedContext]
    """By rank; of many the first."""
    more_contexts: int = 0


class LoneQuestion(Record):
    """A question that one side alone has."""

    user_input: str
    """Empty where its rows are no longer in the store."""
    id: str
    values: dict[str, float]
    """By metric, those that were scored."""


class OneSided(Record):
    """The questions that one side alone has."""

    questions: int
    means: dict[str, float] = Field(default_factory=dict)
    """By metric, over those that were scored."""
    shown: list[LoneQuestion] = Field(default_factory=list)
    """Those with the worst scores, worst first."""


class Comparison(Record):
    """Two sides compared: what `ragmetrics.compare` returns, and `compare A B --json` prints."""

    a: ComparedSide
    b: ComparedSide
    metrics: list[MetricChange]
    """Over all rows."""
    segments: list[MetricChange] = Field(default_factory=list)
    """Over the rows of each value of the tags asked for."""
    moved: list[MovedQuestion] = Field(default_factory=list)
    """By metric, furthest first."""
    rows: list[MovedRow] = Field(default_factory=list)
    """Those of `moved` whose rows are in the store, each once, those that lost most first."""
    lost: OneSided = OneSided(questions=0)
    """Of A alone,"""
    gained: OneSided = OneSided(questions=0)
    """and of B alone."""
    notices: list[str] = Field(default_factory=list)
    """What to know of the numbers, one sentence each."""
    problems: list[str] = Field(default_factory=list)
    """Why parts of a side could not be read, or not be scored."""
    usage: Usage = Usage()
    """What the judges were asked for it, and what that cost."""

    def surely_lost(self, limit: float = 0.0) -> list[MetricChange]:
        """The changes by which B is worse by more than a limit, and surely worse."""
        return [one for one in (*self.metrics, *self.segments) if one.surely_lost(limit)]

    @property
    def compared(self) -> list[MetricChange]:
        """The metrics that could be compared."""
        return [one for one in self.metrics if one.difference is not None]

    @property
    def undecided(self) -> list[MetricChange]:
        """Metrics of which A has scores, or may have, and that could not be compared."""
        return [one for one in self.metrics if one.reason and one.questions_a != 0]

    def as_json(self) -> dict[str, Any]:
        """What `ragmetrics compare --json` prints."""
        return self.model_dump(mode="json")

    def to_pandas(self) -> pd.DataFrame:
        """One line per metric, then one per metric and segment; `tag` and `value` name that."""
        import pandas as pd

        lines = []
        for one in (*self.metrics, *self.segments):
            numbers = one.model_dump(exclude={"metric", "segment"})
            tag, value = (one.segment.tag, one.segment.value) if one.segment else (None, None)
            lines.append({"metric": one.metric, "tag": tag, "value": value, **numbers})
        return pd.DataFrame(lines)
