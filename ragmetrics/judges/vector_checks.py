"""Checks vectors before they are used or cached.

A valid vector is one-dimensional and finite, has a length above 0, and the size of the model's
other vectors.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ragmetrics.model import Vector


class VectorChecks:
    """Checks of one embedder's vectors; `known` has the number of cached vectors by size.

    The expected size is the most frequent one so far.
    """

    def __init__(self, known: Counter[int] | None = None) -> None:
        self._sizes = Counter(known or {})

    def problem(self, vector: Vector, *, counted: bool = False) -> str:
        """Why a vector is invalid; empty if it is valid.

        `counted`: its size is counted already, as for a cached vector.
        """
        if vector.ndim != 1:
            return f"it has {vector.ndim} dimensions, and a vector has one"
        if not vector.size:
            return "it is empty"
        if not np.isfinite(vector).all():
            return "it holds NaN or infinity"
        if not 0 < np.linalg.norm(vector) < np.inf:
            return "it has no direction: its length is 0 or infinite"
        if not counted:
            self._sizes[vector.size] += 1
        (usual, times), *_ = self._sizes.most_common(1)
        if vector.size != usual and self._sizes[vector.size] < times:
            return f"it has {vector.size:,} numbers, and the model's vectors have {usual:,}"
        return ""
