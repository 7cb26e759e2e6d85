"""Deadline of a run: the moment after which no judge, embedder or retriever is asked.

It is one absolute time for all parts of a run, on whatever machine they are scored. Whoever asks
finds it in the context, as it finds the budget.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

from ragmetrics.errors import OverDeadline


@dataclass(frozen=True)
class Deadline:
    """A moment on a clock, and the same moment in words."""

    at: float
    text: str
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds that are left; negative after the deadline."""
        return self.at - self.clock()

    def error(self) -> OverDeadline:
        """The error of a request that the deadline ends."""
        return OverDeadline(f"the run's deadline, {self.text}, has passed")


def deadline_at(until: datetime | None) -> Deadline | None:
    """The deadline at an absolute time; None: there is none."""
    if until is None:
        return None
    left = (until - datetime.now(UTC)).total_seconds()
    return Deadline(time.monotonic() + left, f"{until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


_in_use: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def use_deadline(deadline: Deadline | None) -> Iterator[None]:
    """What is asked meanwhile, by tasks that begin meanwhile, ends at this deadline."""
    token = _in_use.set(deadline)
    try:
        yield
    finally:
        _in_use.reset(token)


def deadline_in_use() -> Deadline | None:
    """The deadline of the run that asks here; None: there is none."""
    return _in_use.get()


def seconds_left() -> float:
    """Seconds until the deadline of the run that asks here; inf: there is none."""
    deadline = _in_use.get()
    return deadline.left if deadline else math.inf


@asynccontextmanager
async def before_deadline() -> AsyncIterator[None]:
    """Do it before the run's deadline. Raises OverDeadline where that has passed, or passes."""
    deadline = _in_use.get()
    if deadline is None:
        yield
        return
    if deadline.left <= 0:
        raise deadline.error()
    try:
        async with asyncio.timeout(deadline.left) as scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise deadline.error() from None
