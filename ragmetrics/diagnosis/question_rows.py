"""The first row of each of some questions of a run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ragmetrics.diagnosis.document_ids import is_in
from ragmetrics.diagnosis.retrievals import Retrievals, Run
from ragmetrics.model import LogRow
from ragmetrics.storage import records_at, row_of


@dataclass(frozen=True)
class QuestionRow:
    """A row and its location."""

    row: LogRow
    shard: int
    position: int


def rows_of_questions(run: Run, now: Retrievals, wanted: Collection[int]) -> dict[int, QuestionRow]:
    """The first row of each question, by the question's number."""
    found: dict[int, QuestionRow] = {}
    _, first = np.unique(now.question, return_index=True)
    rows = first[is_in(now.question[first], np.array(sorted(wanted), dtype=np.uint32))]
    for shard in np.unique(now.shard[rows]).tolist():
        own = rows[now.shard[rows] == shard]
        places = set(now.position[own].tolist())
        records = records_at(run.files, run.ref.rows(shard), places)
        for row in own.tolist():
            position = int(now.position[row])
            known = QuestionRow(row_of(records[position]), shard, position)
            found[int(now.question[row])] = known
    return found
