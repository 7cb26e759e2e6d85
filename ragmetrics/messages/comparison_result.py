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
    found: Comparison,
    title: str,
    said: str,
    conclusions: Mapping[str, str],
    worse: Sequence[MetricChange],
    link: str,
) -> list[Block]:
    """What is concluded, a line for each metric, and what fell: passages, segments, questions.

    `conclusions` are those of each metric, `worse` the changes that failed the comparison.
    """
    lower_is_better = {one.metric for one in found.metrics if not one.higher_is_better}
    return [
        Header(title),
        Section(lines=(quoted(said),)),
        *links([("whole comparison", link)]),
        Section(lines=(_sides(found),)),
        *table("", _HEADERS, [_row(one, conclusions[one.metric]) for one in found.metrics], (0, 1)),
        *lost_sentence(found.lost_passages),
        *bullets("Where it fell", _segments(worse)),
        *fell_most(
            question(one.user_input, one.metric, one.value_a, one.value_b)
            for one in found.moved
            if (one.value_b < one.value_a) == (one.metric not in lower_is_better)
        ),
        *quotes("Notices", (*found.problems, *found.notices)),
        Note(("Judge: ", *judge_words(found.b.judge), ". p is adjusted for all changes.")),
    ]


def _sides(found: Comparison) -> Text:
    """The logs that are compared."""
    a, b = quoted(found.a.name), quoted(found.b.name)
    return ("A: ", *a, f", {found.a.rows:,} rows · B: ", *b, f", {found.b.rows:,} rows")


def _row(one: MetricChange, conclusion: str) -> tuple[Text, ...]:
    metric = quoted(one.metric, 80)
    if one.difference is None:
        why = ("not compared: ", *quoted(one.reason))
        sign = SIGNS["inconclusive"]
        return sign, metric, NO_VALUE, NO_VALUE, why, NO_VALUE, NO_VALUE
    means = number(one.mean_a), number(one.mean_b)
    p, questions = chance(one.p_adjusted), f"{one.questions:,}"
    return SIGNS[conclusion], metric, *means, _change(one), p, questions


def _change(one: MetricChange) -> str:
    return f"{signed(one.difference)} {signed_interval(one.low, one.high)}".rstrip()


def _segments(worse: Sequence[MetricChange]) -> list[Text]:
    fell = [one for one in worse if one.segment][:_MOST_SEGMENTS]
    return [
        (*quoted(str(one.segment)), ": ", *quoted(one.metric, 80), f" {_change(one)}")
        for one in fell
    ]
