"""Runs by reference, and the rows and scores of a run's shards by location."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from ragmetrics.errors import StoreError
from ragmetrics.records import LogRow, Manifest, Record, Score
from ragmetrics.storage.files import Files
from ragmetrics.storage.parts import StoredPart, row_of, score_of
from ragmetrics.storage.retry import is_missing

RUNS = "runs"
"""The folder of the manifests."""
RowLocation: TypeAlias = tuple[int, int]
"""The shard of a row, and its position in the shard."""


class RunRef(Record):
    """A reference to one run of one night. Tasks pass it to each other."""

    date: date
    run: str
    shards: int

    def folder(self, kind: str) -> str:
        """The folder of one kind of the run's files, such as `rows/dt=2026-11-19/run=ab12`."""
        return f"{kind}/dt={self.date.isoformat()}/run={self.run}"

    @classmethod
    def of(cls, manifest: Manifest) -> RunRef:
        """The reference to a manifest's run."""
        return cls(date=manifest.date, run=manifest.run, shards=manifest.shards)

    @property
    def manifest(self) -> str:
        """The path of the run's manifest."""
        return f"{self.folder(RUNS)}.json"

    def rows(self, shard: int) -> str:
        """The path of a shard's rows."""
        return f"{self.folder('rows')}/shard-{shard:03d}.parquet"

    def cheap(self, metric: str, shard: int) -> str:
        """The path of a shard's cheap scores by one metric, of active sampling."""
        return f"{self.folder('rows')}/cheap/metric={metric}/shard-{shard:03d}.parquet"

    def scores(self, metric: str, shard: int) -> str:
        """The path of a shard's scores by one metric."""
        return f"{self.folder('scores')}/metric={metric}/shard-{shard:03d}.parquet"


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its score by every metric of the run."""

    row: LogRow
    scores: Mapping[str, Score]


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
            found[metric] = StoredPart(files, ref.scores(metric, shard)).at(positions, columns)
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
        part = StoredPart(files, ref.rows(shard))
        rows = part.at(positions)
        with part.reading():
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
