"""Batches: what was handed to a batch API, on record until its answers are kept.

    batches/judge=FINGERPRINT/NONCE.json

A record is written before anything is sent, again when its input file is there, and again when
the batch has its id; NONCE travels with the batch. So after `kill -9` at any moment the next run
knows what may be under way, and asks for it instead of paying twice.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from pydantic import AwareDatetime, Field, ValidationError

from ragmetrics.model import Record
from ragmetrics.storage import Files, remove_file

log = logging.getLogger(__name__)

_FOLDER = "batches"
# The API deletes the files of a batch after 30 days: there is nothing to go on with after that.
_LONGEST_KEPT = timedelta(days=30)
# Another machine's process that took longer to hand in a file of 200 MB than this is dead.
_LONGEST_SUBMIT = timedelta(minutes=15)

_submitting: set[str] = set()
"""The nonces that this process is handing in just now."""


def _now() -> datetime:
    return datetime.now(UTC)


class BatchRecord(Record):
    """One batch, from the intent to hand it in until its answers are kept."""

    nonce: str = Field(default_factory=lambda: uuid4().hex)
    requests: list[str]
    """The ids of its requests, as they stand in its input file."""
    form: str = ""
    """The form of structured output that was asked for."""
    created_at: AwareDatetime = Field(default_factory=_now)
    host: str = Field(default_factory=socket.gethostname)
    process: int = Field(default_factory=os.getpid, ge=0, lt=1 << 31)
    """Who hands it in."""
    input_file: str | None = None
    sent_at: AwareDatetime | None = None
    """From when on the batch may exist, though its id is not known yet."""
    batch: str | None = None

    @property
    def is_being_submitted(self) -> bool:
        """Whether somebody who may be alive is handing it in."""
        if self.batch:
            return False
        here = self.host == socket.gethostname()
        if here and self.process == os.getpid():
            return self.nonce in _submitting
        if _now() - self.created_at > _LONGEST_SUBMIT:
            return False
        return not here or _is_running(self.process)

    def claimed(self) -> BatchRecord:
        """The record, handed in by this process from now on."""
        _submitting.add(self.nonce)
        changes = {"host": socket.gethostname(), "process": os.getpid(), "created_at": _now()}
        return self.model_copy(update=changes)

    def released(self) -> None:
        """Say that this process hands it in no more."""
        _submitting.discard(self.nonce)


class BatchRecords:
    """The records of one judge; in memory only where there is no store.

    Several processes may use a folder: each record is written by the one that hands it in.
    """

    def __init__(self, files: Files | None, fingerprint: str) -> None:
        self._files = files
        self._folder = f"{_FOLDER}/judge={fingerprint}"
        self._known: dict[str, BatchRecord] = {}
        self._foreign: set[str] = set()

    def refresh(self) -> list[BatchRecord]:
        """All records, those that others wrote meanwhile among them; outdated ones are removed."""
        if self._files is not None:
            names = {_nonce(info.path): info.path for info in self._files.below(self._folder)}
            self._known = {nonce: one for nonce, one in self._known.items() if nonce in names}
            for nonce, path in names.items():
                known = self._known.get(nonce)
                if known is None or known.batch is None:
                    self._read(self._files, nonce, path)
        for nonce, record in list(self._known.items()):
            if _now() - record.created_at > _LONGEST_KEPT:
                self.remove(nonce)
        return list(self._known.values())

    def find(self, nonce: str) -> BatchRecord | None:
        """A record as it stands now; None where it is gone."""
        if self._files is not None:
            self._read(self._files, nonce, self._path(nonce))
        return self._known.get(nonce)

    def put(self, record: BatchRecord) -> BatchRecord:
        """Write a record; it is durable when this returns."""
        if self._files is not None:
            self._files.write(self._path(record.nonce), record.model_dump_json().encode())
        self._known[record.nonce] = record
        return record

    def remove(self, nonce: str) -> None:
        """Forget a batch."""
        self._known.pop(nonce, None)
        if self._files is not None:
            remove_file(self._files, self._path(nonce))

    def _read(self, files: Files, nonce: str, path: str) -> None:
        data = files.find(path)
        if not data:  # none, or empty: removed
            self._known.pop(nonce, None)
        elif record := _record(data, nonce):
            self._known[nonce] = record
        elif path not in self._foreign:
            self._foreign.add(path)
            _leave_aside(files, path)

    def _path(self, nonce: str) -> str:
        return f"{self._folder}/{nonce}.json"


def all_batches(files: Files) -> Iterator[BatchRecord]:
    """The records of all judges of a store, oldest first."""
    records = []
    for path in (info.path for info in files.below(_FOLDER)):
        data = files.find(path)
        if not data:  # none, or empty: removed
            continue
        if record := _record(data, _nonce(path)):
            records.append(record)
        else:
            _leave_aside(files, path)
    yield from sorted(records, key=lambda record: record.created_at)


def _record(data: bytes, nonce: str) -> BatchRecord | None:
    """What a file of this name says, if it is a record."""
    try:
        record = BatchRecord.model_validate_json(data)
    except ValidationError:
        return None
    return record if record.nonce == nonce else None


def _leave_aside(files: Files, path: str) -> None:
    """Never removed: a damaged record may be the last trace of a batch that is paid for."""
    log.warning("%s is left aside: it is no record of a batch", files.uri(path))


def _nonce(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A killed process that nobody waited for keeps its number, and does nothing.
    with suppress(OSError):
        stat = Path(f"/proc/{process}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] != b"Z"
    return True
