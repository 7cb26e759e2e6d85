"""Finds the questions of a night's rows on the nights before it, by their hashes in the store.

Of parts only the columns and row groups that are needed are decoded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragmetrics.comparison import moved_contexts
from ragmetrics.errors import StoreError
from ragmetrics.model import LogRow, Manifest, question_key
from ragmetrics.report.redacting import redacted
from ragmetrics.report.row_selection import NIGHTS, EarlierNights
from ragmetrics.storage import (
    Files,
    RowLocation,
    RunRef,
    by_shard,
    read_columns,
    records_at,
    ref_of,
    row_of,
    scores_at,
    side_by_side,
)

log = logging.getLogger(__name__)
_ROW_COLUMNS = ["id", "user_input", "retrieved_contexts", "retrieved_context_ids", "index_build"]


def earlier_nights(
    files: Files, later: Manifest, earlier: Sequence[Manifest], asked: Mapping[RowLocation, LogRow]
) -> list[dict[RowLocation, EarlierNights]]:
    """What the newest of the nights before, newest first, have of the questions of some rows."""
    newest = [_Night(files, night, later) for night in reversed(earlier[-NIGHTS:])]
    return side_by_side(files, lambda night: night.find(asked), newest)


def names_of(
    files: Files, ref: RunRef, metrics: Sequence[str], shard: int
) -> tuple[list[str], list[str]]:
    """The ids of a shard's rows and the keys of their questions."""
    for metric in metrics:
        if files.exists(ref.scores(metric, shard)):
            table = read_columns(files, ref.scores(metric, shard), ["id", "question"])
            return table["id"].to_pylist(), table["question"].to_pylist()
    table = read_columns(files, ref.rows(shard), ["id", "user_input"])
    return table["id"].to_pylist(), [question_key(one) for one in table["user_input"].to_pylist()]


@dataclass(frozen=True)
class _Night:
    """An earlier night, to be asked about questions of a later one."""

    files: Files
    night: Manifest
    later: Manifest

    def find(self, asked: Mapping[RowLocation, LogRow]) -> dict[RowLocation, EarlierNights]:
        """Of rows of the later night, those whose questions this one has; none where its rows
        are gone.
        """
        try:
            return self._find(asked)
        except StoreError as error:
            if error.transient:
                raise
            log.warning("%s is not compared with %s: %s", self.later.date, self.night.date, error)
            return {}

    def _find(self, asked: Mapping[RowLocation, LogRow]) -> dict[RowLocation, EarlierNights]:
        there = self._places(asked)
        ref, metrics = ref_of(self.night), self._comparable()
        then: dict[RowLocation, tuple[LogRow, dict[str, float | None]]] = {}
        for shard, positions in by_shard(list(there.values())).items():
            values = scores_at(self.files, ref, metrics, shard, positions, ["value"])
            found = records_at(self.files, ref.rows(shard), positions, _ROW_COLUMNS)
            for position, record in found.items():
                of_row = {metric: own[position]["value"] for metric, own in values.items()}
                then[shard, position] = row_of(record), of_row
        return {place: self._earlier(asked[place], *then[at]) for place, at in there.items()}

    def _places(self, asked: Mapping[RowLocation, LogRow]) -> dict[RowLocation, RowLocation]:
        """Where each question stands here: the row of the same id, else the first."""
        keys = {place: row.question_key for place, row in asked.items()}
        wanted = set(keys.values())
        first: dict[str, RowLocation] = {}
        by_id: dict[tuple[str, str], RowLocation] = {}
        ref, metrics = ref_of(self.night), [summary.metric for summary in self.night.metrics]
        for shard in range(ref.shards):
            ids, questions = names_of(self.files, ref, metrics, shard)
            for position, question in enumerate(questions):
                if question in wanted:
                    first.setdefault(question, (shard, position))
                    by_id.setdefault((question, ids[position]), (shard, position))
        return {
            place: by_id.get((key, asked[place].id), first[key])
            for place, key in keys.items()
            if key in first
        }

    def _comparable(self) -> list[str]:
        return [
            now.metric
            for now in self.later.metrics
            if (then := self.night.summary(now.metric)) and then.fingerprint == now.fingerprint
        ]

    def _earlier(
        self, now: LogRow, then: LogRow, values: Mapping[str, float | None]
    ) -> EarlierNights:
        contexts = moved_contexts(then, now)
        if self.night.redacts:
            contexts = [redacted(one) for one in contexts]
        return EarlierNights(self.night.date, then.index_build, values, tuple(contexts))
