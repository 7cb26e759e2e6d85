"""How many rows of a night each metric scored, and why it did not score the others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from ragmetrics.metrics import metrics
from ragmetrics.model import Manifest, Summary
from ragmetrics.scoring import worse_segments
from ragmetrics.text import finite

STATUS = {
    "scored": "scored",
    "not_applicable": "not applicable",
    "unreadable": "unreadable verdict",
    "refused": "refused by the judge",
    "judge_failed": "judge failed",
    "metric_failed": "metric failed",
    "over_budget": "over budget",
    "not_sampled": "not in the sample",
}
"""Of a row in a metric; the glossary says what each means."""


@dataclass(frozen=True)
class Covered:
    """One metric's rows by status."""

    summary: Summary
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(self.counts)


@dataclass(frozen=True)
class Coverage:
    """The statuses that occur, in a fixed order, and a line per metric."""

    statuses: tuple[str, ...]
    lines: tuple[Covered, ...]


def coverage(manifest: Manifest) -> Coverage:
    """Rows by metric and status; a status that nobody knows here stands last."""
    found = {status for one in manifest.metrics for status, rows in one.status.items() if rows}
    statuses = (*(name for name in STATUS if name in found), *sorted(found - STATUS.keys()))
    lines = (
        Covered(one, tuple(one.status.get(s, 0) for s in statuses)) for one in manifest.metrics
    )
    return Coverage(statuses, tuple(lines))


def needs(metric: str) -> str:
    """The fields of a row that a metric cannot do without: `retrieved_contexts and reference`."""
    known = metrics().get(metric)
    *most, last = known.needs if known else ("",)
    told = f"{', '.join(most)} and {last}" if most else last
    return told.replace(" + ", " with ").replace(" | ", " or ")


MOST_VALUES = 50


MOST_TAGS = 20


MOST_CELLS = 800
"""Of all tables of a night together: its page stays small."""


Worse: TypeAlias = Collection[tuple[str, str]]
"""Metric and segment, of those that are significantly worse than all rows."""


STEPS = (0.05, 0.1, 0.2)
"""How much worse than all rows a cell is that has one, two or three marks."""


@dataclass(frozen=True)
class Cell:
    """One metric over one value of a tag."""

    summary: Summary
    loss: float
    """How much worse than the mean of all rows; below 0 where it is better."""
    shade: int
    """0 to 3: how bad that is; 0 where it is not significantly worse."""


@dataclass(frozen=True)
class SegmentLine:
    """One value of a tag: a cell per metric, None where nothing was scored."""

    value: str
    cells: tuple[Cell | None, ...]

    @property
    def marks(self) -> int:
        """How bad it is: all marks of its cells."""
        return sum(cell.shade for cell in self.cells if cell)

    @property
    def deepest(self) -> float:
        """The largest loss of its cells."""
        return max((cell.loss for cell in self.cells if cell), default=0.0)


@dataclass(frozen=True)
class TagTable:
    """The metrics by the values of one tag, worst value first."""

    tag: str
    metrics: tuple[str, ...]
    lines: tuple[SegmentLine, ...]
    more: int
    """Values left out."""

    @property
    def low(self) -> int:
        """Values with a mark."""
        return sum(line.marks > 0 for line in self.lines)


def tag_tables(manifest: Manifest) -> list[TagTable]:
    """One table per tag, with as many of its worst values as there is room for; the tag with the
    worst value first.
    """
    tags = list(dict.fromkeys(s.segment.tag for s in manifest.segments if s.segment))[:MOST_TAGS]
    worse = {(one.metric, str(one.segment)) for one in worse_segments(manifest)}
    room = MOST_CELLS // max(1, len(tags) * len(manifest.metrics))
    tables = [_table(manifest, tag, worse, max(3, min(MOST_VALUES, room))) for tag in tags]
    return sorted(tables, key=lambda table: -max((line.marks for line in table.lines), default=0))


def _table(manifest: Manifest, tag: str, worse: Worse, most: int) -> TagTable:
    names = [summary.metric for summary in manifest.metrics]
    values: dict[str, dict[str, Summary]] = {}
    for summary in manifest.segments:
        if summary.segment and summary.segment.tag == tag and finite(summary.mean) is not None:
            values.setdefault(summary.segment.value, {})[summary.metric] = summary
    metrics = tuple(name for name in names if any(name in found for found in values.values()))
    overall = {s.metric: s.mean for s in manifest.metrics if finite(s.mean) is not None}
    lines = [
        SegmentLine(value, tuple(_cell(found.get(name), overall, worse) for name in metrics))
        for value, found in values.items()
    ]
    lines.sort(key=lambda line: (-line.marks, -line.deepest, line.value))
    return TagTable(tag, metrics, tuple(lines[:most]), max(0, len(lines) - most))


def _cell(summary: Summary | None, overall: dict[str, float | None], worse: Worse) -> Cell | None:
    if summary is None or summary.mean is None:
        return None
    whole = overall.get(summary.metric) or 0.0
    loss = round(summary.loss(whole), 9)
    sure = (summary.metric, str(summary.segment)) in worse
    return Cell(summary, loss, shade=sum(sure and loss >= step for step in STEPS))
