"""A snapshot of what the store lists, to render pages until nothing changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ragmetrics.storage import RUNS, FileInfo, Files

T = TypeVar("T")


_MOST_ROUNDS = 10


@dataclass(frozen=True)
class StoreSnapshot:
    """What pages are made of, as the store lists it at a moment."""

    runs: Sequence[FileInfo]
    gates: Sequence[FileInfo]
    """With those that came to no verdict."""
    calibrations: Sequence[FileInfo]


def take_snapshot(files: Files, runs: Sequence[FileInfo] | None = None) -> StoreSnapshot:
    """What there is now; `runs` where they are listed already."""
    calibrations = files.below("calibrations")
    return StoreSnapshot(
        runs=files.below(RUNS) if runs is None else runs,
        gates=files.glob("gates/*.json") + files.glob("gates/undecided/*.json"),
        calibrations=[one for one in calibrations if one.path.startswith("calibrations/set=")],
    )


def render_until_stable(
    files: Files, write: Callable[[StoreSnapshot], T], runs: Sequence[FileInfo] | None = None
) -> T:
    """Write pages of what is saved, and again where something was saved meanwhile.

    So whoever of two that write at the same time comes last has seen what both have saved. `runs`
    may be of a moment ago: what was saved since then was saved meanwhile.
    """
    now = take_snapshot(files, runs)
    for _ in range(_MOST_ROUNDS):
        written = write(now)
        before, now = now, take_snapshot(files)
        if now == before:
            break
    return written
