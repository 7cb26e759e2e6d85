"""Records of a change of judge: what the old and the new judge say of the same rows."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.judging import JudgeName


class JudgedTwice(Record):
    """A row with its values by the old and by the new judge."""

    question: str
    old: float
    new: float
    tags: dict[str, str] = Field(default_factory=dict)


class JudgeOffset(Record):
    """How much higher the new judge scores a metric than the old one, over the same questions."""

    metric: str
    replaced: str
    """Fingerprint of the scores of the old judge."""
    fingerprint: str
    """Fingerprint of the scores of the new judge."""
    offset: float
    """Mean of the new values less the old ones, each question with one vote."""
    low: float
    high: float
    error: float
    freedom: float
    questions: int
    correlation: float | None = None
    """Spearman's rank correlation of both judges over the questions; None where one gives all
    questions the same value."""
    apart: str = ""
    """Why the judges differ by more than an offset, so that the baseline begins again; empty: they
    do not."""
    differences: dict[str, float] = Field(default_factory=dict, exclude=True, repr=False)
    """The old value less the new one of each question; read from the rows of the bridge."""


class JudgeBridge(Record):
    """The change from an old judge to that of the night, over the nights that both judged."""

    replaced: JudgeName
    """Name of the old judge."""
    since: date
    """First night of the new judge."""
    runs: dict[date, str] = Field(default_factory=dict)
    """The runs whose rows both judged, by night."""
    offsets: list[JudgeOffset] = Field(default_factory=list)
    unpaired: list[str] = Field(default_factory=list)
    """Metrics that changed with the judge, and of which both have verdicts on less than two
    questions."""
    problem: str = ""
    """Why the old judge gave no further verdicts tonight."""

    @property
    def apart(self) -> list[str]:
        """The metrics that do not compare with nights of the old judge, each with the reason."""
        return [
            *(f"{one.metric}: {one.apart}" for one in self.offsets if one.apart),
            *(f"{metric}: no verdicts of both judges" for metric in self.unpaired),
        ]

    @property
    def broken(self) -> str:
        """The end of a sentence on scores that do not compare; empty where all metrics do."""
        if not self.apart:
            return ""
        return f"; the judge {self.replaced} was replaced on {self.since}: {', '.join(self.apart)}"
