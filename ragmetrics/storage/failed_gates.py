"""Builds that got no verdict: events that cannot be followed, logs that are not there.

    gates/undecided/ID.json

One file per event and reason, so that a repeat is known and told once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from datetime import datetime
from functools import partial

from pydantic import Field, ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.model.manifest import Record
from ragmetrics.storage.files import Files
from ragmetrics.storage.newest_first import newest_first

FOLDER = "gates/undecided"
log = logging.getLogger(__name__)


class Undecided(Record):
    """An event, or a call by hand, that came to no verdict."""

    dataset: str
    """Of the settings; what the event says may differ."""
    reason: str
    carried: str
    """What the event said, as text, cut where it is long."""
    event_id: str | None = None
    at: datetime
    told: bool = False
    """Whether all channels confirmed the message,"""
    heard: list[str] = Field(default_factory=list)
    """and those that did."""
    redact: bool = False
    """Whether what was said is kept out of all that is published, for good."""

    @property
    def path(self) -> str:
        """Its file in the store: the same for a repeat that fails for the same reason."""
        text = "\n".join((self.event_id or self.carried, self.reason))
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10)
        return f"{FOLDER}/{digest.hexdigest()}.json"


def kept_before(files: Files, undecided: Undecided) -> Undecided | None:
    """This one as it was kept before, if it was; not known where the store cannot be read."""
    try:
        return _find(files, undecided.path)
    except StoreError as error:
        log.warning("this may be told twice: %s", error)
        return None


def keep(files: Files, undecided: Undecided) -> None:
    """Write it down; a store that cannot be written keeps nobody from being told."""
    try:
        files.write(undecided.path, undecided.model_dump_json(indent=1).encode())
    except StoreError as error:
        log.error("not kept, this may be told twice: %s", error)


def load_undecided(files: Files) -> Iterator[Undecided]:
    """All of them, newest first, each read when its turn comes; one that cannot be read is left
    out, and logged.
    """
    infos = files.glob(f"{FOLDER}/*.json")
    return newest_first(infos, partial(_find, files), lambda one: one.at)


def _find(files: Files, path: str) -> Undecided | None:
    data = files.find(path)
    if data is None:  # one may be gone since the listing
        return None
    try:
        return Undecided.model_validate_json(data)
    except ValidationError:
        log.error("%s: not a record of a build without verdict, it is left out", files.uri(path))
        return None
