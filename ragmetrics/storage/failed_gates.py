"""Gates that failed without a verdict: invalid events, missing logs.

    gates/undecided/ID.json

There is one file per event and reason, so that a repetition is recognised and notified once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from ragmetrics.errors import StoreError
from ragmetrics.model import FAILED_GATES, FailedGate
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import find_record, save_record
from ragmetrics.storage.newest_first import newest_first

log = logging.getLogger(__name__)


def find_failed_gate(files: Files, failed: FailedGate) -> FailedGate | None:
    """The stored record of a failed gate; None if there is none, or the store cannot be read."""
    try:
        return _find(files, failed.path)
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
    return newest_first(infos, partial(_find, files), lambda one: one.at)


def _find(files: Files, path: str) -> FailedGate | None:
    return find_record(files, path, FailedGate, "not a failed gate, it is left out")
