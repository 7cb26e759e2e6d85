"""The first row of each of some questions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragmetrics.passages.diagnosis.document_ids import is_in
from ragmetrics.passages.diagnosis.retrievals import Places, Retrievals, Run
from ragmetrics.records import LogRow
from ragmetrics.storage import StoredPart, row_of


@dataclass(frozen=True)
class QuestionRow:
    """A row and its location."""

    row: LogRow
    run: int
    """Its run, as its position in the runs that were read."""
    shard: int
    position: int


def rows_of_questions(
    runs: Sequence[Run], now: Retrievals, wanted: Collection[int]
) -> dict[int, QuestionRow]:
    """The first row of each question, by the question's number."""
    found: dict[int, QuestionRow] = {}
    _, first = np.unique(now.question, return_index=True)
    rows = first[is_in(now.question[first], np.array(sorted(wanted), dtype=np.uint32))]
    for run, shard, of_shard in in_shards(now, rows):
        places = set(now.position[of_shard].tolist())
        records = StoredPart(runs[run].files, runs[run].ref.rows(shard)).at(places)
        for row in of_shard.tolist():
            position = int(now.position[row])
            known = QuestionRow(row_of(records[position]), run, shard, position)
            found[int(now.question[row])] = known
    return found


def in_shards(now: Retrievals, rows: Places) -> Iterator[tuple[int, int, Places]]:
    """Some rows by their run and shard."""
    places = np.stack([now.run[rows], now.shard[rows]], axis=1)
    for run, shard in np.unique(places, axis=0).tolist():
        yield run, shard, rows[(places == (run, shard)).all(axis=1)]
