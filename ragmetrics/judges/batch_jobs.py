"""The requests that wait for batches, and the batches that this run waits for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragmetrics.errors import RagmetricsError
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_files import Fault
from ragmetrics.judges.batch_records import BatchRecord
from ragmetrics.judges.spending import SpendLimiter, budget_in_use
from ragmetrics.records import Ask


@dataclass
class Item:
    """One request, sent once for all that wait for it."""

    name: str
    request: Ask
    answer: asyncio.Future[Reply]
    failures: Counter[str] = field(default_factory=Counter)
    budget: SpendLimiter | None = field(default_factory=budget_in_use)
    """Budget of the part that asked first."""

    def answered(self, reply: Reply) -> None:
        """Give the reply to all that wait for it."""
        if not self.answer.done():
            failures = dict(self.failures)
            self.answer.set_result(replace(reply, failures=failures) if failures else reply)

    def failed(self, error: Exception) -> None:
        """Raise the error in all that wait for the reply."""
        if not self.answer.done():
            # One error object per waiter: the traceback of a shared one grows with each.
            fault = copy(error) if isinstance(error, RagmetricsError) else error
            self.answer.set_exception(fault)


@dataclass
class Job:
    """A batch and the items that wait for it."""

    record: BatchRecord
    requests: frozenset[str]
    unsettled: set[str]
    """Requests whose answers are not cached yet."""
    file: Path | None = None
    waiting: dict[str, Item] = field(default_factory=dict)
    outcomes: dict[str, Reply | Fault] | None = None
    """Outcome of each request; None while the batch is in progress."""
    task: asyncio.Task[None] | None = None

    @property
    def is_followed(self) -> bool:
        """Whether a task waits for its end."""
        return self.task is not None and not self.task.done()

    @property
    def is_settled(self) -> bool:
        """Whether all its answers are cached."""
        return self.outcomes is not None and not self.unsettled

    @property
    def rest(self) -> BatchRecord | None:
        """Record of the requests that are not cached yet; None if these are all."""
        rest = [name for name in self.record.requests if name in self.unsettled]
        if self.outcomes is None or len(rest) == len(self.record.requests):
            return None
        return self.record.model_copy(update={"requests": rest})


class Jobs:
    """All batches on record. They are few, so a request is searched for in each."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def add(self, record: BatchRecord) -> Job:
        """Register the batch of a record, and return it."""
        job = self._jobs.get(record.nonce)
        if job is None:
            requests = frozenset(record.requests)
            job = self._jobs[record.nonce] = Job(record, requests, set(requests))
        return job

    def all(self) -> list[Job]:
        """Every batch."""
        return list(self._jobs.values())

    def forget(self, job: Job) -> None:
        """Drop a batch."""
        self._jobs.pop(job.record.nonce, None)

    def reply_to(self, name: str) -> Reply | None:
        """The reply to a request in a batch that has ended."""
        for job in self._with(name):
            outcome = job.outcomes.get(name) if job.outcomes is not None else None
            if isinstance(outcome, Reply):
                return outcome
        return None

    def at_work_on(self, name: str) -> Job | None:
        """A batch in progress that has the request."""
        return next((job for job in self._with(name) if job.outcomes is None), None)

    def settle(self, names: Iterable[str]) -> list[Job]:
        """Note that the answers to requests are cached; return the batches that this settles."""
        touched = [(job, name) for name in names for job in self._with(name)]
        for job, name in touched:
            job.unsettled.discard(name)
        return [job for job, _ in touched if job.is_settled]

    def _with(self, name: str) -> list[Job]:
        return [job for job in self._jobs.values() if name in job.requests]
