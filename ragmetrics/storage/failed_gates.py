"""Builds that got no verdict: events that cannot be followed, logs that are not there.

    gates/undecided/ID.json

One file per event and reason, so that a repeat is known and told once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

from pydantic import ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.model import FAILED_GATES, FailedGate
from ragmetrics.storage.files import Files
from ragmetrics.storage.newest_first import newest_first

log = logging.getLogger(__name__)


def find_failed_gate(files: Files, undecided: FailedGate) -> FailedGate | None:
    """This one as it was kept before, if it was; not known where the store cannot be read."""
    try:
        return _find(files, undecided.path)
    except StoreError as error:
        log.warning("this may be told twice: %s", error)
        return None


def save_failed_gate(files: Files, undecided: FailedGate) -> None:
    """Write it down; a store that cannot be written keeps nobody from being told."""
    try:
        files.write(undecided.path, undecided.model_dump_json(indent=1).encode())
    except StoreError as error:
        log.error("not kept, this may be told twice: %s", error)


def load_failed_gates(files: Files) -> Iterator[FailedGate]:
    """All of them, newest first, each read when its turn comes; one that cannot be read is left
    out, and logged.
    """
    infos = files.glob(f"{FAILED_GATES}/*.json")
    return newest_first(infos, partial(_find, files), lambda one: one.at)


def _find(files: Files, path: str) -> FailedGate | None:
    data = files.find(path)
    if data is None:  # one may be gone since the listing
        return None
    try:
        return FailedGate.model_validate_json(data)
    except ValidationError:
        log.error("%s: not a record of a build without verdict, it is left out", files.uri(path))
        return None
