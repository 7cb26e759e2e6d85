"""The newest records of a folder: read one by one, and no more of them than it takes to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from ragmetrics.storage.files import FileInfo

T = TypeVar("T")

_SKEW = 900.0
"""Most seconds between the clocks of a store and of who writes to it: S3 turns away who is
further off."""


def newest_first(
    infos: Sequence[FileInfo], read: Callable[[str], T | None], moment: Callable[[T], datetime]
) -> Iterator[T]:
    """Records, latest moment first, each read when its turn comes; without those read as None.

    A file is written after its record's moment: one that was written before the latest moment
    read so far cannot have a later one, and need not be read yet. Where that tells little, all are
    read first: in a store that was copied every file is new, and some do not say when it was
    written.
    """
    waiting: list[tuple[float, str, T]] = []
    for info in sorted(infos, key=_written, reverse=True):
        while waiting and -waiting[0][0] > _written(info) + _SKEW:
            yield heappop(waiting)[-1]
        record = read(info.path)
        if record is not None:
            heappush(waiting, (-moment(record).timestamp(), info.path, record))
    while waiting:
        yield heappop(waiting)[-1]


def _written(info: FileInfo) -> float:
    return inf if info.modified is None else info.modified
