"""Records of what people know: the golden set, where its passages are now and questions that could
be added, and labels of nights.
"""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from ragmetrics.records.base import Record

AnchorStatus = Literal["same", "edited", "moved", "gone", "not_asked", "never_retrieved", "unknown"]
NEEDS_REVIEW: tuple[AnchorStatus, ...] = ("edited", "gone", "never_retrieved", "unknown")
"""Anchors that a person should look at."""
STATUS_WORDS: dict[AnchorStatus, str] = {
    "same": "under the same id, with its text",
    "edited": "only a part of its text is left",
    "moved": "its text is under other ids",
    "gone": "its text is not there any more",
    "not_asked": "not retrieved, but its question was not asked either",
    "never_retrieved": "never retrieved on any of the nights",
    "unknown": "its earlier text is not known",
}


class Anchor(Record):
    """A label of a golden question: one of its `reference_context_ids`."""

    id: str
    """Id of the golden row."""
    user_input: str
    context_id: str
    status: AnchorStatus
    to: list[str] = Field(default_factory=list)
    """Ids of the passages that hold its text now, best first."""
    share: float | None = None
    """Share of its earlier text that these passages hold; None where that is not known."""


class DuplicatePassage(Record):
    """A labelled passage whose text is under other ids too."""

    context_id: str
    same_as: list[str]
    questions: list[str]
    """Ids of the golden rows that name only one of them."""


class ConstantQuestion(Record):
    """A golden question that has the same score on every night and in every index build."""

    id: str
    user_input: str
    metric: str
    value: float
    nights: int
    builds: int


class GoldenCheck(Record):
    """What is stale in a golden set."""

    passages: str
    """Where the passages of now are from: a night, or a list of passages."""
    questions: int
    """Questions that are used."""
    retired: int = 0
    """Questions that are not used any more, or not yet."""
    unreadable: int = 0
    """Rows that cannot be read."""
    problems: dict[str, int] = Field(default_factory=dict)
    """Why rows or fields cannot be read, or no question measures anything, with their number."""
    anchors: list[Anchor] = Field(default_factory=list)
    duplicates: list[DuplicatePassage] = Field(default_factory=list)
    constant: list[ConstantQuestion] = Field(default_factory=list)

    @property
    def has_findings(self) -> bool:
        """Whether anything needs a person."""
        stale = any(anchor.status not in ("same", "not_asked") for anchor in self.anchors)
        return bool(stale or self.duplicates or self.problems)


Reason = Literal["topic", "fall", "swing", "failure"]
REASON_WORDS: dict[Reason, str] = {
    "topic": "a topic without a golden question",
    "fall": "its score fell",
    "swing": "its score falls and rises",
    "failure": "nothing relevant was retrieved",
}


class SuggestedPassage(Record):
    """A passage that was retrieved for a suggested question."""

    id: str
    """Empty where the log has no ids."""
    text: str
    relevant: bool | None = None
    """Whether the judge found it relevant; None where no judge said."""


class Suggestion(Record):
    """A question of the live traffic that could become a golden one."""

    reason: Reason
    why: str
    """The reason in a sentence, with its numbers."""
    user_input: str
    asked: int
    """How often it was asked in the nights that were read."""
    night: date
    """The newest night that asked it."""
    response: str | None = None
    passages: list[SuggestedPassage] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)
    language: str | None = None


class NuggetReview(Record):
    """Nuggets of a golden question, which a person reviews."""

    id: str
    """Id of the golden row."""
    user_input: str
    reference: str
    nuggets: list[dict[str, str]]
    nuggets_of: str
    """Key of the reference."""


FEWEST_LABELS = 30
"""Fewest labelled rows of a metric for what people would say."""
BIASED = 0.05
"""Significance level of a difference between judge and people, per metric."""
UNEVEN = 0.01
"""Significance level of a bias that differs between nights."""


class PeopleMean(Record):
    """What people would say of all rows of a night, with both uncertainties in its interval."""

    method: Literal["labels", "error_rates"] = "labels"
    """`error_rates`: from the judge's error rates on a labelled set, without labelled rows."""
    mean: float
    low: float | None
    high: float | None
    labels: int
    """Labelled rows, or labelled units of the set."""
    questions: int
    """Distinct questions of the labelled rows."""
    people: int = 0
    """People who labelled them."""
    nights: int = 0
    """Nights of the labelled rows."""
    oldest: date | None = None
    """The oldest of these nights; None where all rows are of this one."""
    bias: float
    """The judge's mean minus that of people."""
    bias_low: float | None = None
    bias_high: float | None = None
    p_value: float | None = None
    """Two-sided, for a judge without bias."""
    weight: float | None = None
    """Weight of the judge's score of a labelled row; 0 where it does not help."""
    agreement: float | None = None
    """Krippendorff's alpha of several people on the same rows."""
    uneven: float | None = None
    """p of the same bias on all labelled nights."""
    answered: float | None = None
    """Share of tonight's rows with feedback, where it is the labels; None: people drew the rows."""

    @property
    def differs(self) -> bool:
        """Whether judge and people disagree significantly."""
        if self.p_value is not None:
            return self.p_value < BIASED
        ends = (self.bias_low, self.bias_high)
        return None not in ends and not (ends[0] or 0.0) <= 0 <= (ends[1] or 0.0)

    def text(self, judged: float) -> str:
        """`people's mean is 0.710 [0.640, 0.780] (60 labels); the judge's is 0.800, ...`."""
        known = self.low is not None and self.high is not None
        span = f" [{self.low:.3f}, {self.high:.3f}]" if known else ""
        by = f"{self.labels:,} labels"
        if self.method == "error_rates":
            by = f"the judge's error rates on {self.labels:,} labelled units"
        text = f"people's mean is {self.mean:.3f}{span} ({by}); the judge's is {judged:.3f}"
        if self.differs:
            text += f", significantly {'higher' if self.bias > 0 else 'lower'}"
        else:
            text += ", no significant difference"
        if self.uneven is not None and self.uneven < UNEVEN:
            text += "; its bias differs between nights: label rows of this night"
        if self.answered is not None:
            text += (
                f"; labels are feedback, given on {self.answered:.1%} of rows: if content users "
                "answer more or less often than others, it is not the mean of all users"
            )
        return text


class LabelReport(Record):
    """The labels of people that were read for a night."""

    place: str
    labels: int = 0
    """Values that people gave."""
    empty: int = 0
    """Rows without a value."""
    rejected: dict[str, int] = Field(default_factory=dict)
    """Labels that could not be read, by reason."""
    first: dict[str, str] = Field(default_factory=dict)
    """The first label of each of these reasons: its file, and its line or its number in it."""
    unused: dict[str, int] = Field(default_factory=dict)
    """Labels that could be read and were not used, by reason."""
    rows: dict[str, int] = Field(default_factory=dict)
    """Labelled rows that can be used, by metric."""
    problem: str = ""
    """Why no label, or a part of a file, could not be read."""

    @property
    def lacking(self) -> dict[str, int]:
        """Metrics with labelled rows that are too few, and how many there are."""
        return {name: rows for name, rows in self.rows.items() if rows < FEWEST_LABELS}


class LabelSuggestion(Record):
    """A row that is worth a label, with the texts that a person needs."""

    id: str
    user_input: str
    night: date
    sampling_weight: float
    """Rows that stand behind this one, relative to a uniform draw."""
    metrics: list[str]
    contexts: list[str]
    response: str | None = None
    reference: str | None = None
    sentences: list[str] = Field(default_factory=list)
    """The sentences of the reference."""
