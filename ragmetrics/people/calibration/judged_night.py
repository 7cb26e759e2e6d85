"""A night of the store as a labelled set: the grades of its judge are the labels of contexts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from ragmetrics.errors import InputError
from ragmetrics.people.calibration.labelled import LabelledRow, Labels
from ragmetrics.records import LogRow
from ragmetrics.storage import Files, RunRef, Runs, StoredPart, scored_rows

NIGHT = "night:"
_METRIC = "context_relevance"


def read_judged_night(files: Files | None, day: str) -> Iterator[LabelledRow]:
    """The rows of a night whose contexts were graded. Raises InputError if there is no such night,
    or none of its rows has grades.
    """
    if files is None:
        raise InputError(f"{NIGHT}{day}: a night is in a store: name it with --store or --settings")
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        raise InputError(f"{NIGHT}{day}: should be a date, as in {NIGHT}2026-11-19") from None
    found = next((night for night in Runs(files).nights() if night.date == wanted), None)
    if found is None:
        raise InputError(f"{NIGHT}{day}: there is no such night in {files.uri()}")
    if not any(metric.metric == _METRIC for metric in found.metrics):
        raise InputError(f"{NIGHT}{day}: {_METRIC} was not scored")
    ref = RunRef.of(found)
    for shard in range(ref.shards):
        rows = range(len(StoredPart(files, ref.rows(shard)).columns(["id"])))
        for row in scored_rows(files, ref, [_METRIC], {shard: rows}).values():
            grades = row.scores[_METRIC].details.get("grades")
            if grades and len(grades) == len(row.row.retrieved_contexts):
                yield _labelled(row.row, grades)


def _labelled(row: LogRow, grades: list[int]) -> LabelledRow:
    labels = Labels.model_validate({"chunk_relevance": grades, "chunk_relevance_scale": "0..2"})
    return LabelledRow(row, labels, dict(row.tags))
