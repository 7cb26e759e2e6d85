"""The outbox of write-back: which nights a target has not confirmed yet, and what it has confirmed.

write-back/outbox/2026-11-19.RUN.langfuse.json          written before anything is sent
write-back/sent/dt=2026-11-19/langfuse-KEY/DIGEST.json  after each batch: the digests of its results
write-back/given-up/2026-11-05.RUN.langfuse.json        waited too long; kept for people

The results themselves are in the run's parts and are computed again, with equal ids. So a record
names a run and no results. A run that dies repeats at most the batch that it was sending.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from pydantic import Field

from ragmetrics.records import Manifest, Record
from ragmetrics.storage import Files, RunRef, find_record, save_record

OUTBOX = "write-back/outbox"
SENT = "write-back/sent"
GIVEN_UP = "write-back/given-up"
LONGEST_DAYS = 14
"""Longest wait of a night. The rows of a night are kept as long."""


class WaitingNight(Record):
    """A night whose scores one target has not confirmed."""

    night: date
    run: str
    shards: int
    target: str
    waiting: int | None = None
    """Number of scores that wait; None before the first attempt."""
    problem: str = ""
    """Why they wait."""
    early_since: datetime | None = None
    """When scores first waited for their spans; None if none does."""

    @property
    def ref(self) -> RunRef:
        """The run."""
        return RunRef(date=self.night, run=self.run, shards=self.shards)

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.night.isoformat()}.{self.run}.{self.target}.json"


class _Batch(Record):
    """The digests of results that a target answered."""

    sent: list[str] = Field(default_factory=list)
    refused: dict[str, str] = Field(default_factory=dict)


@dataclass
class Confirmed:
    """What a target has answered about one night."""

    sent: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    """Digests of refused results, with the reason."""
    files: list[str] = field(default_factory=list)

    def __contains__(self, digest: str) -> bool:
        return digest in self.sent or digest in self.refused


def add(files: Files, manifest: Manifest, targets: Iterable[str]) -> list[WaitingNight]:
    """Record that a night is to be sent to targets. Raises StoreError."""
    waits = [
        WaitingNight(night=manifest.date, run=manifest.run, shards=manifest.shards, target=name)
        for name in targets
    ]
    added = []
    for night in waits:
        path = f"{OUTBOX}/{night.file}"
        before = find_record(files, path, WaitingNight, "not a waiting night and is replaced")
        since = before.early_since if before else None  # a repetition begins no new day
        added.append(night.model_copy(update={"early_since": since}))
        save_record(files, path, added[-1])
    return added


def waiting(files: Files) -> list[WaitingNight]:
    """All waiting nights, oldest first. Files of another kind are logged and ignored."""
    nights = [
        find_record(files, info.path, WaitingNight, "not a waiting night and is ignored")
        for info in files.below(OUTBOX)
        if info.size
    ]
    return sorted((one for one in nights if one), key=lambda one: (one.night, one.run, one.target))


def save(files: Files, one: WaitingNight) -> None:
    """Store the state of a waiting night."""
    save_record(files, f"{OUTBOX}/{one.file}", one)


def remove(files: Files, one: WaitingNight) -> None:
    """Remove a night that is sent, replaced or dropped."""
    files.discard(f"{OUTBOX}/{one.file}")


def give_up(files: Files, one: WaitingNight) -> str:
    """Move a waiting night to the given-up folder; return its address."""
    path = f"{GIVEN_UP}/{one.file}"
    save_record(files, path, one)
    remove(files, one)
    return files.uri(path)


def confirmed(files: Files, night: date, key: str) -> Confirmed:
    """What a target has answered about a night so far."""
    answered = Confirmed()
    for info in files.below(_folder(night, key)):
        if batch := find_record(files, info.path, _Batch, "not a list of sent scores"):
            answered.sent.update(batch.sent)
            answered.refused.update(batch.refused)
            answered.files.append(info.path)
    for digest in answered.sent & answered.refused.keys():  # refused at first, and taken later
        del answered.refused[digest]
    return answered


def confirm(
    files: Files, night: date, key: str, sent: Iterable[str], refused: Mapping[str, str]
) -> str:
    """Record what a target has answered; return the path. Raises StoreError."""
    batch = _Batch(sent=sorted(sent), refused=dict(refused))
    text = batch.model_dump_json()
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    path = f"{_folder(night, key)}/{digest}.json"
    files.write(path, text.encode())
    return path


def merge(files: Files, night: date, key: str) -> None:
    """Make one file of those of a night. A repetition, or another process, loses none."""
    answered = confirmed(files, night, key)
    if len(answered.files) < 2:
        return
    merged = confirm(files, night, key, answered.sent, answered.refused)
    for path in answered.files:
        if path != merged:
            files.discard(path)


def _folder(night: date, key: str) -> str:
    return f"{SENT}/dt={night.isoformat()}/{key}"
