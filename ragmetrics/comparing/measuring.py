"""Measuring: how far each metric moved, where, and by which questions."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

from ragmetrics.causes import BUILDS
from ragmetrics.comparing.loading import Side
from ragmetrics.comparing.records import Change, MovedQuestion
from ragmetrics.records import Segment
from ragmetrics.stats.comparisons import compare
from ragmetrics.stats.families import adjusted
from ragmetrics.summarise import MetricScores

Questions: TypeAlias = Mapping[str, Sequence[float]]
"""The values of each question's rows."""


def measure(
    metric: str,
    a: Questions,
    b: Questions,
    *,
    segment: Segment | None = None,
    higher_is_better: bool = True,
) -> Change:
    """How far a metric moved from A to B: `stats.comparisons.compare`, told as B less A.

    Where lower is better, p is that of a rise. With less than two questions to compare, the means
    alone, and why.
    """
    change = Change(
        metric=metric,
        segment=segment,
        mean_a=_mean(a),
        mean_b=_mean(b),
        questions_a=len(a),
        questions_b=len(b),
        higher_is_better=higher_is_better,
    )
    drop = compare(a, b)
    if drop is None:
        return change.model_copy(update={"reason": _too_few(a, b)})
    return change.model_copy(
        update={
            "mean_a": drop.before,
            "mean_b": drop.now,
            "difference": -drop.drop,
            "low": -drop.high,
            "high": -drop.low,
            "p_value": drop.p_value if higher_is_better else 1 - drop.p_value,
            "mde": drop.mde,
            "paired": drop.paired,
            "questions": drop.questions,
        }
    )


def measure_sides(
    a: Side, b: Side, metrics: Sequence[str], tags: Sequence[str]
) -> tuple[list[Change], list[Change]]:
    """The changes over all rows and those by segment: one family of tests."""
    whole, segments = [], []
    for metric in metrics:
        old, new = a.scores[metric], b.scores[metric]
        better = new.higher_is_better
        whole.append(measure(metric, old.by_question(), new.by_question(), higher_is_better=better))
        for tag in tags:
            before, now = _by_value(old, tag), _by_value(new, tag)
            segments += [
                measure(
                    metric,
                    before.get(value, {}),
                    now.get(value, {}),
                    segment=Segment(tag=tag, value=value),
                    higher_is_better=better,
                )
                for value in sorted(before.keys() | now.keys())
            ]
    controlled = control([*whole, *segments])
    return controlled[: len(whole)], controlled[len(whole) :]


def control(changes: Sequence[Change]) -> list[Change]:
    """The changes with their p values adjusted, as one family."""
    tested = [one.p_value for one in changes if one.p_value is not None]
    chances = iter(adjusted(tested))
    return [
        one if one.p_value is None else one.model_copy(update={"p_adjusted": next(chances)})
        for one in changes
    ]


def find_moved(a: Side, b: Side, metrics: Sequence[str], count: int) -> list[MovedQuestion]:
    """Of each metric the `count` questions that moved furthest, either way; among equals, those
    that got worse come first.
    """
    moved = [
        (metric, *one)
        for metric in metrics
        for one in furthest(
            a.scores[metric].by_question(),
            b.scores[metric].by_question(),
            count,
            higher_is_better=b.scores[metric].higher_is_better,
        )
    ]
    rows = b.rows_of({question for _, question, _, _ in moved})
    return [
        MovedQuestion(
            metric=metric,
            user_input=rows[question].user_input if question in rows else "",
            id=rows[question].id if question in rows else "",
            value_a=old,
            value_b=new,
        )
        for metric, question, old, new in moved
    ]


def furthest(
    a: Questions, b: Questions, count: int, *, higher_is_better: bool = True
) -> list[tuple[str, float, float]]:
    """Question, value of A and value of B, of the shared questions that moved furthest."""
    pairs = ((question, fmean(a[question]), fmean(b[question])) for question in a.keys() & b.keys())
    moved = (one for one in pairs if one[1] != one[2])
    sign = 1 if higher_is_better else -1
    return heapq.nsmallest(
        count, moved, key=lambda one: (-abs(one[2] - one[1]), sign * (one[2] - one[1]), one[0])
    )


def _by_value(scores: MetricScores, tag: str) -> dict[str, Questions]:
    """The values of each question, by the value of a tag; rows without the tag are left out."""
    rows, column = scores.scored, tag if tag == BUILDS else f"tag:{tag}"
    if column not in rows:
        return {}
    found: dict[str, dict[str, list[float]]] = {}
    tagged = rows[rows[column].notna()]
    columns = (tagged[name] for name in (column, "question", "value"))
    for value, question, score in zip(*columns, strict=True):
        found.setdefault(str(value), {}).setdefault(question, []).append(score)
    return dict(found)


def _mean(questions: Questions) -> float | None:
    return fmean(map(fmean, questions.values())) if questions else None


def _too_few(a: Questions, b: Questions) -> str:
    empty = [letter for letter, side in (("A", a), ("B", b)) if not side]
    if empty:
        return f"no row of {' and '.join(empty)} was scored"
    return "less than two questions to compare"
