"""Passages that a question still retrieves where only one of two runs has document ids.

There ids cannot be compared, so the texts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ragmetrics.passages.diagnosis.document_ids import in_order, is_in
from ragmetrics.passages.diagnosis.losses import Pairs
from ragmetrics.passages.diagnosis.passage_texts import old_passages
from ragmetrics.passages.diagnosis.retrievals import Retrievals, Run, pair_keys, read_newest


def with_equal_texts(
    runs: Sequence[Run], now: Retrievals, earlier: Sequence[Run], pairs: Pairs
) -> Pairs:
    """The pairs, of which those with an equal text now are retained."""
    unnamed = np.unique(now.question[~now.named])
    places = np.flatnonzero(pairs.lost & (pairs.named == is_in(pairs.question, unnamed)))
    if not len(places):
        return pairs
    questions = pairs.question[places]
    there = read_newest(runs, np.unique(questions), by_text=True)
    texts = [passage.text if passage else "" for passage in old_passages(earlier, pairs, places)]
    if there is None:
        return pairs
    retained = pairs.retained.copy()
    retained[places] = is_in(pair_keys(questions, in_order(texts)), there.keys)
    return replace(pairs, retained=retained)
