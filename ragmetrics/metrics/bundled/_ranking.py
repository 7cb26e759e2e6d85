"""Average precision, shared by the three forms of context precision."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.model import Score


def average_precision(relevant: Sequence[bool]) -> Score:
    """Score a ranking by which of its contexts, best first, are relevant.

        AP = sum over relevant ranks k of (relevant in the first k / k) / number of relevant

    Range [0, 1]; a perfect ranking is exactly 1. None relevant: 0.0, with a reason.
    """
    ranks = [rank for rank, is_relevant in enumerate(relevant, 1) if is_relevant]
    if not ranks:
        return Score(0.0, reason="no relevant context", details={"relevant_ranks": []})
    precisions = [count / rank for count, rank in enumerate(ranks, 1)]
    return Score(sum(precisions) / len(ranks), details={"relevant_ranks": ranks})
