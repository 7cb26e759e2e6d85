"""Verdicts on index builds, and the comparison of each build with the serving one.

gates/BUILD.json
gates/compared/BUILD.json       the comparison, as `ragmetrics compare` computes it
gates/undecided/ID.json         a gate that failed without a verdict: invalid event, missing log

There is one file of a failed gate per event and reason, so that a repetition is recognised and
notified once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from ragmetrics.errors import StoreError
from ragmetrics.records import FAILED_GATES, Comparison, FailedGate, Gate, is_name
from ragmetrics.storage import FileInfo, Files, find_record, save_record
from ragmetrics.text import slug

GATES = "gates"
BUILD_PAGES = "builds"
T = TypeVar("T")
_SKEW = 900.0
"""Largest difference in seconds between the clocks of a store and of a writer. S3 rejects requests
beyond it."""
log = logging.getLogger(__name__)


def load_gate(files: Files, build: str) -> Gate | None:
    """The verdict on a build; None if it is missing or cannot be read."""
    return _find(files, gate_path(build))


def load_gates(files: Files) -> Iterator[Gate]:
    """The verdicts on all builds, newest build first. Each is read when it is needed.

    A verdict that cannot be read is logged and left out; its build can be gated again.
    """
    infos = files.glob(f"{GATES}/*.json")
    return newest_first(infos, partial(_find, files), lambda gate: gate.order)


def find_serving(files: Files, dataset: str, day: date) -> list[str]:
    """The newest build that was promoted on a day or before it, and the build that it replaced.

    Empty if none was promoted. Then the rows of the nights show which build serves.
    """
    for gate in load_gates(files):
        promoted = (gate.verdict, gate.dataset) == ("promote", dataset)
        if promoted and gate.finished_at.date() <= day:
            return [gate.build, *([gate.serving] if gate.serving else [])]
    return []


def save_gate(files: Files, gate: Gate) -> None:
    """Write the verdict on a build. It replaces an earlier verdict."""
    save_record(files, gate_path(gate.build), gate)


def save_compared(files: Files, build: str, found: Comparison | None) -> None:
    """Write the comparison of a build with the serving one. None removes an earlier comparison."""
    if found is None:
        files.discard(compared_path(build))
    else:
        save_record(files, compared_path(build), found)


def load_compared(files: Files, build: str) -> Comparison | None:
    """The comparison of a build; None if there is none, or an older version wrote it."""
    path = compared_path(build)
    return find_record(files, path, Comparison, "not a comparison, it is left out")


def compared_path(build: str) -> str:
    """The path of the comparison of a build."""
    return f"{GATES}/compared/{build}.json"


def gate_path(build: str) -> str:
    """The path of the verdict on a build."""
    return f"{GATES}/{build}.json"


def _find(files: Files, path: str) -> Gate | None:
    return find_record(files, path, Gate, "not a verdict, it is left out")


def build_path(build: str) -> str:
    """The path of a build's page on the site. An unsafe name is replaced by slug and digest."""
    name = build
    if not is_name(build):
        digest = hashlib.blake2b(build.encode("utf-8", "surrogatepass"), digest_size=6)
        name = f"{slug(build)[:60]}-{digest.hexdigest()}"
    return f"{BUILD_PAGES}/{name}.html"


def find_failed_gate(files: Files, failed: FailedGate) -> FailedGate | None:
    """The stored record of a failed gate; None if there is none, or the store cannot be read."""
    try:
        return _find_failed(files, failed.path)
    except StoreError as error:
        log.warning("a message may be sent twice: %s", error)
        return None


def save_failed_gate(files: Files, failed: FailedGate) -> None:
    """Store a failed gate. An error is logged, so that the message is sent all the same."""
    try:
        save_record(files, failed.path, failed)
    except StoreError as error:
        log.error("not stored, so a message may be sent twice: %s", error)


def load_failed_gates(files: Files) -> Iterator[FailedGate]:
    """All failed gates, newest first. Each is read when it is needed; an invalid one is logged and
    left out.
    """
    infos = files.glob(f"{FAILED_GATES}/*.json")
    return newest_first(infos, partial(_find_failed, files), lambda one: one.at)


def _find_failed(files: Files, path: str) -> FailedGate | None:
    return find_record(files, path, FailedGate, "not a failed gate, it is left out")


def newest_first(
    infos: Sequence[FileInfo], read: Callable[[str], T | None], moment: Callable[[T], datetime]
) -> Iterator[T]:
    """Records by `moment`, latest first. Each is read when it is needed; None is left out.

    Files are read in the order of writing, newest first. A file is written after the moment of its
    record, so a record may be yielded as soon as all files that are left were written before its
    moment. In a copied store all files are new, and some stores have no times: then all are read
    before the first record is yielded.
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
