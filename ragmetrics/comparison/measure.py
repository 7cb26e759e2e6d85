"""The change of each metric between two sides, over all rows and by segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ragmetrics.comparison.alignment import Aligned
from ragmetrics.comparison.question_mix import without_mix
from ragmetrics.model import MetricChange, Segment
from ragmetrics.stats import (
    Drop,
    LevelError,
    Numbers,
    adjust_p_values,
    compare_aligned,
    with_movement,
)


def measure(
    metric: str,
    a: Numbers,
    b: Numbers,
    *,
    segment: Segment | None = None,
    higher_is_better: bool = True,
    like: Callable[[Drop], Drop] | None = None,
    level: LevelError | None = None,
) -> MetricChange:
    """The change of a metric from A to B, by `stats.compare_aligned`, as B minus A.

    `a` and `b` are the means of each question, NaN where a side has none. Where lower is better, p
    tests for a rise. With less than two questions to compare, the result has the means and the
    reason. `like` compares like with like: the difference is then without the mix. `level` is the
    error that the judge's movement between the sides adds.
    """
    asked = int((~np.isnan(a)).sum()), int((~np.isnan(b)).sum())
    change = MetricChange(
        metric=metric,
        segment=segment,
        mean_a=float(np.nanmean(a)) if asked[0] else None,
        mean_b=float(np.nanmean(b)) if asked[1] else None,
        questions_a=asked[0],
        questions_b=asked[1],
        higher_is_better=higher_is_better,
    )
    drop = compare_aligned(a, b)
    if drop is None:
        return change.model_copy(update={"reason": _too_few(*asked)})
    drop = like(drop) if like else drop
    drop = with_movement(drop, level)
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
            "mix": None if drop.mix is None else -drop.mix,
            "mix_tags": list(drop.mix_tags),
        }
    )


def measure_sides(
    aligned: Sequence[Aligned], tags: Sequence[str], levels: Mapping[str, LevelError | None]
) -> tuple[list[MetricChange], list[MetricChange]]:
    """The changes over all rows, and the changes by segment. Their p values are adjusted together.

    `levels` are the errors that the judge's movement adds, by metric.
    """
    whole = [
        measure(
            one.metric,
            one.a,
            one.b,
            higher_is_better=one.higher_is_better,
            like=partial(without_mix, aligned=one),
            level=levels.get(one.metric),
        )
        for one in aligned
    ]
    segments = [
        measure(
            one.metric,
            a,
            b,
            segment=Segment(tag=tag, value=value),
            higher_is_better=one.higher_is_better,
            level=levels.get(one.metric),
        )
        for one in aligned
        for tag in tags
        for value, a, b in one.by_value(tag)
    ]
    controlled = control([*whole, *segments])
    return controlled[: len(whole)], controlled[len(whole) :]


def control(changes: Sequence[MetricChange]) -> list[MetricChange]:
    """The changes with their p values adjusted together (Benjamini-Hochberg)."""
    tested = [one.p_value for one in changes if one.p_value is not None]
    chances = iter(adjust_p_values(tested))
    return [
        one if one.p_value is None else one.model_copy(update={"p_adjusted": next(chances)})
        for one in changes
    ]


def _too_few(questions_a: int, questions_b: int) -> str:
    empty = [letter for letter, asked in (("A", questions_a), ("B", questions_b)) if not asked]
    if empty:
        return f"no row of {' and '.join(empty)} was scored"
    return "less than two questions to compare"
