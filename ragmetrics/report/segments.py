"""Scores by tag: where a metric is lower than elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.records import Manifest, Summary
from ragmetrics.report.words import finite

MOST_VALUES = 50
MOST_TAGS = 20
MOST_CELLS = 800
"""Of all tables of a night together: its page stays small."""
_STEPS = (0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Cell:
    """One metric over one value of a tag."""

    summary: Summary
    shade: int
    """0 to 3: how much worse than the mean of all rows; 0 where the interval reaches it."""
    worst: bool


@dataclass(frozen=True)
class Line:
    """One value of a tag: a cell per metric, None where nothing was scored."""

    value: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class TagTable:
    """The metrics by the values of one tag, worst value first."""

    tag: str
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    more: int
    """Values left out."""


def tag_tables(manifest: Manifest) -> list[TagTable]:
    """One table per tag, with as many of its worst values as there is room for."""
    tags = list(dict.fromkeys(s.segment.tag for s in manifest.segments if s.segment))[:MOST_TAGS]
    room = MOST_CELLS // max(1, len(tags) * len(manifest.metrics))
    return [_table(manifest, tag, max(3, min(MOST_VALUES, room))) for tag in tags]


def _table(manifest: Manifest, tag: str, most: int) -> TagTable:
    names = [summary.metric for summary in manifest.metrics]
    values: dict[str, dict[str, Summary]] = {}
    for summary in manifest.segments:
        if summary.segment and summary.segment.tag == tag and finite(summary.mean) is not None:
            values.setdefault(summary.segment.value, {})[summary.metric] = summary
    metrics = tuple(name for name in names if any(name in found for found in values.values()))
    overall = {s.metric: s.mean for s in manifest.metrics if finite(s.mean) is not None}
    floors = {name: _floor([v[name] for v in values.values() if name in v]) for name in metrics}
    lines = [
        Line(value, tuple(_cell(found.get(name), overall, floors) for name in metrics))
        for value, found in values.items()
    ]
    lines.sort(key=lambda line: (-sum(c.shade for c in line.cells if c), line.value))
    return TagTable(tag, metrics, tuple(lines[:most]), max(0, len(lines) - most))


def _cell(
    summary: Summary | None, overall: dict[str, float | None], floors: dict[str, float | None]
) -> Cell | None:
    if summary is None or summary.mean is None:
        return None
    whole = overall.get(summary.metric) or 0.0
    loss = round(summary.loss(whole), 9) if summary.surely_worse_than(whole) else 0.0
    return Cell(
        summary,
        shade=sum(loss >= step for step in _STEPS),
        worst=summary.mean == floors[summary.metric],
    )


def _floor(summaries: Sequence[Summary]) -> float | None:
    """The worst mean, if there is more than one to choose from."""
    means = {s.mean for s in summaries if s.mean is not None}
    if len(means) < 2:
        return None
    return min(means) if summaries[0].higher_is_better else max(means)
