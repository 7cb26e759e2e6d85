"""Which rows of a night are kept for its pages: the worst, those that fell most, and a sample.

All others stay in the store's Parquet files alone.
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

from ragmetrics.model import LogRow, MovedContext, Score, WorstRow
from ragmetrics.report.formatting import clean
from ragmetrics.storage import RowLocation, ScoredRow

MOST = 500
"""Rows of one night."""
FELL = 10
"""Rows that fell most, of each metric."""
_LEAST_FALL = 1e-9
_LONGEST_KEY = 200

Kind: TypeAlias = Literal["worst", "fell", "sample"]
Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class SelectionReason:
    """One reason for which a row is kept."""

    kind: Kind
    metric: str = ""
    """None of a sampled row."""
    value: float | None = None
    before: float | None = None
    """Of a row that fell: the mean of its question the night before."""


SAMPLED = SelectionReason("sample")


@dataclass(frozen=True)
class KeptRow:
    """A row with its scores, why it is kept, and the same question on earlier nights."""

    place: RowLocation
    key: str
    """Names it in addresses: its id, and of several with one id which of them it is."""
    scored: ScoredRow
    why: tuple[SelectionReason, ...]
    earlier: tuple[EarlierNights, ...] = ()
    """Newest first."""

    @property
    def row(self) -> LogRow:
        """What was logged."""
        return self.scored.row

    @property
    def scores(self) -> Mapping[str, Score]:
        """By metric."""
        return self.scored.scores


def unique_keys(ids: Iterable[str]) -> list[str]:
    """What names rows in addresses: their ids where those differ, else `a`, `a~2`, `a~3`."""
    repeats: Counter[str] = Counter()
    keys: dict[str, None] = {}
    for one in ids:
        key = name = clean(one[:_LONGEST_KEY])
        while key in keys:
            repeats[name] += 1
            key = f"{name}~{repeats[name] + 1}"
        keys[key] = None
    return list(keys)


@dataclass(frozen=True)
class RowTable:
    """Of all rows of a run, in order: where they stand, and by metric their values."""

    places: Sequence[RowLocation]
    ids: Sequence[str]
    questions: Sequence[str]
    """Their keys."""
    values: Mapping[str, Numbers]
    """NaN where a row was not scored."""


def pick_rows(
    table: RowTable,
    worst: Sequence[WorstRow],
    before: Mapping[str, Mapping[str, float]],
    lower_is_better: Collection[str] = (),
    most: int = MOST,
) -> dict[RowLocation, tuple[SelectionReason, ...]]:
    """The places of the rows to keep, with the reasons: worst rows first, then fallen ones.

    `worst` are those that the manifest names; `before` is by metric the mean of each question in
    the night before that compares. What room is left goes to a sample of the other rows, drawn by
    a hash of their ids, so that it is the same every time; rows without any score come last.
    """
    found: dict[RowLocation, list[SelectionReason]] = {}
    for one in worst:
        reason = SelectionReason("worst", one.metric, one.value)
        found.setdefault((one.shard, one.position), []).append(reason)
    for metric, means in before.items():
        for row, reason in _fallen(table, metric, means, metric in lower_is_better):
            found.setdefault(table.places[row], []).append(reason)
    for row in _in_random_order(table):
        if len(found) >= most:
            break
        found.setdefault(table.places[row], [SAMPLED])
    return {place: tuple(reasons) for place, reasons in list(found.items())[:most]}


def _fallen(
    table: RowTable, metric: str, before: Mapping[str, float], lower_is_better: bool
) -> list[tuple[int, SelectionReason]]:
    """The rows of the questions that fell furthest, one of each, furthest first."""
    now = table.values[metric]
    then = np.array([before.get(question, np.nan) for question in table.questions])
    loss = (now - then) if lower_is_better else (then - now)
    candidates = np.flatnonzero(np.nan_to_num(loss, nan=0.0) > _LEAST_FALL)
    found: dict[str, tuple[int, SelectionReason]] = {}
    for row in candidates[np.argsort(-loss[candidates], kind="stable")].tolist():
        if len(found) >= FELL:
            break
        reason = SelectionReason("fell", metric, float(now[row]), float(then[row]))
        found.setdefault(table.questions[row], (row, reason))
    return list(found.values())


def _in_random_order(table: RowTable) -> list[int]:
    """All rows by a hash of their ids, those with a score first."""
    scored = np.zeros(len(table.places), dtype=bool)
    for values in table.values.values():
        scored |= ~np.isnan(values)
    ids = (one.encode("utf-8", "surrogatepass") for one in table.ids)
    marks = [int.from_bytes(hashlib.blake2b(one, digest_size=7).digest()) for one in ids]
    order: list[int] = np.lexsort((np.array(marks, dtype=np.int64), ~scored)).tolist()
    return order


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
