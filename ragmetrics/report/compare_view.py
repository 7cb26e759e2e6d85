"""A against B as a reader sees it: each line with a word for what it says, the worst first.

What a page may weigh is decided here: lines, rows and contexts are bounded, and how many are left
out is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeAlias

from ragmetrics.model import Comparison, MetricChange, MovedContext, MovedRow, RowValue
from ragmetrics.report.formatting import MarkedText, TextBudget, digits, number, plural
from ragmetrics.report.row_selection import became
from ragmetrics.text import finite

Means: TypeAlias = tuple[float | None, float | None]
"""Of A and of B."""
MOST_LINES = 24
"""Values of one tag that are shown, those that most likely got worse."""
MOST_TAGS = 8
_AT_ONCE = 5
"""Lines of a tag that stand open, with all that got significantly worse; others fold away."""
_ALL_LINES = 96
"""Of all tags together."""
MOST_ROWS = 15
_ROOM = 90_000
"""Bytes of retrieved texts on one page."""
_LEAST_SCALE = 0.02
_FEW = 4
"""Times the usual end of an interval: beyond it one is cut, or a few questions would make of all
others a dot."""
_BRIEF = 140
"""Characters of a context that stayed: what left and what came is what a reader looks for."""
_MOST_TOLD = 4
"""Metrics, and segments, that the first lines of a page name."""


@dataclass(frozen=True)
class Bar:
    """An interval drawn from left to right, in hundredths of the width: 50 is no difference."""

    low: float
    high: float
    point: float


@dataclass(frozen=True)
class ComparisonLine:
    """One metric from A to B, over all rows or over those of a segment."""

    change: MetricChange
    state: str
    """An icon's name,"""
    word: str
    """and the word for it."""
    bar: Bar | None
    of_rows: Means | None = None
    """The means of all rows on both sides, as other pages have them; those of the change count each
    question once."""

    @property
    def is_worse(self) -> bool:
        """Whether B is significantly worse."""
        return self.change.significantly_worse()

    @property
    def difference(self) -> str:
        """B less A with its sign, as exact as its interval bears it."""
        return _signed(self.change.difference, self.change)

    @property
    def ends(self) -> str:
        """Its interval."""
        one = self.change
        if one.low is None or one.high is None:
            return ""
        return f"[{_signed(one.low, one)}, {_signed(one.high, one)}]"

    @property
    def over(self) -> str:
        """`over the same 138 questions`: what the means of the change are of."""
        one = self.change
        if one.paired:
            return f"over the same {one.questions:,} questions"
        return "each question counted once" if one.paired is False else ""

    @property
    def questions(self) -> str:
        """`80 paired`, or `80 + 75`: the questions of each side."""
        one = self.change
        if one.paired:
            return f"{one.questions:,} paired"
        if one.questions_a is None and one.questions_b is None:
            return number(None)
        return f"{one.questions_a or 0:,} + {one.questions_b or 0:,}"


@dataclass(frozen=True)
class TagLines:
    """The changes by the values of one tag."""

    tag: str
    lines: tuple[ComparisonLine, ...]
    worse: int
    more: int
    """Lines left out: they less likely got worse."""

    @property
    def compares(self) -> bool:
        """Whether any of its values stands on both sides."""
        return any(one.change.difference is not None for one in self.lines)

    @property
    def first(self) -> tuple[ComparisonLine, ...]:
        """The lines that stand open."""
        worse = [place for place, one in enumerate(self.lines, 1) if one.is_worse]
        return self.lines[: max(_AT_ONCE, *worse, 0)]

    @property
    def rest(self) -> tuple[ComparisonLine, ...]:
        """The others, none of which got significantly worse."""
        return self.lines[len(self.first) :]


@dataclass(frozen=True)
class ShownContext:
    """A retrieved context with what became of it."""

    context: MovedContext
    state: str
    """`left`, `came`, `moved`, `rewritten` or `stayed`."""
    word: str
    passage: MarkedText


@dataclass(frozen=True)
class ShownRow:
    """A question that moved far, by the metrics that it moved by."""

    row: MovedRow
    moved: tuple[RowValue, ...]
    contexts: tuple[ShownContext, ...]
    more: int
    left: int
    came: int

    @property
    def changed(self) -> str:
        """`2 contexts left, 1 came`."""
        told = [f"{plural(self.left, 'context')} left"] if self.left else []
        told += [f"{self.came:,} came"] if self.came else []
        return ", ".join(told) or "the same contexts on both sides"


@dataclass(frozen=True)
class CompareView:
    """All that a page says of a comparison."""

    found: Comparison
    state: str
    """Of all of it: an icon's name."""
    sentence: str
    lines: tuple[ComparisonLine, ...]
    tags: tuple[TagLines, ...]
    rows: tuple[ShownRow, ...]
    more_rows: int

    @property
    def worse(self) -> list[ComparisonLine]:
        """Where B is significantly worse: metrics, then the segments that most likely are."""
        segments = (line for table in self.tags for line in table.lines if line.is_worse)
        whole = [line for line in self.lines if line.is_worse][:_MOST_TOLD]
        return [*whole, *sorted(segments, key=_likeliest)[:_MOST_TOLD]]


def compare_view(found: Comparison, means: Mapping[str, Means] | None = None) -> CompareView:
    """What a page says of a comparison; `means` are those of all rows on both sides by metric."""
    known = means or {}
    whole = (replace(one, of_rows=known.get(one.change.metric)) for one in _lines(found.metrics))
    lines = tuple(sorted(whole, key=_likeliest))
    budget = TextBudget(_ROOM)
    rows = []
    for row in found.rows[:MOST_ROWS]:
        if budget.empty:
            break
        rows.append(_row(row, budget))
    state, sentence = _verdict(found)
    return CompareView(
        found, state, sentence, lines, _by_tag(found), tuple(rows), len(found.rows) - len(rows)
    )


def _verdict(found: Comparison) -> tuple[str, str]:
    """The state of a comparison, and what it says in one sentence."""
    compared = found.compared
    if not compared:
        return "no_data", "nothing can be compared"
    if lost := [one for one in found.metrics if one.significantly_worse()]:
        return (
            "firing",
            f"B is significantly worse by {plural(len(lost), 'metric')} of {len(compared):,}",
        )
    if where := found.significantly_worse():
        names = plural(len({str(one.segment) for one in where}), "segment")
        return "fell", f"no metric got significantly worse over all rows, but {names} did"
    better = sum(one.significantly_better for one in compared)
    if better:
        return "ok", f"nothing got significantly worse, and {plural(better, 'metric')} got better"
    return "ok", "nothing got significantly worse"


def _lines(changes: Sequence[MetricChange]) -> list[ComparisonLine]:
    """Lines on one scale."""
    known = (finite(end) for one in changes for end in (one.low, one.high))
    ends = [abs(end) for end in known if end is not None]
    points = [abs(one.difference) for one in changes if one.difference is not None]
    usual = min(max(ends, default=0.0), _FEW * median(ends or [0.0]))
    scale = max(usual, 1.2 * max(points, default=0.0), _LEAST_SCALE)
    return [ComparisonLine(one, *_says(one), _bar(one, scale)) for one in changes]


def _says(one: MetricChange) -> tuple[str, str]:
    if one.difference is None:
        return "no_data", "not compared"
    if one.significantly_worse():
        return "firing", "significantly worse"
    return ("ok", "better") if one.significantly_better else ("unwatched", "no significant change")


def _bar(one: MetricChange, scale: float) -> Bar | None:
    low, high, point = (finite(end) for end in (one.low, one.high, one.difference))
    if low is None or high is None or point is None:
        return None
    ends = (max(-1.0, min(1.0, end / scale)) for end in (low, high, point))
    return Bar(*(round(50 + 48 * end, 1) for end in ends))


def _likeliest(line: ComparisonLine) -> tuple[bool, float]:
    """What most likely got worse comes first; what could not be compared comes last."""
    return line.change.p_value is None, line.change.p_value or 0.0


def _by_tag(found: Comparison) -> tuple[TagLines, ...]:
    tags: dict[str, list[MetricChange]] = {}
    for one in found.segments:
        if one.segment:
            tags.setdefault(one.segment.tag, []).append(one)
    tables = []
    most = min(MOST_LINES, _ALL_LINES // max(1, min(len(tags), MOST_TAGS)))
    for tag, changes in list(tags.items())[:MOST_TAGS]:
        lines = sorted(_lines(changes), key=_likeliest)
        worse = sum(line.is_worse for line in lines)
        tables.append(TagLines(tag, tuple(lines[:most]), worse, max(0, len(lines) - most)))
    return tuple(sorted(tables, key=lambda table: -table.worse))


def _row(row: MovedRow, budget: TextBudget) -> ShownRow:
    moved = [one for one in row.values if _far(one)]
    shown: list[ShownContext] = []
    for context in row.contexts:
        if budget.empty and shown:
            break
        both = context.rank_a is not None and context.rank_b is not None
        longest = _BRIEF if both and not context.rewritten else len(context.text)
        passage = budget.passage(context.text, longest=longest)
        shown.append(ShownContext(context, *_became(context), passage))
    return ShownRow(
        row,
        tuple(sorted(moved, key=_far, reverse=True)),
        tuple(shown),
        row.more_contexts + len(row.contexts) - len(shown),
        left=sum(one.rank_b is None for one in row.contexts),
        came=sum(one.rank_a is None for one in row.contexts),
    )


def _far(one: RowValue) -> float:
    if one.value_a is None or one.value_b is None:
        return 0.0
    return round(abs(one.value_b - one.value_a), 9)


def _became(one: MovedContext) -> tuple[str, str]:
    """What became of a context, and the words for it."""
    fate = became(one)
    if one.rank_a is None or one.rank_b is None:
        return fate, fate
    words = "stayed"
    if one.rank_a != one.rank_b:
        up = "up" if one.rank_b < one.rank_a else "down"
        words = f"{up} from {one.rank_a} to {one.rank_b}"
    return fate, f"{words}, with another text" if one.rewritten else words


def _signed(value: float | None, one: MetricChange) -> str:
    text = number(value, digits(one.low, one.high))
    return text if value is None or value <= 0 or not text.strip("0.") else f"+{text}"
