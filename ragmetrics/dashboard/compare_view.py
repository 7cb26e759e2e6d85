"""The view of a comparison, before and after: a line per metric and segment, what fell most first.

The pages of comparisons, nights and index builds show this view. It bounds the size of a page: it
holds a limited number of lines, rows and contexts, and the numbers of those that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from statistics import median
from typing import TypeAlias

from markupsafe import Markup

from ragmetrics.dashboard.formatting import TextBudget, number
from ragmetrics.dashboard.lost_passages_view import LostPassagesView, lost_passages_view
from ragmetrics.dashboard.moved_row_view import ShownRow, show_row
from ragmetrics.dashboard.svg import interval_axis, interval_bar
from ragmetrics.messages import NightStory, comparison_story, contribution, gate_story
from ragmetrics.records import (
    ComparedSide,
    Comparison,
    Gate,
    MetricChange,
    MetricVerdict,
    Verdict,
    build_words,
)
from ragmetrics.text import digits_of, finite

Means: TypeAlias = tuple[float | None, float | None]
"""The means before and after."""
VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "promote": ("ok", "promote"),
    "hold": ("firing", "hold"),
    "inconclusive": ("pending", "inconclusive"),
}
"""For each verdict, the name of an icon and the word."""
MOST_LINES = 24
"""Most values of one tag: those that contribute most to a loss."""
MOST_TAGS = 8
_OPEN = 5
"""Fewest lines of a tag that are open. Lines that are significantly worse are always open."""
_ALL_LINES = 96
"""Most lines of all tags together."""
MOST_ROWS = 15
_ROOM = 90_000
"""Bytes of retrieved texts on one page."""
_LEAST_SCALE = 0.02
"""How far the axis reaches at least on both sides of 0."""
_USUAL = 4
"""How much longer than the median an interval may be before its bar is cut: otherwise one wide
interval makes all other bars too small to read."""


@dataclass(frozen=True)
class ComparisonLine:
    """One metric before and after, over all rows or over those of a segment."""

    change: MetricChange
    state: str
    """The name of an icon."""
    word: str
    bar: Markup = field(default_factory=Markup)
    of_rows: Means | None = None
    """The means of all rows, as other pages show them. The means of the change count each question
    once."""
    verdict: MetricVerdict | None = None
    """The verdict of a gate."""

    @property
    def is_worse(self) -> bool:
        """Whether it is marked: significantly worse, or what holds a build."""
        return self.state == "firing"

    @property
    def difference(self) -> str:
        """After less before with its sign, rounded as far as the interval allows."""
        return _signed(self.change.difference, self.change)

    @property
    def ends(self) -> str:
        """The interval of the difference."""
        change = self.change
        if change.low is None or change.high is None:
            return ""
        return f"[{_signed(change.low, change)}, {_signed(change.high, change)}]"

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
    """Lines left out, which contribute less to a loss."""
    axis: Markup
    """The axis of the bars."""

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
class CompareView:
    """The content of a comparison's page."""

    found: Comparison
    state: str
    """The name of an icon for the whole comparison."""
    story: NightStory
    lines: tuple[ComparisonLine, ...]
    axis: Markup
    tags: tuple[TagLines, ...]
    rows: tuple[ShownRow, ...]
    gate: Gate | None = None

    @property
    def lost_passages(self) -> LostPassagesView | None:
        """What happened to the passages that questions lost."""
        return lost_passages_view(self.found.lost_passages)

    @property
    def more_rows(self) -> int:
        """Questions left out."""
        return len(self.found.rows) - len(self.rows)


def compare_view(comparison: Comparison, means: Mapping[str, Means] | None = None) -> CompareView:
    """The view of a comparison; `means` are the means of all rows of both sides by metric."""
    budget = TextBudget(_ROOM)
    rows = []
    for row in comparison.rows[:MOST_ROWS]:
        if budget.empty:
            break
        rows.append(show_row(row, budget))
    lines, axis = _lines(comparison.metrics, comparison)
    known = means or {}
    return CompareView(
        comparison,
        _state(comparison),
        comparison_story(comparison),
        tuple(replace(line, of_rows=_of_rows(line.change, known)) for line in lines),
        axis,
        _by_tag(comparison),
        tuple(rows),
    )


def _of_rows(change: MetricChange, known: Mapping[str, Means]) -> Means | None:
    """The means of all rows, where they are not those of the change."""
    means, shown = known.get(change.metric), (change.mean_a, change.mean_b)
    same = means is None or list(map(number, means)) == list(map(number, shown))
    return None if same else means


def gate_view(gate: Gate, comparison: Comparison | None) -> CompareView:
    """The view of a gate: its verdicts in place of the metrics, and the comparison of its builds
    where the store has it.
    """
    story, found = gate_story(gate, comparison), comparison or _without_rows(gate)
    lines, axis = _lines(list(map(_change_of, gate.metrics)), found)
    verdicts = {verdict.metric: verdict for verdict in gate.metrics}
    judged = [(line, verdicts[line.change.metric]) for line in lines]
    view = compare_view(found)
    return replace(
        view,
        state=VERDICTS[gate.verdict][0],
        story=story,
        lines=tuple(starmap(_judged, judged)),
        axis=axis,
        gate=gate,
    )


def _judged(line: ComparisonLine, verdict: MetricVerdict) -> ComparisonLine:
    state, word = VERDICTS[verdict.verdict]
    return replace(line, state=state, word=word, verdict=verdict)


def _change_of(verdict: MetricVerdict) -> MetricChange:
    """The drop of a gate as a change."""
    numbers = (verdict.drop, verdict.high, verdict.low)
    difference, low, high = (None if number is None else -number for number in numbers)
    return MetricChange(
        metric=verdict.metric,
        mean_a=verdict.before,
        mean_b=verdict.after,
        difference=difference,
        low=low,
        high=high,
        p_adjusted=verdict.p_value,
        mde=verdict.detectable,
        paired=verdict.paired or None,
        questions=verdict.questions,
    )


def _without_rows(gate: Gate) -> Comparison:
    """The comparison of a gate of which no more is stored than its verdicts."""
    sources = (gate.serving or "–", gate.serving_source), (gate.build, gate.source)
    a, b = (
        ComparedSide(
            name=build_words(name),
            dataset=gate.dataset,
            judge=gate.judge,
            rows=source.rows if source else 0,
        )
        for name, source in sources
    )
    metrics = list(map(_change_of, gate.metrics))
    return Comparison(a=a, b=b, metrics=metrics, lost_passages=gate.lost_passages)


def _state(comparison: Comparison) -> str:
    if not comparison.compared:
        return "no_data"
    if any(change.significantly_worse() for change in comparison.metrics):
        return "firing"
    return "fell" if any(map(MetricChange.significantly_worse, comparison.segments)) else "ok"


def _lines(
    changes: Sequence[MetricChange], comparison: Comparison
) -> tuple[list[ComparisonLine], Markup]:
    """Lines with bars on one axis: first what is significantly worse, then by what each contributes
    to the loss of its metric.
    """
    ends = _axis(changes)
    whole = {change.metric: change for change in comparison.metrics}
    lines = [
        ComparisonLine(change, *_result(change), _bar(change, ends))
        for change in sorted(
            changes,
            key=lambda change: (
                not change.significantly_worse(),
                change.difference is None,
                -(contribution(change, whole) or change.loss or 0.0),
            ),
        )
    ]
    return lines, interval_axis(ends)


def _axis(changes: Sequence[MetricChange]) -> tuple[float, float]:
    """Where the axis of the bars begins and ends: 0 is on it."""
    known = (finite(end) for change in changes for end in (change.low, change.high))
    ends = [end for end in known if end is not None] or [0.0]
    points = [change.difference for change in changes if change.difference is not None] or [0.0]
    usual = _USUAL * median(map(abs, ends))
    low = min(-_LEAST_SCALE, max(min(ends), -usual), 1.2 * min(points))
    return low, max(_LEAST_SCALE, min(max(ends), usual), 1.2 * max(points))


def _result(change: MetricChange) -> tuple[str, str]:
    if change.difference is None:
        return "no_data", "not compared"
    if change.significantly_worse():
        return "firing", "worse"
    if change.significantly_better:
        return "ok", "better"
    return "unwatched", "not significant"


def _bar(one: MetricChange, ends: tuple[float, float]) -> Markup:
    low, high, point = (finite(end) for end in (one.low, one.high, one.difference))
    if low is None or high is None or point is None:
        return Markup()
    return interval_bar(low, high, point, ends)


def _by_tag(comparison: Comparison) -> tuple[TagLines, ...]:
    tags: dict[str, list[MetricChange]] = {}
    for segment in comparison.segments:
        if segment.segment:
            tags.setdefault(segment.segment.tag, []).append(segment)
    tables = []
    most = min(MOST_LINES, _ALL_LINES // max(1, min(len(tags), MOST_TAGS)))
    for tag, changes in list(tags.items())[:MOST_TAGS]:
        lines, axis = _lines(changes, comparison)
        worse, more = sum(line.is_worse for line in lines), max(0, len(lines) - most)
        tables.append(TagLines(tag, tuple(lines[:most]), worse, more, axis))
    return tuple(sorted(tables, key=lambda table: -table.worse))


def _signed(value: float | None, one: MetricChange) -> str:
    text = number(value, digits_of(one.low, one.high))
    return text if value is None or value <= 0 or not text.strip("0.") else f"+{text}"
