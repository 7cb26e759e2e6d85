"""Records of batches: what is known of each, from before it is sent until its answers are cached.

    batches/judge=FINGERPRINT/NONCE.json

A record is written before anything is sent, after the upload of the input file, and when the batch
has its id. The metadata of the batch hold NONCE. So after `kill -9` at any moment the next run can
find the batch and does not pay twice. A record is removed when all its answers are cached.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from pydantic import AwareDatetime, Field, ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.records import Record
from ragmetrics.storage import Files

log = logging.getLogger(__name__)
_FOLDER = "batches"
# The API deletes the files of a batch after 30 days.
_LONGEST_KEPT = timedelta(days=30)
# A process of another machine that takes longer to submit a file of 200 MB counts as dead.
_LONGEST_SUBMIT = timedelta(minutes=15)
_submitting: set[str] = set()
"""Nonces of the batches that this process is submitting now."""


def _now() -> datetime:
    return datetime.now(UTC)


class BatchRecord(Record):
    """One batch, from before its submission until its answers are cached."""

    nonce: str = Field(default_factory=lambda: uuid4().hex)
    requests: list[str]
    """Ids of its requests, as in its input file."""
    form: str = ""
    """Requested format of structured output."""
    parameters: dict[str, str | float] = Field(default_factory=dict)
    """Parameters of its requests that not every model takes (`RequestParameters.sent`)."""
    created_at: AwareDatetime = Field(default_factory=_now)
    host: str = Field(default_factory=socket.gethostname)
    process: int = Field(default_factory=os.getpid, ge=0, lt=1 << 31)
    """Id of the process that submits it."""
    input_file: str | None = None
    sent_at: AwareDatetime | None = None
    """Time from which the batch may exist, even while its id is unknown."""
    batch: str | None = None

    @property
    def is_being_submitted(self) -> bool:
        """Whether a process that may be alive is submitting it."""
        if self.batch:
            return False
        here = self.host == socket.gethostname()
        if here and self.process == os.getpid():
            return self.nonce in _submitting
        if _now() - self.created_at > _LONGEST_SUBMIT:
            return False
        return not here or _is_running(self.process)

    def claimed(self) -> BatchRecord:
        """A copy that names this process as the one that submits it."""
        _submitting.add(self.nonce)
        changes = {"host": socket.gethostname(), "process": os.getpid(), "created_at": _now()}
        return self.model_copy(update=changes)

    def released(self) -> None:
        """Note that this process no longer submits it."""
        _submitting.discard(self.nonce)


class BatchRecords:
    """The batch records of one judge; without a store they are held in memory only.

    Several processes may use a folder: each record is written by the one that submits the batch.
    """

    def __init__(self, files: Files | None, fingerprint: str) -> None:
        self._files = files
        self._folder = f"{_FOLDER}/judge={fingerprint}"
        self._known: dict[str, BatchRecord] = {}
        self._foreign: set[str] = set()

    def refresh(self) -> list[BatchRecord]:
        """All records, also those of other processes; outdated ones are removed."""
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
        """Current state of a record; None if it was removed."""
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
        """Remove the record of a batch."""
        self._known.pop(nonce, None)
        if self._files is not None:
            self._files.discard(self._path(nonce))

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


def batched_requests(files: Files, fingerprint: str) -> set[str]:
    """The ids of the requests in a judge's open batches: KEY-ATTEMPT."""
    records = BatchRecords(files, fingerprint).refresh()
    return {name for record in records for name in record.requests}


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
    """The record in a file; None if it is not one."""
    try:
        record = BatchRecord.model_validate_json(data)
    except ValidationError:
        return None
    return record if record.nonce == nonce else None


def _leave_aside(files: Files, path: str) -> None:
    """Log it and leave it: a damaged record may be the only trace of a batch that was paid for."""
    log.warning("%s is ignored: it is not a record of a batch", files.uri(path))


def _nonce(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".json")


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A zombie process keeps its number, and does nothing.
    with suppress(OSError):
        stat = Path(f"/proc/{process}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] != b"Z"
    return True


@contextmanager
def log_store_errors() -> Iterator[None]:
    """Log a StoreError: a stale record costs the next run one request, and no answer."""
    try:
        yield
    except StoreError as error:
        log.warning("the record of a batch cannot be updated: %s", error)
