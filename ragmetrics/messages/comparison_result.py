"""The whole result of a comparison, for a pull request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.messages.blocks import Block, Header, Note, Section, Text, bullets, links, table
from ragmetrics.messages.gate_result import (
    SIGNS,
    fell_most,
    judge_words,
    lost_sentence,
    question,
    quoted,
    quotes,
)
from ragmetrics.records import Comparison, MetricChange
from ragmetrics.text import NO_VALUE, chance, number, signed, signed_interval

_MOST_SEGMENTS = 10
_HEADERS = ("", "metric", "A", "B", "B - A [95%]", "p", "questions")


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
        *links([("whole comparison", link)]),
        Section(lines=(_sides(comparison),)),
        *table(
            "",
            _HEADERS,
            [_row(change, conclusions[change.metric]) for change in comparison.metrics],
            (0, 1),
        ),
        *lost_sentence(comparison.lost_passages),
        *bullets("Where it fell", _segments(worse)),
        *fell_most(
            question(moved.user_input, moved.metric, moved.value_a, moved.value_b)
            for moved in comparison.moved
            if (moved.value_b < moved.value_a) == (moved.metric not in lower_is_better)
        ),
        *quotes("Notices", (*comparison.problems, *comparison.notices)),
        Note(("Judge: ", *judge_words(comparison.b.judge), ". p is adjusted for all changes.")),
    ]


def _sides(comparison: Comparison) -> Text:
    """The logs that are compared."""
    a, b = quoted(comparison.a.name), quoted(comparison.b.name)
    return ("A: ", *a, f", {comparison.a.rows:,} rows · B: ", *b, f", {comparison.b.rows:,} rows")


def _row(change: MetricChange, conclusion: str) -> tuple[Text, ...]:
    metric = quoted(change.metric, 80)
    if change.difference is None:
        why = ("not compared: ", *quoted(change.reason))
        sign = SIGNS["inconclusive"]
        return sign, metric, NO_VALUE, NO_VALUE, why, NO_VALUE, NO_VALUE
    means = number(change.mean_a), number(change.mean_b)
    p, questions = chance(change.p_adjusted), f"{change.questions:,}"
    return SIGNS[conclusion], metric, *means, _change(change), p, questions


def _change(change: MetricChange) -> str:
    return f"{signed(change.difference)} {signed_interval(change.low, change.high)}".rstrip()


def _segments(worse: Sequence[MetricChange]) -> list[Text]:
    fell = [change for change in worse if change.segment][:_MOST_SEGMENTS]
    return [
        (*quoted(str(change.segment)), ": ", *quoted(change.metric, 80), f" {_change(change)}")
        for change in fell
    ]
