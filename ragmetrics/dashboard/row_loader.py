"""Reads the rows that a night's pages show, and the same questions on the nights before.

It decodes only the columns and row groups that it needs. Questions are found by their hashes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from ragmetrics.comparison import LoadScores, moved_contexts, night_before, question_means
from ragmetrics.dashboard.lost_passages_view import MOST_SHOWN
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.row_selection import (
    EarlierNight,
    KeptRow,
    RowTable,
    pick_rows,
    unique_keys,
)
from ragmetrics.errors import StoreError
from ragmetrics.records import LogRow, Manifest, question_key, trace_address
from ragmetrics.storage import (
    Files,
    RowLocation,
    RunRef,
    StoredPart,
    by_shard,
    is_missing,
    row_of,
    scored_rows,
)

_NIGHTS = 3
"""Earlier nights whose contexts a row is compared with."""
_HISTORY = 6
"""Earlier nights whose values are shown beside those of tonight."""
_ROW_COLUMNS = ["id", "user_input", "retrieved_contexts", "retrieved_context_ids", "index_build"]
log = logging.getLogger(__name__)


def load_rows(
    files: Files, manifest: Manifest, earlier: Sequence[Manifest], load: LoadScores
) -> list[KeptRow]:
    """The rows that `pick_rows` chooses, with the same questions on earlier nights.

    `earlier` are the manifests of the nights before, oldest first; `load` reads the scores of a
    night. Empty if the night's rows are no longer in the store.
    """
    if not manifest.source.rows:
        return []
    ref, metrics = RunRef.of(manifest), [summary.metric for summary in manifest.metrics]
    try:
        table = _read_table(files, manifest, load)
        lower = {summary.metric for summary in manifest.metrics if not summary.higher_is_better}
        before = _means_before(manifest, earlier, load)
        why = pick_rows(table, manifest.worst, before, lower, _lost_rows(manifest))
        scored = scored_rows(files, ref, metrics, by_shard(why))
    except StoreError as error:
        if not is_missing(error):
            raise
        log.warning("%s: its rows are not shown: %s", manifest.date, error)
        return []
    asked = {place: scored[place].row for place in why}
    newest = list(reversed(earlier[-_HISTORY:]))
    in_full = {night.date for night in newest[:_NIGHTS]}
    nights = files.side_by_side(
        lambda night: _find(files, night, manifest, asked, in_full=night.date in in_full), newest
    )

    def kept(key: str, place: RowLocation) -> KeptRow:
        then = [night[place] for night in nights if place in night]
        compared = tuple(night for night in then if night.date in in_full)
        return KeptRow(
            place,
            key,
            scored[place],
            why[place],
            compared,
            tuple(then[len(compared) :]),
            trace_address(manifest.settings.get("trace_url"), asked[place]),
        )

    return list(map(kept, unique_keys(row.id for row in asked.values()), asked))


def _lost_rows(manifest: Manifest) -> list[RowLocation]:
    """The rows of the questions that lost the first passages of the list."""
    passages = manifest.lost_passages.passages if manifest.lost_passages else []
    places = ((passage.shard, passage.position) for passage in passages[:MOST_SHOWN])
    return list(dict.fromkeys((a, b) for a, b in places if a is not None and b is not None))


def _read_table(files: Files, manifest: Manifest, load: LoadScores) -> RowTable:
    ref, metrics = RunRef.of(manifest), [summary.metric for summary in manifest.metrics]
    places: list[RowLocation] = []
    ids: list[str] = []
    questions: list[str] = []
    for shard in range(ref.shards):
        own_ids, own_questions = _names_of(files, ref, metrics, shard)
        places += [(shard, position) for position in range(len(own_ids))]
        ids += own_ids
        questions += own_questions
    values = {metric: load(manifest, metric).table["value"].to_numpy() for metric in metrics}
    return RowTable(places, ids, questions, values)


def _names_of(
    files: Files, ref: RunRef, metrics: Sequence[str], shard: int
) -> tuple[list[str], list[str]]:
    """The ids of a shard's rows, and the keys of their questions."""
    for metric in metrics:
        if files.exists(ref.scores(metric, shard)):
            table = StoredPart(files, ref.scores(metric, shard)).columns(["id", "question"])
            return table["id"].to_pylist(), table["question"].to_pylist()
    table = StoredPart(files, ref.rows(shard)).columns(["id", "user_input"])
    return table["id"].to_pylist(), [question_key(one) for one in table["user_input"].to_pylist()]


def _means_before(
    manifest: Manifest, earlier: Sequence[Manifest], load: LoadScores
) -> dict[str, dict[str, float]]:
    """By metric, the mean of each question on the night before, if that night compares."""
    night = night_before(manifest, earlier)
    if night is None:
        return {}
    means = {metric: question_means(load(night, metric)) for metric in _comparable(night, manifest)}
    return {
        metric: {str(question): mean for question, mean in by_question.items()}
        for metric, by_question in means.items()
    }


def _comparable(night: Manifest, later: Manifest) -> list[str]:
    """The metrics that both nights scored with the same fingerprint."""
    return [
        now.metric
        for now in later.metrics
        if (then := night.summary(now.metric))
        and then.scored
        and then.fingerprint == now.fingerprint
    ]


def _find(
    files: Files,
    night: Manifest,
    later: Manifest,
    asked: Mapping[RowLocation, LogRow],
    *,
    in_full: bool,
) -> dict[RowLocation, EarlierNight]:
    """An earlier night for each row of the later night whose question it has; `in_full` with its
    contexts. Empty if the rows, or else the scores, of the earlier night are gone.
    """
    rows: dict[RowLocation, LogRow] = {}
    try:
        places, values = _places(files, night, _comparable(night, later), asked)
        for shard, positions in by_shard(list(places.values())).items() if in_full else ():
            part = StoredPart(files, RunRef.of(night).rows(shard))
            records = part.at(positions, _ROW_COLUMNS)
            rows |= {(shard, position): row_of(one) for position, one in records.items()}
    except StoreError as error:
        if error.transient:
            raise
        log.warning("%s is not compared with %s: %s", later.date, night.date, error)
        return {}
    return {
        place: _earlier(night, asked[place], rows.get(at), values[at])
        for place, at in places.items()
    }


def _places(
    files: Files, night: Manifest, metrics: Sequence[str], asked: Mapping[RowLocation, LogRow]
) -> tuple[dict[RowLocation, RowLocation], dict[RowLocation, dict[str, float | None]]]:
    """The place of each question in the night, and the values there: those of the row with the same
    id, else of the first row.
    """
    wanted = {row.question_key for row in asked.values()}
    first: dict[str, RowLocation] = {}
    by_id: dict[tuple[str, str], RowLocation] = {}
    values: dict[RowLocation, dict[str, float | None]] = {}
    for shard in range(RunRef.of(night).shards):
        ids, questions, scores = _scored_shard(files, night, metrics, shard)
        for position, question in enumerate(questions):
            if question in wanted:
                place = shard, position
                first.setdefault(question, place)
                by_id.setdefault((question, ids[position]), place)
                values[place] = {metric: column[position] for metric, column in scores.items()}
    places = {
        place: by_id.get((row.question_key, row.id), first[row.question_key])
        for place, row in asked.items()
        if row.question_key in first
    }
    return places, values


def _scored_shard(
    files: Files, night: Manifest, metrics: Sequence[str], shard: int
) -> tuple[list[str], list[str], dict[str, list[float | None]]]:
    """Ids and questions of a shard's rows, and their values by metric. Each part is read once: from
    a bucket it comes whole.
    """
    ref, names = RunRef.of(night), None
    values: dict[str, list[float | None]] = {}
    for metric in metrics:
        columns = ["value"] if names else ["value", "id", "question"]
        try:
            table = StoredPart(files, ref.scores(metric, shard)).columns(columns)
        except StoreError as error:
            if not is_missing(error):
                raise
            continue
        values[metric] = table["value"].to_pylist()
        names = names or (table["id"].to_pylist(), table["question"].to_pylist())
    known = [summary.metric for summary in night.metrics]
    ids, questions = names or _names_of(files, ref, known, shard)
    return ids, questions, values


def _earlier(
    night: Manifest, now: LogRow, then: LogRow | None, values: Mapping[str, float | None]
) -> EarlierNight:
    if then is None:
        return EarlierNight(night.date, None, values, ())
    contexts = moved_contexts(then, now)
    if night.redacts:
        contexts = [redacted(context) for context in contexts]
    return EarlierNight(night.date, then.index_build, values, tuple(contexts))
