"""Changes of a metric: the start of a drop, what it is attributed to, drops without a rule, and
movements since the night before.
"""

from __future__ import annotations

from datetime import date

from ragmetrics.model.base import Record

BUILDS = "index_build"
"""Name of the index build among the tags."""


class DatedChange(Record):
    """The first night of a lower level."""

    first: date
    """The most likely first night."""
    nights: list[date]
    """95% confidence set of the first night."""

    def __str__(self) -> str:
        """`lower since the night of 2026-11-17 (or one of 2026-11-16 to 2026-11-18)`; with one
        other night, `(or 2026-11-16)`.
        """
        others = [night for night in self.nights if night != self.first]
        span = f" (or one of {self.nights[0]} to {self.nights[-1]})" if others[1:] else ""
        span = f" (or {others[0]})" if len(others) == 1 else span
        return f"lower since the night of {self.first}{span}"


class ContributorShare(Record):
    """A value of a tag, or an index build, that contributes significantly to a drop."""

    tag: str
    """`index_build` for index builds."""
    value: str | None
    """None: the rows without the tag."""
    share: float
    """Share of the drop; above 1 where the other rows got better."""
    questions: int
    is_new: bool = False
    """Whether no earlier row has this value."""

    def __str__(self) -> str:
        """`section=billing (62% of the drop)`."""
        name = f"{self.tag}={self.value}" if self.value is not None else f"rows without {self.tag}"
        if self.tag == BUILDS and self.value is not None:
            name = f"index build {self.value}"
        return f"{'new ' if self.is_new else ''}{name} ({self.share:.0%} of the drop)"


class ComparedMeans(Record):
    """The two means whose difference is the drop. Each compared question counts once, so they
    differ from the means of all rows.
    """

    before: float
    now: float
    questions: int
    paired: bool | None = None
    """Whether both means are over the same questions."""


class UnwatchedDrop(Record):
    """A significant drop of a metric without a drop rule. The headline shows it; no alert fires."""

    metric: str
    before: float
    """Mean of all rows before."""
    now: float
    """Mean of all rows of the night."""
    label: str
    """What the night is compared with: `2026-11-18` or `7 nights before`."""
    drop: float
    """Positive where the metric is worse, also where lower is better. So is its interval."""
    low: float
    high: float
    questions: int
    paired: bool | None = None
    """Whether each question is compared with itself; None: not known."""
    means: ComparedMeans | None = None
    """Means of the compared questions."""


class Move(Record):
    """Change of a metric since an earlier night, paired by question.

    The pairing makes its interval narrower than the intervals of the two means suggest.
    """

    metric: str
    since: date
    run: str
    """Run of the earlier night. The change does not hold for another run of that night."""
    by: float
    low: float
    """Lower end of the 95% interval."""
    high: float
    """Upper end of the 95% interval."""
    error: float | None = None
    """Standard error from the questions alone. None in records of earlier versions, whose interval
    is from the questions alone."""
    means: ComparedMeans | None = None


class JudgeMovement(Record):
    """Random movement of a judge's level from night to night, in one metric.

    It is estimated from earlier nights. A judge that computes its verdicts on this machine has
    none.
    """

    sd: float | None
    """Standard deviation of a night's level; None: too few nights to estimate it."""
    nights: int
    """Nights in the estimate; where there is no estimate, nights that are available."""
    freedom: float = 0.0
    """Degrees of freedom of the estimate."""
