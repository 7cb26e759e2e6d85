"""Which batch has which request, and who waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ragmetrics.errors import OverBudget
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_files import Fault
from ragmetrics.judges.cache.batches import BatchRecord
from ragmetrics.judges.spend_limit import SpendLimiter, budget_in_use
from ragmetrics.model import Ask


@dataclass
class Item:
    """One request, asked once however many wait for it."""

    name: str
    request: Ask
    answer: asyncio.Future[Reply]
    failures: Counter[str] = field(default_factory=Counter)
    purse: SpendLimiter | None = field(default_factory=budget_in_use)
    """Of the part that asked first."""

    def pay(self) -> None:
        """Called before it is sent. Raises OverBudget."""
        try:
            if self.purse:
                self.purse.attempt()
        except OverBudget as error:
            error.failures = dict(self.failures)
            raise


@dataclass
class Job:
    """A batch and who waits for it."""

    record: BatchRecord
    requests: frozenset[str]
    unsettled: set[str]
    """The requests whose answers are not kept yet."""
    file: Path | None = None
    waiting: dict[str, Item] = field(default_factory=dict)
    outcomes: dict[str, Reply | Fault] | None = None
    """What became of each request; None while the batch is at work."""
    task: asyncio.Task[None] | None = None

    @property
    def is_followed(self) -> bool:
        """Whether somebody sees it to its end."""
        return self.task is not None and not self.task.done()

    @property
    def is_settled(self) -> bool:
        """Whether all it brought is kept."""
        return self.outcomes is not None and not self.unsettled

    @property
    def rest(self) -> BatchRecord | None:
        """The record of what is not kept yet, where that is less than all."""
        rest = [name for name in self.record.requests if name in self.unsettled]
        if self.outcomes is None or len(rest) == len(self.record.requests):
            return None
        return self.record.model_copy(update={"requests": rest})


class Jobs:
    """All batches on record. They are few, so that each is asked whether it has a request."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def add(self, record: BatchRecord) -> Job:
        """The batch of a record, known from now on."""
        job = self._jobs.get(record.nonce)
        if job is None:
            requests = frozenset(record.requests)
            job = self._jobs[record.nonce] = Job(record, requests, set(requests))
        return job

    def all(self) -> list[Job]:
        """Every batch."""
        return list(self._jobs.values())

    def forget(self, job: Job) -> None:
        """Know a batch no more."""
        self._jobs.pop(job.record.nonce, None)

    def reply_to(self, name: str) -> Reply | None:
        """The reply that an ended batch brought."""
        for job in self._with(name):
            outcome = job.outcomes.get(name) if job.outcomes is not None else None
            if isinstance(outcome, Reply):
                return outcome
        return None

    def at_work_on(self, name: str) -> Job | None:
        """A batch at work that has the request."""
        return next((job for job in self._with(name) if job.outcomes is None), None)

    def settle(self, names: Iterable[str]) -> list[Job]:
        """Note that the answers to requests are kept; the batches that are settled by it."""
        touched = [(job, name) for name in names for job in self._with(name)]
        for job, name in touched:
            job.unsettled.discard(name)
        return [job for job, _ in touched if job.is_settled]

    def _with(self, name: str) -> list[Job]:
        return [job for job in self._jobs.values() if name in job.requests]
