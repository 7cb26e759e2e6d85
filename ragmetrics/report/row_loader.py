"""Reads the rows that a night's pages keep from the store.

Of parts only the columns and row groups that are needed are decoded.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ragmetrics.comparison import LoadScores, night_before, question_means
from ragmetrics.errors import StoreError
from ragmetrics.model import Manifest
from ragmetrics.report.row_history import earlier_nights, names_of
from ragmetrics.report.row_selection import KeptRow, RowTable, pick_rows, unique_keys
from ragmetrics.storage import Files, RowLocation, by_shard, is_missing, ref_of, scored_rows

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
