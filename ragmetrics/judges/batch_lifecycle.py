"""Batches from their records to their outcomes.

    batches/judge=FINGERPRINT/NONCE.json

A record is written before anything is sent, after the upload of the input file, and when the batch
has its id. The metadata of the batch hold NONCE. So after `kill -9` at any moment the next run can
find the batch and does not pay twice. A record is removed when all its answers are cached.

A run takes a batch to its end from any state:

    recorded -> uploaded -> requested -> has its id -> ended
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from pydantic import AwareDatetime, Field, ValidationError

from ragmetrics.errors import JudgeError, JudgePending
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_api import ENDED, BatchApi, counted
from ragmetrics.judges.batch_files import Fault, FaultAction, failed
from ragmetrics.records import Record
from ragmetrics.storage import Files, remove_file

if TYPE_CHECKING:
    from openai.types import Batch

    from ragmetrics.config import JudgeSettings

log = logging.getLogger(__name__)
T = TypeVar("T")
# Past the end of its window. A batch that has not ended by then never will.
_LATE = timedelta(hours=1)
_WINDOW = timedelta(hours=24)
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


class BatchGone(Exception):
    """The batch was never created, or the endpoint has deleted it."""


class ProgressDeadline:
    """Deadline of a run's wait for batches; each progress renews it."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._since: float | None = None

    def renew(self) -> None:
        """Restart the clock: a batch was submitted or has ended."""
        self._since = asyncio.get_running_loop().time()

    @property
    def left(self) -> float:
        """Seconds left. The clock starts at the first call at the latest."""
        if self._since is None:
            self.renew()
        return self._seconds - (asyncio.get_running_loop().time() - (self._since or 0.0))


class BatchRun:
    """Runs one batch to its end. All its methods raise JudgeError and StoreError."""

    def __init__(
        self,
        api: BatchApi,
        records: BatchRecords,
        settings: JudgeSettings,
        progress: ProgressDeadline,
        record: BatchRecord,
        settle_seconds: float,
    ) -> None:
        self.record = record
        self.failure: Fault | None = None
        """Why the whole batch failed before any request was answered."""
        self._api, self._records, self._settings = api, records, settings
        self._progress, self._settle = progress, settle_seconds
        self._seen_at_work = False
        self._may_exist = record.sent_at is not None

    async def submit(self, file: Path | None) -> None:
        """Submit the batch, or finish the submission that an earlier run began.

        Raises BatchGone if that run created nothing that could be charged.
        """
        if file is None:
            await self._wait_for_others()
        if self.record.batch:
            return
        self.record = self.record.claimed()
        try:
            if file is not None:
                await self._upload(file)
                name = await self._create()
            elif self.record.input_file is not None:
                await self._put()
                name = await self._found() or await self._create()
            else:
                raise BatchGone
            await self._put(batch=name)
        except JudgeError:
            if not self._may_exist:
                await asyncio.to_thread(self._records.remove, self.record.nonce)
            raise
        finally:
            self.record.released()
        self._progress.renew()

    async def outcomes(self) -> dict[str, Reply | Fault]:
        """Wait for the end of the batch; return the outcome of each request.

        Raises JudgePending if the deadline comes first, BatchGone if there is no such batch.
        """
        batch = await self._ended()
        if batch.status == "failed":
            errors = (batch.errors.data if batch.errors else None) or []
            self.failure = failed((error.code, error.message) for error in errors)
            return dict.fromkeys(self.record.requests, self.failure)
        found = await self._with_retries(lambda: self._api.outcomes(batch))
        kind = batch.status if batch.status in ("expired", "cancelled") else "server_error"
        message = f"batch {batch.id} is {batch.status} and has no answer to it"
        missing = Fault(kind, message, FaultAction.ASK_AGAIN)
        return {
            name: self._final_outcome(found.get(name, missing)) for name in self.record.requests
        }

    def _final_outcome(self, outcome: Reply | Fault) -> Reply | Fault:
        """The outcome, final if somebody cancelled the batch while this run waited for it."""
        cancelled = isinstance(outcome, Fault) and outcome.kind == "cancelled"
        if cancelled and self._seen_at_work and isinstance(outcome, Fault):
            return replace(outcome, then=FaultAction.GIVE_UP)
        return outcome

    async def _wait_for_others(self) -> None:
        while self.record.is_being_submitted:
            await asyncio.sleep(min(1.0, self._settings.poll_seconds))
            found = await asyncio.to_thread(self._records.find, self.record.nonce)
            if found is None:
                raise BatchGone
            # The output also has the requests that others have since removed from the record.
            self.record = found.model_copy(update={"requests": self.record.requests})

    async def _upload(self, file: Path) -> None:
        name = await self._api.upload(file)
        # Recorded before the batch is requested: from here on it may exist.
        await self._put(input_file=name, sent_at=_now())

    async def _create(self) -> str:
        for attempt in range(1 + self._settings.retries):
            self._may_exist = True
            try:
                return await self._api.create(self.record)
            except JudgeError as error:
                self._may_exist = error.transient
                if not error.transient or attempt == self._settings.retries:
                    raise
                log.warning("creating a batch: %s", error)
            # Even after an error or a lost answer the batch may exist.
            await self._put(sent_at=_now())
            if name := await self._found():
                return name
        raise AssertionError("the last attempt returns or raises")

    async def _found(self) -> str | None:
        """The id of the batch, if it was created; polls until it must be in the list."""
        sent = self.record.sent_at or self.record.created_at
        left = self._settle - (_now() - sent).total_seconds()
        deadline = asyncio.get_running_loop().time() + min(left, self._settle)
        while True:
            name = await self._with_retries(lambda: self._api.find(self.record))
            left = deadline - asyncio.get_running_loop().time()
            if name or left <= 0:
                return name
            await asyncio.sleep(min(left, self._settings.poll_seconds))

    async def _ended(self) -> Batch:
        name = self.record.batch or ""
        while True:
            batch = await self._with_retries(lambda: self._api.look(name))
            if batch is None:
                raise BatchGone
            if batch.status in ENDED:
                return batch
            self._seen_at_work = True
            if _now() > _last_moment(batch):
                raise JudgeError(f"batch {name} has not ended within its window: {batch.status}")
            if self._progress.left <= 0:
                raise JudgePending(
                    f"batch {name} is still in progress ({counted(batch)}); "
                    "the same command continues with it"
                )
            await asyncio.sleep(min(self._settings.poll_seconds, max(self._progress.left, 0.01)))

    async def _with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry a call until it succeeds or the deadline comes."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._settings.deadline_seconds
        while True:
            try:
                return await call()
            except JudgeError as error:
                if not error.transient:
                    raise
                if clock() > deadline or self._progress.left <= 0:
                    raise JudgePending(
                        f"the state of a batch cannot be read now ({error}); "
                        "the same command continues with it"
                    ) from error
                log.warning("reading the state of a batch: %s", error)
            await asyncio.sleep(self._settings.poll_seconds)

    async def _put(self, **changes: Any) -> None:
        self.record = self.record.model_copy(update=changes)
        await asyncio.to_thread(self._records.put, self.record)


def _last_moment(batch: Batch) -> datetime:
    if batch.expires_at:
        return datetime.fromtimestamp(batch.expires_at, UTC) + _LATE
    return datetime.fromtimestamp(batch.created_at, UTC) + _WINDOW + _LATE
