"""What the command line prints of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from ragmetrics.cli.output.costs import print_usage
from ragmetrics.cli.output.summary import number
from ragmetrics.cli.table import print_grid
from ragmetrics.model import ComparedSide, Comparison, MetricChange
from ragmetrics.report import plural
from ragmetrics.text import clean

_HEADERS = ("A", "B", "B - A [95%]", "p", "adjusted", "MDE", "questions")
_MOST_SEGMENTS = 20
_TEXT = 200


def print_comparison(console: Console, found: Comparison) -> None:
    """The sides, how far each metric moved, where, by which questions, and what to know of it."""
    for letter, side in (("A", found.a), ("B", found.b)):
        console.print(f"{letter}: {_side(side)}", markup=False, soft_wrap=True)
    lines = [(one.metric, *_numbers(one)) for one in found.compared]
    if lines:
        print_grid(console, ("metric", *_HEADERS), lines, styles=_styles(found.compared))
        console.print("A, B: means over these questions, each counted once")
    _print_segments(console, found)
    _print_moved(console, found)
    for one in found.metrics:
        if one.difference is None:
            text = f"Not compared: {one.metric}: {clean(one.reason, 300)}"
            console.print(text, markup=False, style="red", soft_wrap=True)
    for notice in (*found.problems, *found.notices):
        text = f"Note: {clean(notice, 300)}"
        console.print(text, markup=False, style="yellow", soft_wrap=True)
    _print_judges(console, found)
    print_usage(console, {}, found.usage)


def print_lost(console: Console, lost: Sequence[MetricChange], limit: float) -> None:
    """What makes `--fail-on-drop` fail."""
    for one in lost:
        of = f" of {clean(str(one.segment), 80)}" if one.segment else ""
        fell = "fell" if one.higher_is_better else "rose"
        text = f"{one.metric}{of} {fell} significantly, by {number(one.loss)}, more than {limit:g}"
        console.print(text, markup=False, style="bold red", soft_wrap=True)


def _side(side: ComparedSide) -> str:
    bad = f", {side.quarantined:,} quarantined" if side.quarantined else ""
    rows = f"{plural(side.rows, 'row')} of {clean(side.dataset, 80)}{bad}"
    return f"{clean(side.name, _TEXT)}, {rows}"


def _numbers(one: MetricChange) -> tuple[str, ...]:
    """The cells of a change; those of one that could not be compared say why."""
    if one.difference is None:
        counts = f"{one.questions_a or 0:,} + {one.questions_b or 0:,}"
        return number(one.mean_a), number(one.mean_b), "–", "–", "–", "–", counts
    counts = f"{one.questions:,} paired"
    if not one.paired:
        counts = f"{one.questions_a:,} + {one.questions_b:,}"
    return (
        number(one.mean_a),
        number(one.mean_b),
        f"{_signed(one.difference)} [{_signed(one.low)}, {_signed(one.high)}]",
        _chance(one.p_value),
        _chance(one.p_adjusted),
        number(one.mde),
        counts,
    )


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 3) + 0.0:+.3f}"


def _chance(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _styles(changes: Sequence[MetricChange]) -> list[str | None]:
    return ["bold red" if one.significantly_worse() else None for one in changes]


def _print_segments(console: Console, found: Comparison) -> None:
    """A table per tag, those that most likely got worse first; of many no others."""
    by_tag: dict[str, list[MetricChange]] = {}
    for one in found.segments:
        if one.segment:
            by_tag.setdefault(one.segment.tag, []).append(one)
    for tag, changes in by_tag.items():
        likely = sorted(changes, key=lambda one: 2.0 if one.p_value is None else one.p_value)
        told = likely[:_MOST_SEGMENTS]
        lines = [(_value(one), one.metric, *_numbers(one)) for one in told]
        headers = (clean(tag, 40), "metric", *_HEADERS)
        print_grid(console, headers, lines, names=(0, 1), styles=_styles(told))
        if left := len(changes) - len(told):
            console.print(f"and {left:,} that less likely got worse: --json has them all")


def _value(one: MetricChange) -> str:
    return clean(one.segment.value, 60) if one.segment else ""


def _print_moved(console: Console, found: Comparison) -> None:
    for metric, moved in groupby(found.moved, key=lambda one: one.metric):
        console.print(f"Moved furthest by {metric}:", markup=False)
        for one in moved:
            text = clean(one.user_input, _TEXT) or "(its row is no longer in the store)"
            line = f"  {one.value_a:.3f} → {one.value_b:.3f}  {text}"
            console.print(line, markup=False, soft_wrap=True)


def _print_judges(console: Console, found: Comparison) -> None:
    """Who judged; once where both sides have the same judge."""
    judges = {"A": found.a.judge, "B": found.b.judge}
    if found.a.judge == found.b.judge:
        judges = {"": found.b.judge}
    for letter, judge in judges.items():
        of = f" of {letter}" if letter else ""
        told = f"Judge{of}: {clean(judge.name, _TEXT)} ({clean(judge.fingerprint, 40)})"
        console.print(told, markup=False, soft_wrap=True)
        if judge.note:
            console.print(f"Note: {clean(judge.note, 300)}", markup=False, style="yellow")
