"""Records of a change of judge: what the old and the new judge say of the same rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.judging import JudgeName

if TYPE_CHECKING:
    from ragmetrics.records.manifest import Manifest
    from ragmetrics.records.score import Summary


class JudgedTwice(Record):
    """A row with its values by the old and by the new judge."""

    question: str
    old: float
    new: float
    tags: dict[str, str] = Field(default_factory=dict)


class JudgeOffset(Record):
    """How much higher the new judge scores a metric than the old one, over the same questions."""

    metric: str
    replaced: str
    """Fingerprint of the scores of the old judge."""
    fingerprint: str
    """Fingerprint of the scores of the new judge."""
    offset: float
    """Mean of the new values less the old ones, each question with one vote."""
    low: float
    high: float
    error: float
    freedom: float
    questions: int
    correlation: float | None = None
    """Spearman's rank correlation of both judges over the questions; None where one gives all
    questions the same value."""
    apart: str = ""
    """Why the judges differ by more than an offset, so that the baseline begins again; empty: they
    do not."""
    differences: dict[str, float] = Field(default_factory=dict, exclude=True, repr=False)
    """The old value less the new one of each question; read from the rows of the bridge."""


class JudgeBridge(Record):
    """The change from an old judge to that of the night, over the nights that both judged."""

    replaced: JudgeName
    """Name of the old judge."""
    since: date
    """First night of the new judge."""
    runs: dict[date, str] = Field(default_factory=dict)
    """The runs whose rows both judged, by night."""
    offsets: list[JudgeOffset] = Field(default_factory=list)
    unpaired: list[str] = Field(default_factory=list)
    """Metrics that changed with the judge, and of which both have verdicts on less than two
    questions."""
    problem: str = ""
    """Why the old judge gave no further verdicts tonight."""

    @property
    def apart(self) -> list[str]:
        """The metrics that do not compare with nights of the old judge, each with the reason."""
        return [
            *(f"{one.metric}: {one.apart}" for one in self.offsets if one.apart),
            *(f"{metric}: no verdicts of both judges" for metric in self.unpaired),
        ]

    @property
    def broken(self) -> str:
        """The end of a sentence on scores that do not compare; empty where all metrics do."""
        if not self.apart:
            return ""
        return f"; the judge {self.replaced} was replaced on {self.since}: {', '.join(self.apart)}"


def across_change(nights: Sequence[Manifest], bridge: JudgeBridge | None) -> list[Manifest]:
    """Nights whose numbers by an old judge are moved by the offset, so that they compare with those
    of the judge that replaced it; other nights as they are.
    """
    offsets = {one.replaced: one for one in (bridge.offsets if bridge else ()) if not one.apart}
    return [_moved_night(night, offsets) for night in nights]


def _moved_night(night: Manifest, offsets: Mapping[str, JudgeOffset]) -> Manifest:
    if not any(one.fingerprint in offsets for one in night.metrics):
        return night
    moved = {
        name: [_moved(one, offsets.get(one.fingerprint)) for one in getattr(night, name)]
        for name in ("metrics", "segments")
    }
    return night.model_copy(update=moved)


def _moved(summary: Summary, offset: JudgeOffset | None) -> Summary:
    """A summary in the level of the new judge; its interval has the error of the offset too."""
    if offset is None or summary.metric != offset.metric:
        return summary
    by, mean = offset.offset, summary.mean
    update: dict[str, Any] = {"fingerprint": offset.fingerprint, "moved_by": offset}
    if mean is not None:
        low, high = summary.low, summary.high
        below = None if low is None else math.hypot(mean - low, by - offset.low)
        above = None if high is None else math.hypot(high - mean, offset.high - by)
        update["mean"] = mean + by
        update["low"] = None if below is None else mean + by - below
        update["high"] = None if above is None else mean + by + above
    update["by_tag"] = {
        tag: {
            value: cell.model_copy(update={"mean": cell.mean + by}) for value, cell in cells.items()
        }
        for tag, cells in summary.by_tag.items()
    }
    return summary.model_copy(update=update)
