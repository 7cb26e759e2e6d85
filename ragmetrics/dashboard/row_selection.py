"""Which rows of a night its pages show: the worst, those that fell most, and a sample.

The others are in the store's Parquet files only.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragmetrics.dashboard.formatting import clean
from ragmetrics.records import LogRow, MovedContext, Score, WorstRow
from ragmetrics.storage import RowLocation, ScoredRow

MOST = 500
"""Most rows of one night."""
FELL = 10
"""Rows that fell most, for each metric."""
_LEAST_FALL = 1e-9
_LONGEST_KEY = 200
_MOST_TAG_VALUES = 150

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SelectionReason:
    """One reason for which a row is shown."""

    kind: Literal["worst", "fell", "lost", "sample"]
    metric: str = ""
    """Empty for a row that lost a passage, or is in the sample."""
    value: float | None = None
    before: float | None = None
    """For a row that fell, the mean of its question on the night before."""

    @property
    def fall(self) -> float:
        """How far the row fell."""
        return abs((self.before or 0.0) - (self.value or 0.0)) if self.kind == "fell" else 0.0


LOST = SelectionReason("lost")
SAMPLED = SelectionReason("sample")


@dataclass(frozen=True)
class EarlierNight:
    """The same question on one earlier night."""

    date: date
    index_build: str | None
    values: Mapping[str, float | None]
    """Values by metric, if the same judge gave them in the same way."""
    contexts: tuple[MovedContext, ...]
    """The contexts of both nights; the earlier night is side A."""

    @property
    def changed(self) -> list[MovedContext]:
        """The contexts whose rank or text changed."""
        return [context for context in self.contexts if became(context) != "stayed"]

    @property
    def came(self) -> set[int]:
        """The ranks of the contexts that the earlier night did not retrieve."""
        return {one.rank_b for one in self.contexts if one.rank_b and one.rank_a is None}

    @property
    def words(self) -> str:
        """`2 left, 1 came, 1 moved`."""
        counts = Counter(map(became, self.contexts))
        fates = ("left", "came", "moved", "rewritten")
        words = ", ".join(f"{counts[fate]} {fate}" for fate in fates if counts[fate])
        return words or "the same passages in the same order"


def became(context: MovedContext) -> str:
    """What became of a context: `left`, `came`, `moved`, `rewritten` or `stayed`."""
    if context.rank_b is None:
        return "left"
    if context.rank_a is None:
        return "came"
    if context.rewritten:
        return "rewritten"
    return "stayed" if context.rank_a == context.rank_b else "moved"


@dataclass(frozen=True)
class KeptRow:
    """A row with its scores, the reasons for showing it, and its question on earlier nights."""

    place: RowLocation
    key: str
    """The row's name in addresses: its id, and a number if several rows have that id."""
    scored: ScoredRow
    why: tuple[SelectionReason, ...]
    earlier: tuple[EarlierNight, ...] = ()
    """Newest first."""
    older: tuple[EarlierNight, ...] = ()
    """Nights before those, with values alone."""
    trace: str = ""
    """The address of its trace in a tracing tool; empty if that is not known."""

    @property
    def row(self) -> LogRow:
        """What was logged."""
        return self.scored.row

    @property
    def scores(self) -> Mapping[str, Score]:
        """The scores by metric."""
        return self.scored.scores


def unique_keys(ids: Iterable[str]) -> list[str]:
    """Names of rows in addresses: their ids if those differ, else `a`, `a~2`, `a~3`."""
    repeats: Counter[str] = Counter()
    keys: dict[str, None] = {}
    for row_id in ids:
        key = name = clean(row_id[:_LONGEST_KEY])
        while key in keys:
            repeats[name] += 1
            key = f"{name}~{repeats[name] + 1}"
        keys[key] = None
    return list(keys)


def tag_values(tags: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Tag, value and number of the tags that have more than one value: those that a page filters
    by.
    """
    counts = Counter(tags)
    per_tag = Counter(tag for tag, _ in counts)
    useful = [(item, number) for item, number in counts.items() if per_tag[item[0]] > 1]
    most = sorted(useful, key=lambda one: (-one[1], one[0]))[:_MOST_TAG_VALUES]
    return sorted((tag, value, number) for (tag, value), number in most)


@dataclass(frozen=True)
class RowTable:
    """All rows of a run in order: their places, and their values by metric."""

    places: Sequence[RowLocation]
    ids: Sequence[str]
    questions: Sequence[str]
    """The keys of their questions."""
    values: Mapping[str, Numbers]
    """NaN for a row that was not scored."""


def pick_rows(
    table: RowTable,
    worst: Sequence[WorstRow],
    before: Mapping[str, Mapping[str, float]],
    lower_is_better: Collection[str] = (),
    lost: Collection[RowLocation] = (),
    most: int = MOST,
) -> dict[RowLocation, tuple[SelectionReason, ...]]:
    """The places of the rows to show, with the reasons: worst rows first, then fallen ones, then
    those that `lost` a passage.

    `worst` are the manifest's worst rows. `before` has, by metric, the mean of each question on the
    night before, if it compares. A sample of the other rows fills the room that is left. It is
    drawn by a hash of their ids, so it is the same every time; rows without any score come last.
    """
    why: dict[RowLocation, list[SelectionReason]] = {}
    for lowest in worst:
        reason = SelectionReason("worst", lowest.metric, lowest.value)
        why.setdefault((lowest.shard, lowest.position), []).append(reason)
    for metric, means in before.items():
        for row, reason in _fallen(table, metric, means, metric in lower_is_better):
            why.setdefault(table.places[row], []).append(reason)
    for place in lost:
        why.setdefault(place, []).append(LOST)
    for row in _in_random_order(table):
        if len(why) >= most:
            break
        why.setdefault(table.places[row], [SAMPLED])
    return {place: tuple(reasons) for place, reasons in list(why.items())[:most]}


def _fallen(
    table: RowTable, metric: str, before: Mapping[str, float], lower_is_better: bool
) -> list[tuple[int, SelectionReason]]:
    """One row of each question that fell furthest, the largest fall first."""
    now = table.values[metric]
    then = np.array([before.get(question, np.nan) for question in table.questions])
    loss = (now - then) if lower_is_better else (then - now)
    candidates = np.flatnonzero(np.nan_to_num(loss, nan=0.0) > _LEAST_FALL)
    reasons: dict[str, tuple[int, SelectionReason]] = {}
    for row in candidates[np.argsort(-loss[candidates], kind="stable")].tolist():
        if len(reasons) >= FELL:
            break
        reason = SelectionReason("fell", metric, float(now[row]), float(then[row]))
        reasons.setdefault(table.questions[row], (row, reason))
    return list(reasons.values())


def _in_random_order(table: RowTable) -> list[int]:
    """All rows by a hash of their ids, rows with a score first."""
    scored = np.zeros(len(table.places), dtype=bool)
    for values in table.values.values():
        scored |= ~np.isnan(values)
    ids = (one.encode("utf-8", "surrogatepass") for one in table.ids)
    marks = [int.from_bytes(hashlib.blake2b(one, digest_size=7).digest()) for one in ids]
    order: list[int] = np.lexsort((np.array(marks, dtype=np.int64), ~scored)).tolist()
    return order
