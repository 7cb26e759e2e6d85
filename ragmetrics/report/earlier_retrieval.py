"""The same question on an earlier night: what was retrieved then, held against what is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from ragmetrics.model import MovedContext

NIGHTS = 3
"""Earlier nights that a row is held against."""


def became(one: MovedContext) -> str:
    """What became of a context: `left`, `came`, `moved`, `rewritten` or `stayed`."""
    if one.rank_b is None:
        return "left"
    if one.rank_a is None:
        return "came"
    if one.rewritten:
        return "rewritten"
    return "stayed" if one.rank_a == one.rank_b else "moved"


@dataclass(frozen=True)
class EarlierNights:
    """One earlier night of a question."""

    date: date
    index_build: str | None
    values: Mapping[str, float | None]
    """By metric, those that the same judge gave in the same way."""
    contexts: tuple[MovedContext, ...]
    """Of then and of now: then is side A."""

    @property
    def changed(self) -> list[MovedContext]:
        """The contexts that do not stand where they stood, or not with the same text."""
        return [one for one in self.contexts if became(one) != "stayed"]

    @property
    def came(self) -> set[int]:
        """The ranks, now, of the contexts that were not there then."""
        return {one.rank_b for one in self.contexts if one.rank_b and one.rank_a is None}

    @property
    def words(self) -> str:
        """`2 left, 1 came, 1 moved`."""
        fates = [became(one) for one in self.contexts]
        counted = ((fates.count(fate), fate) for fate in ("left", "came", "moved", "rewritten"))
        told = ", ".join(f"{count} {fate}" for count, fate in counted if count)
        return told or "the same contexts in the same order"
