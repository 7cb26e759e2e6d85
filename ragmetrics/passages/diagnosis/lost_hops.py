"""The hop of each lost passage: which retrieval of its trace had found it on the earlier night."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.storage import StoredPart


def hops_of(lost: LostPairs) -> NDArray[np.int64]:
    """Of each lost pair, the number of the hop that retrieved it then; 0 for a single retrieval.

    Raises StoreError where the store is down.
    """
    pairs, places = lost.pairs, lost.places
    hops = np.zeros(len(places), dtype=np.int64)
    parts = np.stack([pairs.run[places], pairs.shard[places]])
    for run, shard in np.unique(parts, axis=1).T:
        here = np.flatnonzero((parts == [[run], [shard]]).all(axis=0))
        ref, files = lost.earlier[run].ref, lost.earlier[run].files
        table = StoredPart(files, ref.rows(shard)).columns(["hop_sizes"])
        if "hop_sizes" not in table.column_names:  # rows of an older version
            continue
        sizes = table["hop_sizes"].take(pairs.position[places[here]]).to_pylist()
        for place, row_sizes in zip(here, sizes, strict=True):
            if row_sizes:
                ends = np.cumsum(row_sizes)
                hops[place] = 1 + np.searchsorted(ends, pairs.rank[places[place]])
    return hops
