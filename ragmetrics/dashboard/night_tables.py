"""Tables of a night: rows by metric and status, and metrics by the values of each tag."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ragmetrics.dashboard.formatting import listed
from ragmetrics.dashboard.night_status import needing_reader
from ragmetrics.metrics import find_metric
from ragmetrics.records import Manifest, Summary
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
"""Words for the status of a row in a metric; the glossary explains them."""


def found_statuses(manifest: Manifest) -> list[str]:
    """The statuses of a night's rows in a fixed order; unknown statuses come last."""
    found = {status for one in manifest.metrics for status, rows in one.status.items() if rows}
    return [*(name for name in STATUS if name in found), *sorted(found - STATUS.keys())]


def needs(metric: str) -> str:
    """The fields of a row that a metric needs: `retrieved_contexts and reference`."""
    known = find_metric(metric)
    return listed(known.needs if known else ("",)).replace(" + ", " with ").replace(" | ", " or ")


_MOST_VALUES = 50
_MOST_TAGS = 20
_MOST_CELLS = 800
"""Most cells of all tables of a night, so that its page stays small."""
STEPS = (0.05, 0.1, 0.2)
"""How much worse than all rows a cell with one, two or three marks is."""
_Worse: TypeAlias = Collection[tuple[str, str]]
"""Metric and segment, where that is significantly worse than all rows."""


@dataclass(frozen=True)
class Cell:
    """One metric over one value of a tag."""

    summary: Summary
    loss: float
    """How much worse it is than the mean of all rows; negative if it is better."""
    shade: int
    """0 to 3: how bad that is; 0 if it is not significantly worse."""
    before: float | None = None
    """Its mean on the night before; None where no score of that night compares."""


@dataclass(frozen=True)
class SegmentLine:
    """One value of a tag: a cell per metric, None if nothing was scored."""

    value: str
    cells: tuple[Cell | None, ...]

    @property
    def marks(self) -> int:
        """How bad it is: the marks of all its cells."""
        return sum(cell.shade for cell in self.cells if cell)

    @property
    def rows(self) -> int:
        """Rows of the value that were scored by the metric that has most of them."""
        return max((cell.summary.scored for cell in self.cells if cell), default=0)

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
    def marked(self) -> list[SegmentLine]:
        """The lines with a mark."""
        return [line for line in self.lines if line.marks]

    @property
    def quiet(self) -> list[SegmentLine]:
        """The lines without one."""
        return [line for line in self.lines if not line.marks]

    @property
    def low(self) -> int:
        """Values with a mark."""
        return len(self.marked)


def tag_tables(manifest: Manifest, before: Manifest | None = None) -> list[TagTable]:
    """One table per tag with as many of its worst values as fit; the worst tag first, and in it the
    metrics that need a reader first. `before` is the night before, in full.
    """
    tags = list(dict.fromkeys(s.segment.tag for s in manifest.segments if s.segment))[:_MOST_TAGS]
    worse = {(segment.metric, str(segment.segment)) for segment in worse_segments(manifest)}
    room = _MOST_CELLS // max(1, len(tags) * len(manifest.metrics))
    tables = [_table(manifest, before, tag, worse, max(3, min(_MOST_VALUES, room))) for tag in tags]
    return sorted(tables, key=lambda table: -max((line.marks for line in table.lines), default=0))


def _table(
    manifest: Manifest, before: Manifest | None, tag: str, worse: _Worse, most: int
) -> TagTable:
    names = sorted((summary.metric for summary in manifest.metrics), key=needing_reader(manifest))
    then = {(one.metric, str(one.segment)): one for one in (before.segments if before else ())}
    values: dict[str, dict[str, Summary]] = {}
    for summary in manifest.segments:
        if summary.segment and summary.segment.tag == tag and finite(summary.mean) is not None:
            values.setdefault(summary.segment.value, {})[summary.metric] = summary
    metrics = tuple(name for name in names if any(name in found for found in values.values()))
    overall = {s.metric: s.mean for s in manifest.metrics if finite(s.mean) is not None}
    lines = [
        SegmentLine(
            value, tuple(_cell(summaries.get(name), overall, worse, then) for name in metrics)
        )
        for value, summaries in values.items()
    ]
    lines.sort(key=lambda line: (-line.marks, -line.deepest, line.value))
    return TagTable(tag, metrics, tuple(lines[:most]), max(0, len(lines) - most))


def _cell(
    summary: Summary | None,
    overall: dict[str, float | None],
    worse: _Worse,
    then: Mapping[tuple[str, str], Summary],
) -> Cell | None:
    if summary is None or summary.mean is None:
        return None
    whole = overall.get(summary.metric) or 0.0
    loss = round(summary.loss(whole), 9)
    significant = (summary.metric, str(summary.segment)) in worse
    shade = sum(significant and loss >= step for step in STEPS)
    old = then.get((summary.metric, str(summary.segment)))
    compares = old is not None and old.fingerprint == summary.fingerprint
    return Cell(summary, loss, shade, old.mean if old and compares else None)
