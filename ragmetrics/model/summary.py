"""Summaries: the numbers of one metric in one night or segment, stored as JSON."""

from __future__ import annotations

from pydantic import Field

from ragmetrics.model.base import Record as Record
from ragmetrics.model.changes import JudgeMovement


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
