"""The view of lost passages: a bar and a table of stages, and each passage with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragmetrics.records import STAGES, LostPassage, LostPassages, Stage, StageShare, stage_words
from ragmetrics.storage import RowLocation

MOST_SHOWN = 30
"""Passages on a page; the record has more."""
_SEGMENTS = 6


@dataclass(frozen=True)
class BarPart:
    """One stage in the bar, in hundredths of its width."""

    stage: Stage
    start: float
    width: float


@dataclass(frozen=True)
class StageLine:
    """One stage in the table."""

    share: StageShare
    words: str
    segments: list[StageShare]
    """Segments in which the stage is significant."""


@dataclass(frozen=True)
class PassageLine:
    """One lost passage."""

    passage: LostPassage
    words: str
    link: str
    """The question's row on the page of rows; empty if it is not kept."""


@dataclass(frozen=True)
class LostPassagesView:
    """What the section shows."""

    found: LostPassages
    bar: list[BarPart]
    lines: list[StageLine]
    passages: list[PassageLine]

    @property
    def more(self) -> int:
        """Lost passages that are not shown."""
        return self.found.lost - len(self.passages)


def lost_passages_view(
    lost: LostPassages | None, links: Mapping[RowLocation, str] | None = None
) -> LostPassagesView | None:
    """The view; None where nothing was lost. `links` are the addresses of kept rows."""
    if lost is None or not lost.lost:
        return None
    known = links or {}
    return LostPassagesView(
        lost,
        _bar(lost.stages),
        [_line(lost, stage) for stage in lost.stages],
        [_passage(passage, known) for passage in lost.passages[:MOST_SHOWN]],
    )


def _bar(stages: Sequence[StageShare]) -> list[BarPart]:
    order = list(STAGES)
    total = sum(stage.passages for stage in stages) or 1
    parts, start = [], 0.0
    for share in sorted(stages, key=lambda one: order.index(one.stage)):
        width = 100 * share.passages / total
        parts.append(BarPart(share.stage, round(start, 2), round(width, 2)))
        start += width
    return parts


def _line(found: LostPassages, share: StageShare) -> StageLine:
    own = [passage for passage in found.passages if passage.stage == share.stage]
    proven = sum(one.proven for one in own) * 2 >= len(own)
    segments = [segment for segment in found.segments if segment.stage == share.stage]
    return StageLine(share, stage_words(share.stage, proven=proven), segments[:_SEGMENTS])


def _passage(one: LostPassage, links: Mapping[RowLocation, str]) -> PassageLine:
    place = (one.shard, one.position)
    link = "" if None in place else links.get((one.shard or 0, one.position or 0), "")
    return PassageLine(one, stage_words(one.stage, proven=one.proven), link)
