"""Golden passages that are retrieved as before, under the same id, with another text.

They are not lost, as the id is what the golden labels name; but the labels may not hold any more.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ragmetrics.errors import StoreError
from ragmetrics.passages.diagnosis.document_ids import Ids, is_in
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.passage_texts import passages_and_identities
from ragmetrics.passages.diagnosis.retrievals import Run


def edited_sentence(found: LostPairs) -> str:
    """How many golden passages have another text; empty where none has."""
    pairs, now = found.pairs, found.now
    labelled = is_in(pairs.question, np.unique(now.question[now.labelled]))
    chosen = pairs.needed & pairs.retained & pairs.named & labelled
    golden = np.unique(pairs.passage[chosen])
    if not len(golden):
        return ""
    used = np.unique(pairs.run[chosen])
    before = _identities(golden, (found.earlier[number] for number in used.tolist()))
    after = _identities(golden, found.runs)
    same = np.unique(after[0][is_in(after[1], before[1])])
    both = np.intersect1d(after[0], before[0])
    edited = int((~is_in(both, same)).sum())
    if not edited:
        return ""
    return (
        f"Another text under the same id: {edited:,} of {len(golden):,} golden passages; the "
        "source was edited, or is cut otherwise"
    )


def _identities(golden: Ids, runs: Iterable[Run]) -> tuple[Ids, Ids]:
    """The golden passages that some runs retrieved, each with its id and text as one number."""
    none = np.array([], np.uint64)
    found: list[tuple[Ids, Ids]] = [(none, none)]
    for run in runs:
        try:
            for passages, identities in passages_and_identities(run):
                chosen = is_in(passages, golden)
                found.append((passages[chosen], identities[chosen]))
        except StoreError as error:
            if error.transient:
                raise  # else the rows were removed
    passages, identities = (np.concatenate(column) for column in zip(*found, strict=True))
    return passages, identities
