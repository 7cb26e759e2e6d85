"""Drops: since when one is there, what carries it, and one that no rule watches; and how far a
metric moved since the night before.
"""

from __future__ import annotations

from datetime import date

from ragmetrics.model.base import Record

BUILDS = "index_build"
"""The name by which index builds stand among the tags."""


class DatedChange(Record):
    """Since which night a level is lower, by the nights themselves."""

    first: date
    """The most likely first night of the lower level."""
    nights: list[date]
    """All that may be it, with 95% confidence."""

    def __str__(self) -> str:
        """`lower since the night of 2026-11-17 (or one of 2026-11-16 to 2026-11-18)`, or, of two
        nights, `(or 2026-11-16)`.
        """
        others = [night for night in self.nights if night != self.first]
        span = f" (or one of {self.nights[0]} to {self.nights[-1]})" if others[1:] else ""
        span = f" (or {others[0]})" if len(others) == 1 else span
        return f"lower since the night of {self.first}{span}"


class ContributorShare(Record):
    """One value of a tag, or one index build, that is surely a part of a drop."""

    tag: str
    """`index_build` for the builds."""
    value: str | None
    """None: the rows without the tag."""
    share: float
    """Of the drop; above 1 where the other rows got better."""
    questions: int
    is_new: bool = False
    """No row had it before."""

    def __str__(self) -> str:
        """`section=billing (62% of the drop)`."""
        name = f"{self.tag}={self.value}" if self.value is not None else f"rows without {self.tag}"
        if self.tag == BUILDS and self.value is not None:
            name = f"index build {self.value}"
        return f"{'new ' if self.is_new else ''}{name} ({self.share:.0%} of the drop)"


class ComparedMeans(Record):
    """The two means that a drop is the difference of, each question counted once: not those of all
    rows, which other questions and their shares move too.
    """

    before: float
    now: float
    questions: int
    paired: bool | None = None
    """Whether the same questions are on both sides."""


class UnwatchedDrop(Record):
    """A metric without a drop rule that surely got worse: said in the headline, and by no alert."""

    metric: str
    before: float
    now: float
    label: str
    """What it was compared with: `2026-11-18` or `7 nights before`."""
    drop: float
    """Positive where it is worse, also of a metric in which lower is better; so its interval."""
    low: float
    high: float
    questions: int
    paired: bool | None = None
    """Whether they are questions of both sides, each against itself; None: not known."""
    means: ComparedMeans | None = None
    """Of these questions; `before` and `now` are of all rows."""


class Move(Record):
    """How far a metric moved since an earlier night: by the questions of both, each against itself,
    so that its interval is narrower than those of the two means tell.
    """

    metric: str
    since: date
    run: str
    """Of that night: of another one, which speaks for it by now, this says nothing."""
    by: float
    low: float
    high: float
    """Of its 95% interval."""
    error: float | None = None
    """Standard error by the questions alone; None of earlier versions, whose interval is of them
    alone."""
    means: ComparedMeans | None = None


class JudgeMovement(Record):
    """How far a judge's level moves from night to night, in one metric, whatever is asked.

    It is estimated from the nights before, and left out where the judge computes its verdicts on
    this machine.
    """

    sd: float | None
    """Standard deviation of a night's level; None: too few nights to tell."""
    nights: int
    """That it was estimated from, or that there are."""
    freedom: float = 0.0
    """Degrees of freedom of the estimate."""
