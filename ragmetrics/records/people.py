"""Records of people's labels: what people would say of a night, and which labels were used."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from ragmetrics.records.base import Record

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

    @property
    def differs(self) -> bool:
        """Whether judge and people disagree significantly."""
        if self.p_value is not None:
            return self.p_value < BIASED
        ends = (self.bias_low, self.bias_high)
        return None not in ends and not (ends[0] or 0.0) <= 0 <= (ends[1] or 0.0)

    def text(self, judged: float) -> str:
        """`people would say 0.710 [0.640, 0.780], by 60 labels; the judge says 0.800 and ...`."""
        known = self.low is not None and self.high is not None
        span = f" [{self.low:.3f}, {self.high:.3f}]" if known else ""
        by = f"{self.labels:,} labels"
        if self.method == "error_rates":
            by = f"the judge's error rates on {self.labels:,} labelled units"
        text = f"people would say {self.mean:.3f}{span}, by {by}; the judge says {judged:.3f}"
        if self.differs:
            text += f" and is significantly {'higher' if self.bias > 0 else 'lower'}"
        else:
            text += ", no significant difference"
        if self.uneven is not None and self.uneven < UNEVEN:
            text += "; its bias differs between nights: label rows of this night"
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
