"""Records of a comparison, for JSON, the terminal and pandas.

Comparison
├── ComparedSide            A or B: what it is, and which judge scored it
├── MetricChange            one metric from A to B, over all rows or over one segment
├── MovedQuestion           a question of both sides that changed much by one metric
├── MovedRow                such a question once, with all metrics and its retrieved contexts
│   └── MovedContext        a retrieved context: removed, added, or at another rank
└── OneSided                the questions that only one side has
    └── UnmatchedQuestion   one of them
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.judging import JudgeInfo, Usage
from ragmetrics.records.lost_passages import LostPassages
from ragmetrics.records.score import Segment
from ragmetrics.stats import ALPHA

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ["metric", "mean_a", "mean_b", "difference", "low", "high", "p_adjusted", "mde"]
"""Columns that a notebook shows."""


class ComparedSide(Record):
    """One of the two sides."""

    name: str
    """`logs/new.jsonl`, `night 2026-11-19 (run 1f2e3d4c5b)` or `build 42 (builds/42/)`."""
    dataset: str
    judge: JudgeInfo
    rows: int
    quarantined: int = 0
    redact: bool = False
    """Whether its texts are never published."""


class MetricChange(Record):
    """Change of a metric from A to B. Numbers are None where there was nothing to compare.

    Paired: each question that both sides have is compared with itself. Not paired: the questions
    of A are compared with the questions of B. A question counts once, as the mean of its rows.
    """

    metric: str
    segment: Segment | None = None
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    """B minus A; without `mix` where like is compared with like."""
    low: float | None = None
    """Lower end of the two-sided 95% interval."""
    high: float | None = None
    """Upper end of the two-sided 95% interval."""
    p_value: float | None = None
    """One-sided p value of the hypothesis that B is not worse than A."""
    p_adjusted: float | None = None
    """p value after Benjamini-Hochberg: over the metrics for all rows, over all changes for a
    segment."""
    p_adjusted_gain: float | None = None
    """The same of the hypothesis that B is not better; None in older records."""
    mde: float | None = None
    """Smallest drop that this number of questions shows with 80% power."""
    paired: bool | None = None
    mix: float | None = None
    """Part of the change of the mean that is due to another mix of tags. None: not compared like
    with like."""
    mix_tags: list[str] = Field(default_factory=list)
    """The tags by which like is compared with like."""
    questions: int = 0
    """Compared questions: those of both sides where paired, else those of B."""
    questions_a: int | None = None
    """Scored questions of A; None: not counted, as the sides were scored in different ways."""
    questions_b: int | None = None
    """Scored questions of B; None as for A."""
    higher_is_better: bool | None = True
    reason: str = ""
    """Why there was nothing to compare."""

    @property
    def loss(self) -> float | None:
        """How much worse B is; negative where B is better. None also where neither direction is."""
        if self.difference is None or self.higher_is_better is None:
            return None
        return -self.difference if self.higher_is_better else self.difference

    @property
    def significantly_better(self) -> bool:
        """Whether the whole interval is on the good side of 0, also after correction."""
        if self.low is None or self.high is None or self.higher_is_better is None:
            return False
        if (self.p_adjusted_gain or 0.0) >= ALPHA:
            return False
        return self.low > 0 if self.higher_is_better else self.high < 0

    def significantly_worse(self, limit: float = 0.0) -> bool:
        """Whether B is worse by more than a limit, and significantly worse, as for a gate."""
        if self.loss is None or self.p_adjusted is None:
            return False
        return self.loss > limit and self.p_adjusted < ALPHA


class MovedQuestion(Record):
    """A question of both sides, by one metric."""

    metric: str
    user_input: str
    """Empty where the rows of B are no longer in the store."""
    id: str
    """Id of B's first row of the question."""
    value_a: float
    """Mean of the question's rows in A."""
    value_b: float
    """Mean of the question's rows in B."""


class MovedContext(Record):
    """A context that was retrieved for a question on one side or on both."""

    text: str
    """Beginning of the text; that of B where both sides have the context."""
    id: str | None = None
    rank_a: int | None
    """Rank from 1; None: A did not retrieve the context, B added it."""
    rank_b: int | None
    """Rank from 1; None: B did not retrieve the context any more."""
    rewritten: bool = False
    """Whether the text changed under the same id."""


class RowValue(Record):
    """A question's values in one metric; None on a side that has no score."""

    metric: str
    value_a: float | None
    value_b: float | None
    higher_is_better: bool | None = True


class MovedRow(Record):
    """A question that changed much by some metric, with all its values and contexts."""

    user_input: str
    id: str
    """Id of B's first row of the question."""
    id_a: str
    """Id of A's first row of the question."""
    values: list[RowValue]
    contexts: list[MovedContext]
    """The first contexts, by rank."""
    more_contexts: int = 0


class UnmatchedQuestion(Record):
    """A question that only one side has."""

    user_input: str
    """Empty where its rows are no longer in the store."""
    id: str
    values: dict[str, float]
    """Scores by metric."""


class OneSided(Record):
    """The questions that only one side has."""

    questions: int
    means: dict[str, float] = Field(default_factory=dict)
    """Mean score of the scored questions, by metric."""
    shown: list[UnmatchedQuestion] = Field(default_factory=list)
    """The questions with the worst scores, worst first."""


class Comparison(Record):
    """A comparison of two sides: the result of `ragmetrics.compare` and of `compare A B --json`."""

    a: ComparedSide
    b: ComparedSide
    metrics: list[MetricChange]
    """Changes over all rows."""
    segments: list[MetricChange] = Field(default_factory=list)
    """Changes over the rows of each value of some tags."""
    segments_asked: bool = True
    """Whether these tags were asked for: if not, a segment fails no pipeline."""
    moved: list[MovedQuestion] = Field(default_factory=list)
    """By metric, the largest change first."""
    rows: list[MovedRow] = Field(default_factory=list)
    """The questions of `moved` whose rows are in the store, each once, the largest loss first."""
    lost: OneSided = OneSided(questions=0)
    """Questions of A alone."""
    gained: OneSided = OneSided(questions=0)
    """Questions of B alone."""
    lost_passages: LostPassages | None = None
    """What happened to passages that questions needed, had in A and lost in B."""
    notices: list[str] = Field(default_factory=list)
    """Notes on the numbers, one sentence each."""
    problems: list[str] = Field(default_factory=list)
    """Why parts of a side could not be read or scored."""
    usage: Usage = Usage()
    """Judge requests of the comparison, and their cost."""

    def significantly_worse(self, limit: float = 0.0) -> list[MetricChange]:
        """The changes by which B is worse by more than a limit, and significantly worse; over all
        rows, and over segments that were asked for.
        """
        changes = [*self.metrics, *(self.segments if self.segments_asked else ())]
        return [change for change in changes if change.significantly_worse(limit)]

    @property
    def compared(self) -> list[MetricChange]:
        """The metrics that could be compared."""
        return [metric for metric in self.metrics if metric.difference is not None]

    @property
    def undecided(self) -> list[MetricChange]:
        """Metrics that could not be compared, although A has scores or may have some."""
        return [metric for metric in self.metrics if metric.reason and metric.questions_a != 0]

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics compare --json`."""
        return self.model_dump(mode="json")

    def _repr_html_(self) -> str:
        """What a notebook shows: both sides, and one line per metric and segment."""
        sides = (
            f"{name}: {escape(side.name)}" for name, side in (("Before", self.a), ("After", self.b))
        )
        columns = [*_SHOWN, *(["tag", "value"] if self.segments else [])]
        table = self.to_pandas().reindex(columns=columns).round(3)
        return f"<p>{'<br>'.join(sides)}</p>{table.to_html(escape=True, index=False, na_rep='')}"

    def to_pandas(self) -> pd.DataFrame:
        """One line per metric, then one per metric and segment (columns `tag` and `value`)."""
        import pandas as pd

        lines = []
        for change in (*self.metrics, *self.segments):
            numbers = change.model_dump(exclude={"metric", "segment"})
            segment = change.segment
            tag, value = (segment.tag, segment.value) if segment else (None, None)
            lines.append({"metric": change.metric, "tag": tag, "value": value, **numbers})
        return pd.DataFrame(lines)
