"""Where a judge is worse than elsewhere: its agreement by language, run and tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.model import Agreement, Calibration, Figure, FigureName

MOST_TAGS = 6
_STEPS = (0.0, 0.1, 0.2)
_RANKS: FigureName = "auc"
_AGREES: FigureName = "kappa_quadratic"


@dataclass(frozen=True)
class SegmentCell:
    """One metric over one value of a tag."""

    agreement: Agreement
    shade: int
    """0 to 3: how far its AUC is significantly below that of all rows."""

    @property
    def auc(self) -> Figure:
        """How well the judge ranks there."""
        return self.agreement.figures.get(_RANKS, Figure())

    @property
    def kappa(self) -> Figure:
        """How far the judge agrees there."""
        return self.agreement.figures.get(_AGREES, Figure())


@dataclass(frozen=True)
class SegmentTable:
    """The metrics by the values of one tag; None where there were too few units."""

    tag: str
    metrics: tuple[str, ...]
    lines: tuple[tuple[str, tuple[SegmentCell | None, ...]], ...]


def segment_tables(calibration: Calibration) -> list[SegmentTable]:
    """One table per tag, the languages first."""
    tags: dict[str, dict[str, dict[str, SegmentCell]]] = {}
    for measured in calibration.metrics:
        for one in measured.segments:
            if one.segment and measured.overall:
                values = tags.setdefault(one.segment.tag, {})
                cell = SegmentCell(one, _shade(one, measured.overall))
                values.setdefault(one.segment.value, {})[measured.metric] = cell
    ordered = sorted(tags, key=lambda tag: (tag != "language", tag))[:MOST_TAGS]
    names = [one.metric for one in calibration.metrics]
    return [_table(tag, tags[tag], names) for tag in ordered]


def _table(
    tag: str, values: dict[str, dict[str, SegmentCell]], names: Sequence[str]
) -> SegmentTable:
    metrics = tuple(name for name in names if any(name in cells for cells in values.values()))
    lines = tuple(
        (value, tuple(cells.get(name) for name in metrics))
        for value, cells in sorted(values.items())
    )
    return SegmentTable(tag, metrics, lines)


def _shade(one: Agreement, overall: Agreement) -> int:
    here, whole = one.figures.get(_RANKS, Figure()), overall.figures.get(_RANKS, Figure())
    if None in (here.high, here.value, whole.value) or (here.high or 0) >= (whole.value or 0):
        return 0
    return sum((whole.value or 0) - (here.value or 0) >= step for step in _STEPS)
