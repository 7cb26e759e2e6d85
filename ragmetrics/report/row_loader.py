"""Reads the rows that a night's pages keep from the store.

Of parts only the columns and row groups that are needed are decoded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragmetrics.comparison import LoadScores, moved_contexts, night_before, question_means
from ragmetrics.errors import StoreError
from ragmetrics.model import LogRow, Manifest, question_key
from ragmetrics.report.redacting import redacted
from ragmetrics.report.row_selection import (
    NIGHTS,
    EarlierNights,
    KeptRow,
    RowTable,
    pick_rows,
    unique_keys,
)
from ragmetrics.storage import (
    Files,
    RowLocation,
    RunRef,
    by_shard,
    is_missing,
    read_columns,
    records_at,
    ref_of,
    row_of,
    scored_rows,
    scores_at,
    side_by_side,
)

log = logging.getLogger(__name__)


def load_rows(
    files: Files, manifest: Manifest, earlier: Sequence[Manifest], load: LoadScores
) -> list[KeptRow]:
    """The rows of a night to show, by `pick_rows`, with the same questions on earlier nights.

    `earlier` are the manifests of the nights before, oldest first; `load` reads the scores of a
    night. None where the night's rows are no longer in the store.
    """
    if not manifest.source.rows:
        return []
    ref, metrics = ref_of(manifest), [summary.metric for summary in manifest.metrics]
    try:
        table = _read_table(files, manifest, load)
        lower = {summary.metric for summary in manifest.metrics if not summary.higher_is_better}
        why = pick_rows(table, manifest.worst, _before(manifest, earlier, load), lower)
        scored = scored_rows(files, ref, metrics, by_shard(why))
    except StoreError as error:
        if not is_missing(error):
            raise
        log.warning("%s: its rows are not shown: %s", manifest.date, error)
        return []
    wanted = {place: scored[place] for place in why}
    asked = {place: one.row for place, one in wanted.items()}
    nights = earlier_nights(files, manifest, earlier, asked)
    keys = unique_keys(one.row.id for one in wanted.values())
    return [
        KeptRow(place, key, one, why[place], tuple(n[place] for n in nights if place in n))
        for key, (place, one) in zip(keys, wanted.items(), strict=True)
    ]


def _read_table(files: Files, manifest: Manifest, load: LoadScores) -> RowTable:
    ref, metrics = ref_of(manifest), [summary.metric for summary in manifest.metrics]
    places: list[RowLocation] = []
    ids: list[str] = []
    questions: list[str] = []
    for shard in range(ref.shards):
        own_ids, own_questions = names_of(files, ref, metrics, shard)
        places += [(shard, position) for position in range(len(own_ids))]
        ids += own_ids
        questions += own_questions
    values = {metric: load(manifest, metric).table["value"].to_numpy() for metric in metrics}
    return RowTable(places, ids, questions, values)


def _before(
    manifest: Manifest, earlier: Sequence[Manifest], load: LoadScores
) -> dict[str, dict[str, float]]:
    """By metric the mean of each question on the night before, where that compares."""
    night = night_before(manifest, earlier)
    if night is None:
        return {}
    found = {}
    for now in manifest.metrics:
        then = night.summary(now.metric)
        if then and then.scored and then.fingerprint == now.fingerprint:
            means = question_means(load(night, now.metric))
            found[now.metric] = {str(question): mean for question, mean in means.items()}
    return found


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
