"""The outbox: what a run tells about its night, and which channels have it.

alerts/outbox/2026-11-19.0.json      a batch of which some message is not delivered yet
alerts/delivered/2026-11-19.0.json   a batch without such messages: what was told, and to whom
alerts/given-up/2026-11-05.0.ID.json a message that waited too long: stored for people, not sent

A batch is one file, so it is queued as a whole or not at all. From then on its alerts count as
told. A rerun of the night replaces a batch that no channel has yet, and adds one otherwise. Two
runs that tell the same write the same file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from pydantic import Field, model_validator

from ragmetrics.messages import Message
from ragmetrics.records import Record, Told
from ragmetrics.storage import FileInfo, Files, find_record, save_record, unless_refused

DEFAULT_CHANNEL = "slack"
"""Name in the store of the channel that the keys `slack_...` describe."""

FOLDER = "alerts/outbox"
DELIVERED = "alerts/delivered"
GIVEN_UP = "alerts/given-up"
LONGEST_DAYS = 14
"""Longest wait of a message. An alert that still fires then gets a reminder anyway."""


class Waiting(Record):
    """A message that its channel has not confirmed yet."""

    message: Message
    channel: str = DEFAULT_CHANNEL


class MessageBatch(Record):
    """The messages of one run about its night."""

    night: date
    number: int = 0
    """Number of the night's batches before it that some channel has."""
    told: list[Told] = Field(default_factory=list)
    """What is notified. A late night also reports the states of its alerts in newer nights."""
    waiting: list[Waiting] = Field(default_factory=list)
    """The messages that are not delivered yet, in the order of sending."""
    delivered: list[str] = Field(default_factory=list)
    """The channel of each delivered message."""

    queued: date | None = None
    """The newest night when the messages of a late night were queued; None: their own night."""

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, data: Any) -> Any:
        """Read a file of an earlier version: it had one message, and said nothing of its alerts."""
        if isinstance(data, dict) and "message" in data:
            single = {name: data[name] for name in ("message", "channel") if name in data}
            same = {name: data[name] for name in ("night", "queued") if name in data}
            return {**same, "number": data.get("turn", 0), "waiting": [single]}
        return data

    @property
    def name(self) -> str:
        """Its file name."""
        return f"{self.night.isoformat()}.{self.number}.json"


@dataclass(frozen=True)
class Batches:
    """The batches of a store, in their order."""

    waiting: dict[str, MessageBatch]
    """Those of which some message is not delivered, by path; an earlier version named files
    otherwise."""
    done: list[MessageBatch]
    stale: list[str]
    """Paths in the outbox of batches that are done: their run died before it removed them."""

    @property
    def told(self) -> list[Told]:
        """All that people were told or are about to be."""
        known = sorted([*self.done, *self.waiting.values()], key=_order)
        return [told for batch in known for told in batch.told]

    def settled(self, night: date) -> list[MessageBatch]:
        """The batches of a night that a rerun cannot take back, as some channel has them."""
        partly = (batch for batch in self.waiting.values() if batch.delivered)
        return sorted((one for one in (*self.done, *partly) if one.night == night), key=_order)

    def told_tonight(self, night: date) -> list[Told]:
        """What people know about a night before it is run again."""
        others = (one for one in (*self.done, *self.waiting.values()) if one.night != night)
        known = [*sorted(others, key=_order), *self.settled(night)]
        return [told for batch in known for told in batch.told if told.night == night]

    def replaced(self, night: date) -> dict[str, MessageBatch]:
        """The batches of a night that a rerun replaces; not those of an earlier version."""
        return {
            path: batch
            for path, batch in self.waiting.items()
            if batch.night == night and batch.told and not batch.delivered
        }


def load_batches(files: Files, since: date = date.min, until: date = date.max) -> Batches:
    """The batches of a store; of the delivered ones those of the nights `since` to `until`.

    Other files are logged and ignored. A damaged delivered batch is as if it were not there.
    """
    queued = [info for info in files.below(FOLDER) if info.size]
    names = {_name(info) for info in queued}
    nights = (since.isoformat(), until.isoformat())
    wanted = [
        info
        for info in files.below(DELIVERED)
        if info.size and (_name(info) in names or nights[0] <= _name(info)[:10] <= nights[1])
    ]
    done = _read(files, wanted)
    delivered = {path.rpartition("/")[2] for path in done}
    stale = [info.path for info in queued if _name(info) in delivered]
    found = _read(files, [info for info in queued if info.path not in stale])
    ordered = dict(sorted(found.items(), key=lambda one: _order(one[1])))
    return Batches(ordered, sorted(done.values(), key=_order), stale)


def known_batches(files: Files, since: date, until: date) -> Batches:
    """Like `load_batches`, for a night: it has none where the store refuses to list them."""
    read = partial(load_batches, files, since, until)
    return unless_refused(read, Batches({}, [], []), "messages may be sent twice")


def queue_batch(files: Files, batch: MessageBatch) -> None:
    """Store a batch before it is sent; one without messages counts as delivered."""
    save_record(files, f"{FOLDER if batch.waiting else DELIVERED}/{batch.name}", batch)


class Outbox:
    """Batches while their messages are sent: each change is stored at once. Raises StoreError."""

    def __init__(self, files: Files, batches: dict[str, MessageBatch]) -> None:
        self._files = files
        self._batches = dict(batches)

    def messages(self) -> Iterator[tuple[str, Waiting]]:
        """All waiting messages, oldest first, each with the path of its batch."""
        for path, batch in sorted(self._batches.items(), key=lambda one: _order(one[1])):
            for waiting in batch.waiting:
                yield path, waiting

    def night(self, path: str) -> date:
        """The night of a batch."""
        return self._batches[path].night

    def is_old(self, path: str, night: date) -> bool:
        """Whether a batch has waited too long, seen from the newest night."""
        batch = self._batches[path]
        return (night - (batch.queued or batch.night)).days >= LONGEST_DAYS

    def confirm(self, path: str, waiting: Waiting) -> None:
        """Note that a channel has a message."""
        self._without(path, waiting, [waiting.channel])

    def drop(self, path: str, waiting: Waiting) -> None:
        """Remove a message that no channel will get."""
        self._without(path, waiting, [])

    def give_up(self, path: str, waiting: Waiting) -> str:
        """Move a message to the given-up folder; return its address."""
        digest = hashlib.blake2b(waiting.model_dump_json().encode(), digest_size=6).hexdigest()
        batch = self._batches[path]
        place = f"{GIVEN_UP}/{batch.night.isoformat()}.{batch.number}.{digest}.json"
        save_record(self._files, place, MessageBatch(night=batch.night, waiting=[waiting]))
        self.drop(path, waiting)
        return self._files.uri(place)

    def _without(self, path: str, waiting: Waiting, delivered: Sequence[str]) -> None:
        batch = self._batches[path]
        left = list(batch.waiting)
        left.remove(waiting)
        update = {"waiting": left, "delivered": [*batch.delivered, *delivered]}
        self._batches[path] = batch = batch.model_copy(update=update)
        if left:
            save_record(self._files, path, batch)
            return
        if batch.told:
            save_record(self._files, f"{DELIVERED}/{batch.name}", batch)
        self._files.discard(path)


def remove_batches(files: Files, paths: Sequence[str]) -> None:
    """Remove batches that were replaced. Raises StoreError."""
    for path in paths:
        files.discard(path)


def _order(batch: MessageBatch) -> tuple[date, int]:
    return batch.night, batch.number


def _name(info: FileInfo) -> str:
    return info.path.rpartition("/")[2]


def _read(files: Files, infos: Sequence[FileInfo]) -> dict[str, MessageBatch]:
    def read(info: FileInfo) -> MessageBatch | None:
        return find_record(files, info.path, MessageBatch, "not a message and is ignored")

    found = files.side_by_side(read, infos)
    return {info.path: one for info, one in zip(infos, found, strict=True) if one}
