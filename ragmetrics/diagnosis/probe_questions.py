"""The questions of lost pairs as the retriever is asked them: with text, language and tags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragmetrics.diagnosis.lost_pairs import LostPairs
from ragmetrics.retriever import Question
from ragmetrics.storage import records_at


def questions_of(lost: LostPairs, wanted: Sequence[int]) -> dict[int, Question]:
    """The first row of each question of now, as a question for the retriever."""
    found: dict[int, Question] = {}
    _, first = np.unique(lost.now.question, return_index=True)
    rows = first[np.isin(lost.now.question[first], np.array(wanted, dtype=np.uint32))]
    columns = ["id", "user_input", "language", "tags"]
    for shard in np.unique(lost.now.shard[rows]).tolist():
        own = rows[lost.now.shard[rows] == shard]
        places = set(lost.now.position[own].tolist())
        records = records_at(lost.run.files, lost.run.ref.rows(shard), places, columns)
        for row in own.tolist():
            record = records[int(lost.now.position[row])]
            found[int(lost.now.question[row])] = Question(
                record["id"],
                record["user_input"],
                record["language"] or "",
                dict(record["tags"] or ()),
            )
    return found
