"""Summaries: the numbers of one metric in one night or segment, stored as JSON."""

from __future__ import annotations

from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.changes import JudgeMovement
from ragmetrics.records.people import PeopleMean
from ragmetrics.records.score import UNSETTLED, Status
from ragmetrics.text import clean

_ADVICE = {
    "cut off: max_tokens": "raise `judge: max_tokens:`",
    "context length": "choose a model that reads longer prompts (`judge: model:`)",
    "answered 4": "`ragmetrics doctor --ask` sends one request and says what the endpoint takes",
    "no free slot": "raise `judge: deadline_seconds:`, or ask for a higher rate limit",
}
"""What to do where a reason has these words, the most specific first."""


class Segment(Record):
    """The rows whose tag has this value, as in `section=billing`."""

    tag: str
    value: str

    @property
    def is_blank(self) -> bool:
        """Whether the value has no visible sign: its rows have no value, and nobody names them."""
        return not clean(self.value, 80)

    def __str__(self) -> str:
        return f"{self.tag}={self.value}"


class JudgeSummary(Record):
    """One panel judge's summary of the same rows."""

    name: str
    mean: float | None
    scored: int
    failed: int
    """Rows without a usable verdict of this judge."""


class CheapBin(Record):
    """The judged rows whose cheap scores are in one bin: how the two judges' scores vary there.

    All values are means over these rows, weighted by 1 / inclusion probability.
    """

    bin: int
    """Number of the bin: 20 equal ones over [0, 1], the end ones with all scores beyond."""
    judged: int
    share: float
    """Estimated share of all rows."""
    cheap: float
    value: float
    cheap_squares: float
    value_squares: float
    products: float
    """Mean of cheap score times value."""


class SampledMean(Record):
    """Mean of a sampled night from the judged rows alone, and the cheap judge's part in it."""

    rows: int | None
    """Rows that the mean estimates, judged or not; None where their number is not known."""
    mean: float
    """Mean of the judged rows alone."""
    low: float | None
    high: float | None
    weight: float
    """Weight of the cheap judge; 0 where it does not help."""
    spread: float | None
    """Standard deviation of a row, as if each row had its own question."""
    correlation: float | None
    """Correlation of both judges over the judged rows."""
    effective: float | None = None
    """Effective sample size: rows of a plain sample whose mean would have the same standard error.
    None unless active sampling is set."""
    bins: list[CheapBin] = Field(default_factory=list)
    """How both judges' scores vary together, for the inclusion probabilities of later nights."""


class TagMean(Record):
    """Mean of the questions of a night with one value of a tag. A question has one vote, which its
    rows share.
    """

    questions: float
    """Sum of the votes."""
    mean: float
    scatter: float
    """Sum of the squared distances of the rows from the mean, weighted by their votes."""


class Summary(Record):
    """Mean of one metric with its interval, and counts of rows by status.

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
    """Minimum detectable effect: the drop of the mean that a one-sided test at 5% finds on four
    nights of five; a rise where lower is better."""
    status: dict[str, int]
    not_applicable: dict[str, int] = Field(default_factory=dict)
    """The rows to which the metric does not apply, by the most frequent reasons."""
    unanswered: dict[str, int] = Field(default_factory=dict)
    """The rows without a usable verdict, by the most frequent reasons in the judge's own words.
    Errors of a metric's code and the rows of missing parts are no part of it."""
    fingerprint: str
    """Fingerprint of judge, prompts, metric version and parameters. Numbers compare only where it
    is equal."""
    histogram: list[int] = Field(default_factory=list)
    """Count of rows in ten equal bins of [0, 1]; values outside count in the end bins."""
    judges: list[JudgeSummary] = Field(default_factory=list)
    """The summary of each judge of a panel."""
    agreement: float | None = None
    """Krippendorff's alpha of a panel's judges over the rows' values: 1 is full agreement, 0 is
    chance."""
    spread: float | None = None
    """Mean standard deviation of a row's value over a judge's repeats."""
    higher_is_better: bool = True
    sample: SampledMean | None = None
    """Set where a sample was judged. Mean and interval then estimate all rows, by both judges."""
    movement: JudgeMovement | None = None
    """Movement of the judge's level from night to night; None: none, or not known."""
    by_tag: dict[str, dict[str, TagMean]] = Field(default_factory=dict)
    """Of the tags that later nights standardise the mix of questions by: the mean of each value,
    empty for rows without the tag. Only for metrics whose slow decline is watched."""
    people: PeopleMean | None = None
    """What people would say; None without enough labels."""

    @property
    def unanswered_rows(self) -> tuple[int, int]:
        """Number of rows without a usable verdict, and of all rows that were to get one."""
        failed = sum(self.status.get(one, 0) for one in UNSETTLED)
        return failed, failed + self.scored

    @property
    def failed_by_code(self) -> int:
        """Number of rows on which the metric's own code failed, whatever the judge answered."""
        return self.status.get(Status.METRIC_FAILED, 0)

    @property
    def why_unanswered(self) -> str:
        """The most frequent reasons why rows have no usable verdict, with their rows, and what to
        do: `the judge answered 400: ... (300); raise ...`. Empty if there is no such row.
        """
        counted = [f"{why} ({rows:,})" for why, rows in self.unanswered.items()]
        said = " ".join(self.unanswered)
        todo = next((advice for sign, advice in _ADVICE.items() if sign in said), "")
        return "; ".join(filter(None, (*counted, todo)))

    def status_text(self, status: str, words: str) -> str:
        """A status in `words`, with the reason where the metric does not apply to rows:
        `not applicable (no reference answer)`.
        """
        reasons = self.not_applicable if status == Status.NOT_APPLICABLE else {}
        if len(reasons) > 1:
            return f"{words} ({', '.join(f'{why} {rows:,}' for why, rows in reasons.items())})"
        return f"{words} ({next(iter(reasons))})" if reasons else words

    def loss(self, before: float) -> float:
        """How much worse the mean is than a value; negative where it is better."""
        loss = before - (self.mean or 0.0)
        return loss if self.higher_is_better else -loss

    def significantly_worse_than(self, value: float) -> bool:
        """Whether the whole interval is on the bad side of a value."""
        if self.low is None or self.high is None:
            return False
        return self.high < value if self.higher_is_better else self.low > value
