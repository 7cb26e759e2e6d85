"""Makes the comparison of two sides from their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.calibration import carried_movement, level_error, newest_movement
from ragmetrics.comparison.alignment import align_rows
from ragmetrics.comparison.changed_questions import find_moved, find_one_sided
from ragmetrics.comparison.measure import measure_sides
from ragmetrics.comparison.question_mix import mix_notices
from ragmetrics.comparison.side_scores import ScoredSide
from ragmetrics.model import Comparison, JudgeMovement, MetricChange, movement_text

LONE = 8
"""Questions of one side alone that are listed, per side."""


def make_comparison(
    a: ScoredSide,
    b: ScoredSide,
    metrics: Sequence[str],
    tags: Sequence[str] = (),
    *,
    rows: int,
    refused: Sequence[MetricChange] = (),
    movements: Mapping[str, JudgeMovement | None] | None = None,
) -> Comparison:
    """Compare two sides by metrics that both have, and by the values of some tags.

    `rows` limits the listed questions per metric; 0 lists none. `refused` are the metrics that do
    not compare, with the reason. `movements` give the judge's movement from night to night by
    metric; without them, the newest night of both sides gives it.
    """
    if movements is None:
        movements = {one: newest_movement(one, [*a.nights, *b.nights]) for one in metrics}
    levels = {one: level_error(movements.get(one), one, a.nights, b.nights) for one in metrics}
    aligned = [align_rows(a.scores[metric], b.scores[metric]) for metric in metrics]
    whole, segments = measure_sides(aligned, tags, levels)
    moved, moved_rows = find_moved(a, b, aligned, rows)
    lost, gained = find_one_sided(a, b, aligned, LONE if rows else 0)
    return Comparison(
        a=a.about,
        b=b.about,
        metrics=[*whole, *refused],
        segments=segments,
        moved=moved,
        rows=moved_rows,
        lost=lost,
        gained=gained,
        notices=[
            *mix_notices(whole),
            *_notices(a, b, tags, segments),
            *_moving(a, b, metrics, movements),
        ],
        problems=[*(f"A: {one}" for one in a.problems), *(f"B: {one}" for one in b.problems)],
        usage=a.usage + b.usage,
    )


def _notices(
    a: ScoredSide, b: ScoredSide, tags: Sequence[str], segments: Sequence[MetricChange]
) -> list[str]:
    """Notes on the numbers."""
    notes = [f"{letter}: {one}" for letter, side in (("A", a), ("B", b)) for one in side.notices]
    if a.about.dataset != b.about.dataset:
        notes.append(f"A is from the data set {a.about.dataset}, B from {b.about.dataset}")
    with_rows = {one.segment.tag for one in segments if one.segment}
    notes += [f"no scored row has the tag {tag}" for tag in tags if tag not in with_rows]
    return notes


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
