"""Changes of a metric and their words: where a drop starts, what it is attributed to, drops
without a rule, and movements since the night before.

Words round a change as far as its interval allows, and never to a bare 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from textwrap import shorten

from ragmetrics.records.base import Record
from ragmetrics.text import drop_words

BUILDS = "index_build"
"""Name of the index build among the tags."""

WEEKDAY = "weekday"
"""Name of the day of the week among the tags by which nights are compared like with like."""
KNOWN_FROM = 8
"""Fewest nights that the judge's movement from night to night is estimated from."""
_UNSEEN = 0.0005
"""A smaller movement rounds to 0 and is not shown."""


def build_words(name: str) -> str:
    """`build idx-2`; `build-7` where the name begins with the word."""
    return name if name.lower().startswith("build") else f"build {name}"


class DatedChange(Record):
    """The first night of a lower level."""

    first: date
    """The most likely first night."""
    nights: list[date]
    """95% confidence set of the first night."""
    rise: bool = False
    """Whether it is the first night of a higher level."""

    @property
    def sentence(self) -> str:
        """`Fell on 2026-11-17 (possibly 2026-11-16)`."""
        return str(self).capitalize()

    def __str__(self) -> str:
        """`fell on 2026-11-17 (possibly 2026-11-16 to 2026-11-18)`."""
        others = [night for night in self.nights if night != self.first]
        span = f" (possibly {self.nights[0]} to {self.nights[-1]})" if others[1:] else ""
        span = f" (possibly {others[0]})" if len(others) == 1 else span
        return f"{'rose' if self.rise else 'fell'} on {self.first}{span}"


class ContributorShare(Record):
    """A value of a tag, or an index build, that contributes significantly to a drop."""

    tag: str
    """`index_build` for index builds."""
    value: str | None
    """None for the rows without the tag."""
    share: float
    """Share of the drop; above 1 where the other rows got better."""
    questions: int
    is_new: bool = False
    """Whether no earlier row has this value."""
    before: float | None = None
    """Mean of its questions before."""
    now: float | None = None
    """Mean of its questions tonight; None: no row has it, or an earlier version stored no means."""

    def __str__(self) -> str:
        """`section=billing`. Shares of several tags overlap, so no text has them."""
        name = f"{self.tag}={self.value}" if self.value is not None else f"rows without {self.tag}"
        if self.tag == BUILDS and self.value is not None:
            name = f"index {build_words(self.value)}"
        return f"{'new ' if self.is_new else ''}{name}"


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
    """A significant drop for which no alert fires: the metric has no drop rule, or its rule allows
    the drop. The headline shows it until the metric is back.
    """

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
    watched: bool = False
    """Whether the metric has a drop rule."""
    since: date | None = None
    """The first night of the drop, where that is an earlier one."""


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
    level: float | None = None
    """Standard deviation of a night's level by the nights' means, also of questions that do not
    recur; None: fewer than eight nights before, or an earlier version."""
    level_freedom: float = 0.0
    """Degrees of freedom of `level`."""
    level_seen: bool = False
    """Whether the nights' means vary by more than their questions explain."""


def compared_words(means: ComparedMeans | None, arrow: str = " → ") -> str:
    """`0.851 → 0.720 over the same 138 questions`; empty where an older version stored no means."""
    if means is None:
        return ""
    return f"{means.before:z.3f}{arrow}{means.now:z.3f} {over_questions(means)}"


def over_questions(means: ComparedMeans) -> str:
    """`over the same 138 questions`: the questions that compared means are over."""
    if means.paired:
        return f"over the same {means.questions:,} questions"
    return f"over {means.questions:,} questions, each counted once"


def mix_text(fell: float, mix: float | None, tags: Sequence[str]) -> str:
    """The part of a change that is due to another mix of rows: `0.027 of the fall of 0.031
    is due to the mix of tag section`. Empty where it rounds to 0.
    """
    if mix is None or f"{abs(mix):.3f}" == "0.000":
        return ""
    what = mix_name(tags)
    if 0 < mix <= fell or fell <= mix < 0:
        moved = "fall" if fell > 0 else "rise"
        return f"{abs(mix):.3f} of the {moved} of {abs(fell):.3f} is due to {what}"
    return f"{what} alone would {'lower' if mix > 0 else 'raise'} the mean by {abs(mix):.3f}"


def mix_name(tags: Sequence[str]) -> str:
    """`the mix of tag section`, `the mix of tags language and section`, `the day of the week`."""
    # Names of tags come from logs and may have any length.
    named = sorted(shorten(one, 60, placeholder="…") for one in tags if one != WEEKDAY)
    parts = ["the day of the week"] if WEEKDAY in tags else []
    if named:
        parts.append(f"the mix of tag{'s' if len(named) > 1 else ''} {' and '.join(named)}")
    return " and ".join(parts)


def movement_text(movement: JudgeMovement | None) -> str:
    """`this judge moves by 0.012 a night (SD, from 14 nights)`; empty where that rounds to 0."""
    if movement is None:
        return ""
    if movement.sd is None:
        seen = movement.level if movement.level_seen else None
        return (
            "this judge's movement from night to night is not known yet "
            f"({movement.nights} of {KNOWN_FROM} nights)"
            f"{f'; the means of nights move by {seen:.3f} (SD)' if seen else ''}"
        )
    if movement.sd < _UNSEEN:
        return ""
    return f"this judge moves by {movement.sd:.3f} a night (SD, from {movement.nights} nights)"


def unwatched_drop_text(fall: UnwatchedDrop) -> str:
    """`context_recall fell by 0.31 [0.25, 0.37] (no alert rule)`."""
    why = "within its alert rule" if fall.watched else "no alert rule"
    since = f"; not back since {fall.since}" if fall.since else ""
    change = " ".join(drop_words(fall.drop, fall.low, fall.high))
    return f"{fall.metric} {_moved(fall)} by {change} ({why}{since})"


def _moved(fall: UnwatchedDrop) -> str:
    before, now = (fall.means.before, fall.means.now) if fall.means else (fall.before, fall.now)
    return "fell" if now < before else "rose"
