"""The whole result of a comparison, for a pull request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.messages.blocks import Block, Header, Note, Section, Text, bullets, links, table
from ragmetrics.messages.changes_story import comparison_story
from ragmetrics.messages.gate_result import (
    SIGNS,
    fell_most,
    judge_words,
    question,
    quoted,
    quotes,
)
from ragmetrics.metrics import display_name
from ragmetrics.records import Comparison, MetricChange
from ragmetrics.text import NO_VALUE, number, signed, signed_interval

_MOST_SEGMENTS = 10
_MARKED = "Lines with ▼ or ▲ stay significant after correcting for all comparisons."
_HEADERS = ("", "metric", "before", "after", "change [95%]", "questions")


def comparison_report(
    comparison: Comparison,
    title: str,
    verdict: str,
    conclusions: Mapping[str, str],
    worse: Sequence[MetricChange],
    link: str,
) -> list[Block]:
    """What is concluded, a line for each metric, and what fell: passages, segments, questions.

    `conclusions` are those of each metric, `worse` the changes that failed the comparison.
    """
    lower_is_better = {
        change.metric for change in comparison.metrics if not change.higher_is_better
    }
    return [
        Header(title),
        Section(lines=(quoted(verdict),)),
        *comparison_story(comparison).blocks,
        *links([("whole comparison", link)]),
        Section(lines=(_sides(comparison),)),
        *table(
            "",
            _HEADERS,
            [_row(change, conclusions[change.metric]) for change in comparison.metrics],
            (0, 1),
        ),
        *bullets("Segments that fell", _segments(worse)),
        *fell_most(
            question(moved.user_input, moved.metric, moved.value_a, moved.value_b)
            for moved in comparison.moved
            if (moved.value_b < moved.value_a) == (moved.metric not in lower_is_better)
        ),
        *quotes("Notices", (*comparison.problems, *comparison.notices)),
        Note(("Judge: ", *judge_words(comparison.b.judge), f". {_MARKED}")),
    ]


def _sides(comparison: Comparison) -> Text:
    """The logs that are compared."""
    a, b = quoted(comparison.a.name), quoted(comparison.b.name)
    rows = f", {comparison.a.rows:,} rows · After: ", f", {comparison.b.rows:,} rows"
    return ("Before: ", *a, rows[0], *b, rows[1])


def _row(change: MetricChange, conclusion: str) -> tuple[Text, ...]:
    metric = quoted(display_name(change.metric), 80)
    if change.difference is None:
        why = ("not compared: ", *quoted(change.reason))
        sign = SIGNS["inconclusive"]
        return sign, metric, NO_VALUE, NO_VALUE, why, NO_VALUE
    means = number(change.mean_a), number(change.mean_b)
    mark = "▼ " if change.significantly_worse() else "▲ " if change.significantly_better else ""
    by = f"{mark}{_change(change)}"
    return SIGNS[conclusion], metric, *means, by, f"{change.questions:,}"


def _change(change: MetricChange) -> str:
    return f"{signed(change.difference)} {signed_interval(change.low, change.high)}".rstrip()


def _segments(worse: Sequence[MetricChange]) -> list[Text]:
    fell = [change for change in worse if change.segment][:_MOST_SEGMENTS]
    names = [quoted(display_name(change.metric), 80) for change in fell]
    return [
        (*quoted(str(change.segment)), ": ", *name, f" {_change(change)}")
        for change, name in zip(fell, names, strict=True)
    ]
