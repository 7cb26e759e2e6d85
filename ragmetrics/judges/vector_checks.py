"""Checks vectors before they are used or kept.

A good one has one dimension, finite numbers, a length above 0, and the size of its model's others.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ragmetrics.model import Vector


class VectorChecks:
    """The checks of one embedder's vectors; `known` counts sizes of those that a store holds.

    All vectors of a model have one size: the one that most of them have, of those seen so far.
    """

    def __init__(self, known: Counter[int] | None = None) -> None:
        self._sizes = Counter(known or {})

    def problem(self, vector: Vector, *, counted: bool = False) -> str:
        """Why a vector is of no use; empty where it is good.

        `counted`: its size is among the known ones, as of one that the store holds.
        """
        if vector.ndim != 1:
            return f"it has {vector.ndim} dimensions, and a vector has one"
        if not vector.size:
            return "it is empty"
        if not np.isfinite(vector).all():
            return "it holds NaN or infinity"
        if not 0 < np.linalg.norm(vector) < np.inf:
            return "it has no direction: its length is 0, or beyond all numbers"
        if not counted:
            self._sizes[vector.size] += 1
        (usual, times), *_ = self._sizes.most_common(1)
        if vector.size != usual and self._sizes[vector.size] < times:
            return f"it has {vector.size:,} numbers, and the model's vectors have {usual:,}"
        return ""
