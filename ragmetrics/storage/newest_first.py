"""Reads the records of a folder, newest first, and only as many as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from ragmetrics.storage.files import FileInfo

T = TypeVar("T")

_SKEW = 900.0
"""Largest difference in seconds between the clocks of a store and of a writer. S3 rejects requests
beyond it."""


def newest_first(
    infos: Sequence[FileInfo], read: Callable[[str], T | None], moment: Callable[[T], datetime]
) -> Iterator[T]:
    """Records by `moment`, latest first. Each is read when it is needed; None is left out.

    A file is written after the moment of its record. So a file that was written before the latest
    moment so far cannot have a later one and need not be read yet. All files are read first when
    the times of writing do not help: in a copied store all are new, and some stores have none.
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
