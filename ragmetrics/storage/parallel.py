"""Reads several files of a bucket in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ragmetrics.storage.files import Files

T = TypeVar("T")
U = TypeVar("U")
_AT_ONCE = 8
_PIECE = 64
"""Number of files whose content is in memory at a time."""


def find_all(files: Files, paths: Sequence[str]) -> Iterator[bytes | None]:
    """The content of each file in order; None for a missing file.

    Several files of a bucket are read in parallel. Raises StoreError.
    """
    if files.local or len(paths) < 2:
        yield from map(files.find, paths)
        return
    with ThreadPoolExecutor(_AT_ONCE, "ragmetrics-read") as pool:
        for start in range(0, len(paths), _PIECE):
            yield from pool.map(files.find, paths[start : start + _PIECE])


def side_by_side(files: Files, act: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Apply `act` to each item, in order; in parallel if the files are in a bucket."""
    if files.local or len(items) < 2:
        return [act(item) for item in items]
    with ThreadPoolExecutor(_AT_ONCE, "ragmetrics-read") as pool:
        return list(pool.map(act, items))
