"""Garbage collection for processes that score: seldom."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Look for cycles of garbage seldom, for the rest of this process.

    What a night allocates is freed by count of references: cycles are few, and looking for them
    among all that is alive takes a tenth of a run. For processes that are ours alone.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
