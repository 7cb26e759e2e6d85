"""Finds the lost passages: pairs of question and passage that were there before and are not now.

A question is compared with the newest earlier run that asked it. A passage is lost where the
question needs it, retrieved it then, and does not retrieve it now. Where the golden labels of the
question changed and no longer name the passage, it is not lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragmetrics.passages.diagnosis.document_ids import Ids, is_in
from ragmetrics.passages.diagnosis.retrievals import (
    Mask,
    Places,
    Questions,
    Retrievals,
    Run,
    pair_keys,
    read_retrievals,
)


@dataclass(frozen=True)
class Pairs:
    """Distinct pairs of question and passage before, at the best rank of each, and the state of
    each pair now.
    """

    question: Questions
    passage: Ids
    rank: Places
    needed: Mask
    run: Places
    """The earlier run of the pair, as its position in the runs; so are shard and position."""
    shard: Places
    position: Places
    named: Mask
    """Whether the passage was known by its id then."""
    retained: Mask
    """Whether the question still retrieves the passage."""

    @property
    def lost(self) -> Mask:
        """The needed pairs that are no longer there."""
        return self.needed & ~self.retained


def find_pairs(now: Retrievals, earlier: Sequence[Run]) -> Pairs | None:
    """The pairs of the questions that were asked before too, each at the newest of the `earlier`
    runs that asked it. None where no question was asked before, or no rows are stored.
    """
    left, parts = np.unique(now.question), []
    for number, run in reversed(list(enumerate(earlier))):
        if not len(left):
            break
        found = read_retrievals(run, left)
        if found is not None and len(found.question):
            parts.append(_of_run(found, number))
            left = left[~is_in(left, found.question)]
    if not parts:
        return None
    question, passage, rank, needed, run_of, shard, position, named = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    keys = pair_keys(question, passage)
    # Labels are ids: they say nothing about a passage that is known by its text.
    labelled = is_in(question, now.question[now.labelled]) & named
    needed &= ~labelled | is_in(keys, now.labels)
    retained = is_in(keys, now.keys)
    return Pairs(question, passage, rank, needed, run_of, shard, position, named, retained)


def _of_run(found: Retrievals, run: int) -> tuple[np.ndarray, ...]:
    """The distinct pairs of one run, at their best rank. A pair is needed if any row needs it."""
    keys = found.keys
    order = np.lexsort((found.rank, keys))
    _, first, numbers = np.unique(keys[order], return_index=True, return_inverse=True)
    needed = np.bincount(numbers, weights=found.needed[order]) > 0
    best = order[first]
    row = found.row[best]
    return (
        found.question[row],
        found.passage[best],
        found.rank[best],
        needed,
        np.full(len(best), run),
        found.shard[row],
        found.position[row],
        found.named[row],
    )
