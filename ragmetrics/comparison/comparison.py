"""Makes the comparison of two sides: the change of each metric, over all rows and by segment.

Where the sides share too few questions for pairs, the change is like for like: the part that is due
to another mix of tags is taken out and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ragmetrics.comparison.changed_questions import find_moved, find_one_sided
from ragmetrics.comparison.sides import Aligned, ScoredSide, align_rows, shared_tags
from ragmetrics.records import (
    Comparison,
    JudgeMovement,
    Manifest,
    MetricChange,
    Segment,
    mix_text,
    movement_text,
)
from ragmetrics.rules import carried_movement, correct_drop, newest_movement
from ragmetrics.stats import Drop, Numbers, adjust_p_values, compare_aligned

LONE = 8
"""Questions of one side alone that are listed, per side."""


def make_comparison(
    a: ScoredSide,
    b: ScoredSide,
    metrics: Sequence[str],
    tags: Sequence[str] | None = (),
    *,
    rows: int,
    refused: Sequence[MetricChange] = (),
    movements: Mapping[str, JudgeMovement | None] | None = None,
) -> Comparison:
    """Compare two sides by metrics that both have, and by the values of some tags; None: of those
    that a night shows.

    `rows` limits the listed questions per metric; 0 lists none. `refused` are the metrics that do
    not compare, with the reason. `movements` give the judge's movement from night to night by
    metric; without them, the newest night of both sides gives it.
    """
    if movements is None:
        movements = {metric: newest_movement(metric, [*a.nights, *b.nights]) for metric in metrics}
    aligned = [align_rows(a.scores[metric], b.scores[metric]) for metric in metrics]
    named = shared_tags(a, b) if tags is None else tags
    whole, segments = measure_sides(aligned, named, a.nights, b.nights, movements)
    moved, moved_rows = find_moved(a, b, aligned, rows)
    lost, gained = find_one_sided(a, b, aligned, LONE if rows else 0)
    return Comparison(
        a=a.about,
        b=b.about,
        metrics=[*whole, *refused],
        segments=segments,
        segments_asked=tags is not None,
        moved=moved,
        rows=moved_rows,
        lost=lost,
        gained=gained,
        notices=[
            *mix_notices(whole),
            *_notices(a, b, tags or (), segments),
            *_moving(a, b, metrics, movements),
        ],
        problems=[*_of_side("before", a.problems), *_of_side("after", b.problems)],
        usage=a.usage + b.usage,
    )


def _notices(
    a: ScoredSide, b: ScoredSide, tags: Sequence[str], segments: Sequence[MetricChange]
) -> list[str]:
    """Notes that qualify the numbers."""
    notes = [*_of_side("before", a.notices), *_of_side("after", b.notices)]
    if a.about.dataset != b.about.dataset:
        notes.append(f"before: data set {a.about.dataset}; after: data set {b.about.dataset}")
    with_rows = {segment.segment.tag for segment in segments if segment.segment}
    notes += [f"no scored row has the tag {tag}" for tag in tags if tag not in with_rows]
    return notes


def _of_side(side: str, texts: Sequence[str]) -> list[str]:
    return [f"{side}: {text}" for text in texts]


def _moving(
    a: ScoredSide,
    b: ScoredSide,
    metrics: Sequence[str],
    movements: Mapping[str, JudgeMovement | None],
) -> list[str]:
    """The judge's movement, for metrics whose sides were judged on different days."""
    by_text: dict[str, list[str]] = {}
    for metric in metrics:
        if a.nights and b.nights and carried_movement(metric, a.nights, b.nights):
            text = movement_text(movements.get(metric) or JudgeMovement(sd=None, nights=0))
            by_text.setdefault(text, []).append(metric)
    return [f"{', '.join(names)}: {text}" for text, names in by_text.items() if text]


def measure(
    metric: str,
    a: Numbers,
    b: Numbers,
    *,
    correct: Callable[[Drop], Drop] | None = None,
    segment: Segment | None = None,
    higher_is_better: bool | None = True,
) -> MetricChange:
    """The change of a metric from A (before) to B (after), by `stats.compare_aligned`: B minus A.

    `a` and `b` are the means of each question, NaN where a side has none. Where lower is better, p
    tests for a rise. With less than two questions to compare, the result has the means and the
    reason. `correct` applies the corrections of the sides.
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
    plain = compare_aligned(a, b)
    if plain is None:
        return change.model_copy(update={"reason": _too_few(*asked)})
    drop = correct(plain) if correct else plain
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
    aligned: Sequence[Aligned],
    tags: Sequence[str],
    before: Sequence[Manifest] = (),
    now: Sequence[Manifest] = (),
    movements: Mapping[str, JudgeMovement | None] = MappingProxyType({}),
) -> tuple[list[MetricChange], list[MetricChange]]:
    """The changes over all rows, and the changes by segment.

    The p values of the metrics are adjusted over the metrics, as a gate's are: what is asked about
    segments changes no result over all rows. Those of the segments are adjusted over all changes.
    `before` and `now` are the runs of both sides, `movements` the judge's movement by metric. A
    segment is one mix, so only its movement is corrected for.
    """

    def change(
        one: Aligned, a: Numbers, b: Numbers, segment: Segment | None = None
    ) -> MetricChange:
        scores = None if segment else one.scores
        return measure(
            one.metric,
            a,
            b,
            correct=lambda drop: correct_drop(
                drop, one.metric, before, now, movements.get(one.metric), scores
            ),
            segment=segment,
            higher_is_better=one.higher_is_better,
        )

    whole = [change(one, one.a, one.b) for one in aligned]
    segments = [
        change(pair, a, b, Segment(tag=tag, value=value))
        for pair in aligned
        for tag in tags
        for value, a, b in pair.by_value(tag)
    ]
    return control(whole), control([*whole, *segments])[len(whole) :]


def control(changes: Sequence[MetricChange]) -> list[MetricChange]:
    """The changes with their p values adjusted together (Benjamini-Hochberg), losses and gains."""
    known = [change.p_value for change in changes]
    gains = [None if p_value is None else 1 - p_value for p_value in known]
    adjusted = zip(changes, adjust_p_values(known), adjust_p_values(gains), strict=True)
    return [
        change.model_copy(update={"p_adjusted": loss, "p_adjusted_gain": gain})
        for change, loss, gain in adjusted
    ]


def _too_few(questions_a: int, questions_b: int) -> str:
    sides = ("before", questions_a), ("after", questions_b)
    if empty := [side for side, asked in sides if not asked]:
        return f"no row was scored {' and '.join(empty)}"
    return "less than two questions to compare"


def mix_notices(changes: Sequence[MetricChange]) -> list[str]:
    """One sentence per metric: the part of its change that is the mix."""
    found = []
    for change in changes:
        if change.mix is None or change.mean_a is None or change.mean_b is None:
            continue
        if text := mix_text(change.mean_a - change.mean_b, -change.mix, change.mix_tags):
            found.append(f"{change.metric}: {text}; the change is like for like, without it")
    return found
