"""Batches from their records to their outcomes.

A run takes a batch to its end from any state:

    recorded -> uploaded -> requested -> has its id -> ended
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ragmetrics.config import JudgeSettings, api_key
from ragmetrics.errors import JudgeError, JudgePending
from ragmetrics.judges.base import Reply, find_access
from ragmetrics.judges.batch_api import ENDED, BatchApi, counted, make_client
from ragmetrics.judges.batch_files import Fault, FaultAction, failed
from ragmetrics.judges.batch_records import BatchRecord, BatchRecords, all_batches
from ragmetrics.storage import Files

if TYPE_CHECKING:
    from openai.types import Batch

log = logging.getLogger(__name__)
T = TypeVar("T")
# Past the end of its window. A batch that has not ended by then never will.
_LATE = timedelta(hours=1)
_WINDOW = timedelta(hours=24)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class OpenBatch:
    """A batch whose answers are not read yet, as the endpoint knows it."""

    batch: str | None
    """Its id; None if it was not submitted."""
    requests: int
    created_at: str
    state: str


async def open_batches(
    files: Files, judge: JudgeSettings, cancel: str | None = None
) -> list[OpenBatch]:
    """The batches on record in a store, oldest first, by what the endpoint of a judge says of them.

    `cancel`: the id of a batch to be cancelled, or `all`. Raises JudgeError and StoreError.
    """
    records = list(all_batches(files))
    if not records:
        return []
    access = find_access(judge, judge.base_url, api_key(judge.api_key_env, os.environ))
    api = BatchApi(make_client(access, judge))
    try:
        return [await _looked_up(api, record, cancel) for record in records]
    finally:
        await api.close()


async def _looked_up(api: BatchApi, record: BatchRecord, cancel: str | None) -> OpenBatch:
    # A run that was killed before it could store the id has a batch all the same.
    name = record.batch or (await api.find(record) if record.sent_at else None)
    batch = await api.look(name) if name else None
    if name and batch and cancel in ("all", name) and batch.status not in ENDED:
        batch = await api.cancel(name)
    state = counted(batch) if batch is not None else "unknown to the endpoint"
    created = record.created_at.isoformat(timespec="seconds")
    return OpenBatch(name, len(record.requests), created, state)


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
        outcomes = await self._with_retries(lambda: self._api.outcomes(batch))
        kind = batch.status if batch.status in ("expired", "cancelled") else "server_error"
        message = f"batch {batch.id} is {batch.status} and has no answer to it"
        missing = Fault(kind, message, FaultAction.ASK_AGAIN)
        return {
            name: self._final_outcome(outcomes.get(name, missing)) for name in self.record.requests
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
            record = await asyncio.to_thread(self._records.find, self.record.nonce)
            if record is None:
                raise BatchGone
            # The output also has the requests that others have since removed from the record.
            self.record = record.model_copy(update={"requests": self.record.requests})

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
