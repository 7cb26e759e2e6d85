"""The view of a comparison of A with B: one line per metric and segment, what got worse first.

The pages of comparisons, nights and index builds show this view. It bounds the size of a page: it
holds a limited number of lines, rows and contexts, and the numbers of those that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from ragmetrics.dashboard.formatting import MarkedText, TextBudget, number
from ragmetrics.dashboard.lost_passages_view import LostPassagesView, lost_passages_view
from ragmetrics.dashboard.row_selection import became
from ragmetrics.records import Comparison, MetricChange, MovedContext, MovedRow, RowValue
from ragmetrics.text import digits_of, finite, plural

Means: TypeAlias = tuple[float | None, float | None]
"""The means of A and of B."""
MOST_LINES = 24
"""Most values of one tag: those that most likely got worse."""
MOST_TAGS = 8
_OPEN = 5
"""Fewest lines of a tag that are open. Lines that are significantly worse are always open."""
_ALL_LINES = 96
"""Most lines of all tags together."""
MOST_ROWS = 15
_ROOM = 90_000
"""Bytes of retrieved texts on one page."""
_LEAST_SCALE = 0.02
_USUAL = 4
"""How much longer than the median an interval may be before its bar is cut: otherwise one wide
interval makes all other bars too small to read."""
_BRIEF = 140
"""Characters of a context that is on both sides: readers look for the others."""
_MOST_WORSE = 4
"""Metrics, and segments, that the first lines of a page name."""


@dataclass(frozen=True)
class Bar:
    """An interval from left to right, in hundredths of the width: 50 is no difference."""

    low: float
    high: float
    point: float


@dataclass(frozen=True)
class ComparisonLine:
    """One metric in A and B, over all rows or over those of a segment."""

    change: MetricChange
    state: str
    """The name of an icon."""
    word: str
    bar: Bar | None
    of_rows: Means | None = None
    """The means of all rows, as other pages show them. The means of the change count each question
    once."""

    @property
    def is_worse(self) -> bool:
        """Whether B is significantly worse."""
        return self.change.significantly_worse()

    @property
    def difference(self) -> str:
        """B less A with its sign, rounded as far as the interval allows."""
        return _signed(self.change.difference, self.change)

    @property
    def ends(self) -> str:
        """The interval of the difference."""
        change = self.change
        if change.low is None or change.high is None:
            return ""
        return f"[{_signed(change.low, change)}, {_signed(change.high, change)}]"

    @property
    def over(self) -> str:
        """`over the same 138 questions`: the questions of the change's means."""
        change = self.change
        if change.paired:
            return f"over the same {change.questions:,} questions"
        return "each question counted once" if change.paired is False else ""

    @property
    def questions(self) -> str:
        """`80 paired`, or `80 + 75`: the questions of each side."""
        change = self.change
        if change.paired:
            return f"{change.questions:,} paired"
        if change.questions_a is None and change.questions_b is None:
            return number(None)
        return f"{change.questions_a or 0:,} + {change.questions_b or 0:,}"


@dataclass(frozen=True)
class TagLines:
    """The changes by the values of one tag."""

    tag: str
    lines: tuple[ComparisonLine, ...]
    worse: int
    more: int
    """Lines left out, which less likely got worse."""

    @property
    def compares(self) -> bool:
        """Whether any value of the tag is on both sides."""
        return any(line.change.difference is not None for line in self.lines)

    @property
    def first(self) -> tuple[ComparisonLine, ...]:
        """The open lines."""
        worse = [place for place, one in enumerate(self.lines, 1) if one.is_worse]
        return self.lines[: max(_OPEN, *worse, 0)]

    @property
    def rest(self) -> tuple[ComparisonLine, ...]:
        """The other lines, none of them significantly worse."""
        return self.lines[len(self.first) :]


@dataclass(frozen=True)
class ShownContext:
    """A retrieved context, and what became of it from A to B."""

    context: MovedContext
    state: str
    """`left`, `came`, `moved`, `rewritten` or `stayed`."""
    word: str
    passage: MarkedText


@dataclass(frozen=True)
class ShownRow:
    """A question whose values moved far, with the metrics that moved."""

    row: MovedRow
    moved: tuple[RowValue, ...]
    contexts: tuple[ShownContext, ...]

    @property
    def more(self) -> int:
        """Contexts left out."""
        return self.row.more_contexts + len(self.row.contexts) - len(self.contexts)

    @property
    def changed(self) -> str:
        """`2 contexts left, 1 came`."""
        left = sum(context.rank_b is None for context in self.row.contexts)
        came = sum(context.rank_a is None for context in self.row.contexts)
        words = [
            f"{plural(left, 'context')} left" if left else "",
            f"{came:,} came" if came else "",
        ]
        return ", ".join(filter(None, words)) or "the same contexts on both sides"


@dataclass(frozen=True)
class CompareView:
    """The content of a comparison's page."""

    found: Comparison
    state: str
    """The name of an icon for the whole comparison."""
    sentence: str
    lines: tuple[ComparisonLine, ...]
    tags: tuple[TagLines, ...]
    rows: tuple[ShownRow, ...]

    @property
    def lost_passages(self) -> LostPassagesView | None:
        """What happened to the passages that questions lost in B."""
        return lost_passages_view(self.found.lost_passages)

    @property
    def more_rows(self) -> int:
        """Questions left out."""
        return len(self.found.rows) - len(self.rows)

    @property
    def worse(self) -> list[ComparisonLine]:
        """Where B is significantly worse: metrics, then the segments that most likely are."""
        segments = (line for table in self.tags for line in table.lines if line.is_worse)
        whole = [line for line in self.lines if line.is_worse][:_MOST_WORSE]
        return [*whole, *sorted(segments, key=_likeliest)[:_MOST_WORSE]]


def compare_view(comparison: Comparison, means: Mapping[str, Means] | None = None) -> CompareView:
    """The view of a comparison; `means` are the means of all rows of both sides by metric."""
    budget = TextBudget(_ROOM)
    rows = []
    for row in comparison.rows[:MOST_ROWS]:
        if budget.empty:
            break
        rows.append(_row(row, budget))
    lines = tuple(_lines(comparison.metrics, means or {}))
    return CompareView(
        comparison, *comparison_verdict(comparison), lines, _by_tag(comparison), tuple(rows)
    )


def comparison_verdict(comparison: Comparison) -> tuple[str, str]:
    """The state of a comparison, and its result in one sentence."""
    compared = comparison.compared
    if not compared:
        return "no_data", "nothing can be compared"
    if lost := [metric for metric in comparison.metrics if metric.significantly_worse()]:
        many = f"{plural(len(lost), 'metric')} of {len(compared):,}"
        return "firing", f"B is significantly worse by {many}"
    if where := comparison.significantly_worse():
        names = plural(len({str(one.segment) for one in where}), "segment")
        return "fell", f"no metric got significantly worse over all rows, but {names} did"
    better = sum(one.significantly_better for one in compared)
    if better:
        return "ok", f"nothing got significantly worse, and {plural(better, 'metric')} got better"
    return "ok", "nothing got significantly worse"


def _lines(
    changes: Sequence[MetricChange], means: Mapping[str, Means] | None = None
) -> list[ComparisonLine]:
    """Lines with bars on one scale, what most likely got worse first."""
    known = (finite(end) for change in changes for end in (change.low, change.high))
    ends = [abs(end) for end in known if end is not None]
    points = [abs(change.difference) for change in changes if change.difference is not None]
    usual = min(max(ends, default=0.0), _USUAL * median(ends or [0.0]))
    scale = max(usual, 1.2 * max(points, default=0.0), _LEAST_SCALE)
    lines = [
        ComparisonLine(move, *_result(move), _bar(move, scale), (means or {}).get(move.metric))
        for move in changes
    ]
    return sorted(lines, key=_likeliest)


def _result(change: MetricChange) -> tuple[str, str]:
    if change.difference is None:
        return "no_data", "not compared"
    if change.significantly_worse():
        return "firing", "significantly worse"
    if change.significantly_better:
        return "ok", "better"
    if change.interval_is_worse:
        return "unwatched", "not significant after correction"
    return "unwatched", "no significant change"


def _bar(one: MetricChange, scale: float) -> Bar | None:
    low, high, point = (finite(end) for end in (one.low, one.high, one.difference))
    if low is None or high is None or point is None:
        return None
    ends = (max(-1.0, min(1.0, end / scale)) for end in (low, high, point))
    return Bar(*(round(50 + 48 * end, 1) for end in ends))


def _likeliest(line: ComparisonLine) -> tuple[bool, float]:
    """Sort key: what most likely got worse first, what could not be compared last."""
    return line.change.p_value is None, line.change.p_value or 0.0


def _by_tag(comparison: Comparison) -> tuple[TagLines, ...]:
    tags: dict[str, list[MetricChange]] = {}
    for segment in comparison.segments:
        if segment.segment:
            tags.setdefault(segment.segment.tag, []).append(segment)
    tables = []
    most = min(MOST_LINES, _ALL_LINES // max(1, min(len(tags), MOST_TAGS)))
    for tag, changes in list(tags.items())[:MOST_TAGS]:
        lines = _lines(changes)
        worse = sum(line.is_worse for line in lines)
        tables.append(TagLines(tag, tuple(lines[:most]), worse, max(0, len(lines) - most)))
    return tuple(sorted(tables, key=lambda table: -table.worse))


def _row(row: MovedRow, budget: TextBudget) -> ShownRow:
    shown: list[ShownContext] = []
    for context in row.contexts:
        if budget.empty and shown:
            break
        both = context.rank_a is not None and context.rank_b is not None
        longest = _BRIEF if both and not context.rewritten else len(context.text)
        passage = budget.passage(context.text, longest=longest)
        shown.append(ShownContext(context, became(context), _words(context), passage))
    moved = sorted(filter(_distance, row.values), key=_distance, reverse=True)
    return ShownRow(row, tuple(moved), tuple(shown))


def _distance(one: RowValue) -> float:
    if one.value_a is None or one.value_b is None:
        return 0.0
    return round(abs(one.value_b - one.value_a), 9)


def _words(context: MovedContext) -> str:
    """What became of a context: `came`, `up from 3 to 2`, `stayed, with another text`."""
    if context.rank_a is None or context.rank_b is None:
        return became(context)
    words = "stayed"
    if context.rank_a != context.rank_b:
        up = "up" if context.rank_b < context.rank_a else "down"
        words = f"{up} from {context.rank_a} to {context.rank_b}"
    return f"{words}, with another text" if context.rewritten else words


def _signed(value: float | None, one: MetricChange) -> str:
    text = number(value, digits_of(one.low, one.high))
    return text if value is None or value <= 0 or not text.strip("0.") else f"+{text}"
