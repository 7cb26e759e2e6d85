"""Records of the golden set: where its passages are now, and questions that could be added."""

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

    def of_status(self, *wanted: AnchorStatus) -> list[Anchor]:
        """The anchors with some statuses."""
        return [anchor for anchor in self.anchors if anchor.status in wanted]


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
