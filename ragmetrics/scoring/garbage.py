"""Rare garbage collection for processes that score.

It is a module of its own, since commands call it before they import what takes long.
"""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Run the cyclic garbage collector rarely, for the rest of this process.

    Reference counting frees almost everything that a night allocates. The search for cycles takes
    a tenth of a run. Call this only in processes that belong to ragmetrics.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
