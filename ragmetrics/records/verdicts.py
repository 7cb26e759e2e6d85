"""What a night knows of a judge without labels: its answers to obvious questions, and how often it
gave which verdict.
"""

from __future__ import annotations

from collections import Counter

from pydantic import Field

from ragmetrics.records.base import Record

CANARIES = 10
"""Canaries that a judge is asked: five obvious yeses, five obvious noes."""
LEAST_RIGHT = 8
"""Right answers from which a judge passes: by tossing a coin it gets as many in 5% of the nights,
and with one answer to all of them never."""


class CanaryReport(Record):
    """What a judge said of ten contexts: five answer their question, five are about something
    else."""

    language: str
    asked: int
    """Those to which it replied, with or without a verdict."""
    right: int
    """Those that it graded right: at least 1 where the context answers, less where it does not."""
    yes: int
    """Those that it graded at least 1; right are five."""
    problem: str = ""
    """Why it gave no verdict on some; empty if it gave all."""

    def fails(self, least: float) -> bool:
        """Whether it cannot get `least` of ten right any more, whatever it would have said to those
        without a reply.
        """
        return self.asked - self.right > CANARIES - least

    @property
    def text(self) -> str:
        """`5 of 10 obvious questions right (it said yes to 10)`."""
        why = f"; {self.problem}" if self.problem else ""
        return (
            f"{self.right} of {self.asked} obvious questions right (it said yes to {self.yes}){why}"
        )


class VerdictCount(Record):
    """The verdicts of a judge on a prompt in a night. Shared requests count once."""

    top: int | None = None
    """The highest level of a verdict; None: its verdicts have no levels."""
    levels: dict[int, int] = Field(default_factory=dict)
    """How often each level was given: to a context, a statement or a sentence."""
    replies: int = 0
    copied: int = 0
    """Replies with a text of an example of the prompt."""

    def __add__(self, other: VerdictCount) -> VerdictCount:
        """The sum of both."""
        levels = Counter(self.levels) + Counter(other.levels)
        return VerdictCount(
            top=other.top if self.top is None else self.top,
            levels=dict(sorted(levels.items())),
            replies=self.replies + other.replies,
            copied=self.copied + other.copied,
        )

    @property
    def usual(self) -> tuple[int, float]:
        """The most frequent level and its share; (0, 0.0) without verdicts."""
        if not self.levels:
            return 0, 0.0
        level = max(self.levels, key=lambda one: self.levels[one])
        return level, self.levels[level] / self.verdicts

    @property
    def verdicts(self) -> int:
        """Number of verdicts with a level."""
        return sum(self.levels.values())
