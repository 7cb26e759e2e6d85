"""Scores: the result of one metric on one row with its status, and their summary in a night."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from numbers import Real
from typing import Any

from pydantic import Field

from ragmetrics.errors import Unanswered
from ragmetrics.records.base import Record
from ragmetrics.records.changes import JudgeMovement
from ragmetrics.records.golden import PeopleMean
from ragmetrics.records.judge_bridge import JudgeOffset
from ragmetrics.records.judging import JudgeName
from ragmetrics.text import clean, shorten

_SCALARS = ("numpy", "torch")
"""Packages whose scalars are numbers."""


def real_number(value: object) -> float:
    """A value as a float: a Python number, a Decimal, or a scalar of numpy or torch.

    Raises ValueError for anything else, also for a text, and for a number that is not finite.
    """
    if type(value) is float and math.isfinite(value):  # nearly all are
        return value
    if type(value).__module__ in _SCALARS and getattr(value, "shape", None) == ():
        value = value.item()  # type: ignore[attr-defined]  # a scalar or an array without axes
    if not isinstance(value, Real | Decimal):
        raise ValueError(f"a score of type {type(value).__name__}, which is no number")
    try:
        number = float(value)
    except (OverflowError, ValueError):  # a whole number beyond floats; a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"a score of {shorten(str(value))}: a missing value is a status")
    return number


class Status(StrEnum):
    """Why a row has a value, or has none."""

    SCORED = "scored"
    NOT_APPLICABLE = "not_applicable"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    JUDGE_FAILED = "judge_failed"
    METRIC_FAILED = "metric_failed"
    OVER_BUDGET = "over_budget"
    NOT_SAMPLED = "not_sampled"


UNSETTLED = (Status.UNREADABLE, Status.REFUSED, Status.JUDGE_FAILED, Status.METRIC_FAILED)
"""Statuses of rows that should have a value but have none: a later attempt may give one."""


@dataclass(frozen=True, slots=True)
class Score:
    """One row's value of one metric, or the reason why it has none."""

    value: float | None
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.SCORED
    votes: tuple[float | None, ...] | None = None
    """The values of a panel's judges, in the order of the panel."""
    failed: tuple[str, ...] = ()
    """The judges of a panel that gave no usable verdict."""
    spread: float | None = None
    """Standard deviation of the value over a judge's repeats, or by its probabilities."""
    cheap: float | None = None
    """The cheap judge's value, on a sampled night."""
    probability: float | None = None
    """Inclusion probability of a judged row, if active sampling is set."""
    compared: bool = True
    """False for a judged row that comparisons of nights leave out: outside the uniform part of a
    sample, as they give each row the same weight, or with a verdict by another judge of a cascade
    than usual."""

    def __post_init__(self) -> None:
        if self.value is not None:
            object.__setattr__(self, "value", real_number(self.value))

    @classmethod
    def not_applicable(cls, reason: str) -> Score:
        """The score of a row that the metric does not apply to."""
        return cls(None, reason, status=Status.NOT_APPLICABLE)

    @classmethod
    def unanswered(cls, error: Unanswered) -> Score:
        """The score of a row for which the judge gave no usable answer."""
        return cls(None, error.reason, status=Status(error.status))


_ADVICE = {
    "cut off: max_tokens": "raise `judge: max_tokens:`",
    "too long for the judge": "let the server read longer prompts (Ollama: `num_ctx`)",
    "context length": "choose a model that reads longer prompts (`judge: model:`)",
    "answered 4": "`ragmetrics doctor --ask` sends one request and shows what the endpoint accepts",
    "no free slot": "raise `judge: deadline_seconds:`, or ask for a higher rate limit",
}
"""What to do where a reason has these words, the most specific first."""


_BLANK_LETTERS = " \u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that look like a space: the fillers of Hangul, and Braille without a dot."""


class Segment(Record):
    """The rows whose tag has this value, as in `section=billing`."""

    tag: str
    value: str

    @property
    def is_blank(self) -> bool:
        """Whether the value has no visible sign: its rows have no value, and nobody names them."""
        return not clean(self.value, 80).strip(_BLANK_LETTERS)

    def __str__(self) -> str:
        return f"{self.tag}={self.value}"


class JudgeSummary(Record):
    """One panel judge's summary of the same rows."""

    name: JudgeName
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


class Quantile(Record):
    """A quantile of the rows' values with its interval; its rows count as independent."""

    share: float
    value: float
    low: float
    high: float


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
    quantiles: list[Quantile] = Field(default_factory=list)
    """Quantiles of a metric of times."""
    judges: list[JudgeSummary] = Field(default_factory=list)
    """The summary of each judge of a panel."""
    agreement: float | None = None
    """Krippendorff's alpha of a panel's judges over the rows' values: 1 is full agreement, 0 is
    chance."""
    spread: float | None = None
    """Mean standard deviation of a row's value over a judge's repeats, or by its probabilities."""
    higher_is_better: bool | None = True
    """None: neither direction is better."""
    sample: SampledMean | None = None
    """Set where a sample was judged. Mean and interval then estimate all rows, by both judges."""
    movement: JudgeMovement | None = None
    """Movement of the judge's level from night to night; None: none, or not known."""
    by_tag: dict[str, dict[str, TagMean]] = Field(default_factory=dict)
    """Of the tags that later nights standardise the mix of questions by: the mean of each value,
    empty for rows without the tag. Only for metrics whose slow decline is watched."""
    people: PeopleMean | None = None
    """What people would say; None without enough labels."""
    moved_by: JudgeOffset | None = Field(None, exclude=True)
    """Set while a night is compared with nights of the judge that replaced its own: the offset that
    its numbers were moved by. It is not stored."""

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
        reasons = " ".join(self.unanswered)
        todo = next((advice for sign, advice in _ADVICE.items() if sign in reasons), "")
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
        """How much worse the mean is than a value; negative where it is better, and 0 where
        neither direction is.
        """
        if self.higher_is_better is None:
            return 0.0
        loss = before - (self.mean or 0.0)
        return loss if self.higher_is_better else -loss

    def significantly_worse_than(self, value: float) -> bool:
        """Whether the whole interval is on the bad side of a value."""
        if self.low is None or self.high is None or self.higher_is_better is None:
            return False
        return self.high < value if self.higher_is_better else self.low > value
