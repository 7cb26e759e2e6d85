"""Reads single records of parts. Only the row groups that contain them are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ragmetrics.errors import StoreError
from ragmetrics.storage.files import Files
from ragmetrics.storage.retry import is_missing
from ragmetrics.storage.shards import RunRef, ScoredRow, open_part, reading_part, row_of, score_of

RowLocation: TypeAlias = tuple[int, int]
"""The shard of a row, and its position in the shard."""


def records_at(
    files: Files, path: str, positions: Collection[int], columns: Sequence[str] | None = None
) -> dict[int, dict[str, Any]]:
    """The records at some positions of a part, with all or some columns."""
    found: dict[int, dict[str, Any]] = {}
    wanted, start = sorted(positions), 0
    with open_part(files, path) as part:
        for number in range(part.num_row_groups):
            end = start + part.metadata.row_group(number).num_rows
            here = [position for position in wanted if start <= position < end]
            if here:
                group = part.read_row_group(number, columns=columns)
                taken = group.take(pa.array([position - start for position in here]))
                found.update(zip(here, taken.to_pylist(), strict=True))
            start = end
    return found


def scores_at(
    files: Files,
    ref: RunRef,
    metrics: Sequence[str],
    shard: int,
    positions: Collection[int],
    columns: Sequence[str] | None = None,
) -> dict[str, dict[int, dict[str, Any]]]:
    """Scores at some positions of a shard, by metric. A metric without its part is left out."""
    found = {}
    for metric in metrics:
        try:
            found[metric] = records_at(files, ref.scores(metric, shard), positions, columns)
        except StoreError as error:
            if not is_missing(error):
                raise
    return found


def scored_rows(
    files: Files, ref: RunRef, metrics: Sequence[str], wanted: Mapping[int, Collection[int]]
) -> dict[RowLocation, ScoredRow]:
    """The rows at some locations, `{shard: positions}`, with their scores."""
    found: dict[RowLocation, ScoredRow] = {}
    for shard, positions in wanted.items():
        scores = scores_at(files, ref, metrics, shard, positions)
        rows = records_at(files, ref.rows(shard), positions)
        with reading_part(files, ref.rows(shard)):
            for position, record in rows.items():
                of_row = {name: score_of(of_metric[position]) for name, of_metric in scores.items()}
                found[shard, position] = ScoredRow(row_of(record), of_row)
    return found


def by_shard(places: Collection[RowLocation]) -> dict[int, set[int]]:
    """Group locations as `{shard: positions}`."""
    found: dict[int, set[int]] = {}
    for shard, position in places:
        found.setdefault(shard, set()).add(position)
    return found
