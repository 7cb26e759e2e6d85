"""Files of a store, read several at a time where each takes a journey."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ragmetrics.storage.files import Files

T = TypeVar("T")
U = TypeVar("U")
_AT_ONCE = 8
_PIECE = 64
"""Files of which the content is held at a time."""


def find_all(files: Files, paths: Sequence[str]) -> Iterator[bytes | None]:
    """The content of each file in order, or None where there is none (any more).

    A bucket is asked for several at once. Raises StoreError where one cannot be read.
    """
    if files.local or len(paths) < 2:
        yield from map(files.find, paths)
        return
    with ThreadPoolExecutor(_AT_ONCE, "ragmetrics-read") as pool:
        for start in range(0, len(paths), _PIECE):
            yield from pool.map(files.find, paths[start : start + _PIECE])


def side_by_side(files: Files, act: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """What `act` makes of each item, in order: side by side where it reads from a bucket."""
    if files.local or len(items) < 2:
        return [act(item) for item in items]
    with ThreadPoolExecutor(_AT_ONCE, "ragmetrics-read") as pool:
        return list(pool.map(act, items))
