"""Deadline of a run: no request to a judge, embedder or retriever continues after it.

It is one absolute time for all parts of a run, on all machines. Like the budget, it is passed to
requests in a context variable.
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
    """A time on a clock, and the same time as text."""

    at: float
    text: str
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds left; negative after the deadline."""
        return self.at - self.clock()

    def error(self) -> OverDeadline:
        """The error for a request that the deadline ends."""
        return OverDeadline(f"the run's deadline, {self.text}, has passed")


def deadline_at(until: datetime | None) -> Deadline | None:
    """The deadline at an absolute time; None if there is none."""
    if until is None:
        return None
    left = (until - datetime.now(UTC)).total_seconds()
    return Deadline(time.monotonic() + left, f"{until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


_deadline_in_use: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def use_deadline(deadline: Deadline | None) -> Iterator[None]:
    """Apply a deadline to the requests made in this context, and in tasks started in it."""
    token = _deadline_in_use.set(deadline)
    try:
        yield
    finally:
        _deadline_in_use.reset(token)


def deadline_in_use() -> Deadline | None:
    """The deadline of the current context; None if there is none."""
    return _deadline_in_use.get()


def seconds_left() -> float:
    """Seconds until the deadline of the current context; inf if there is none."""
    deadline = _deadline_in_use.get()
    return deadline.left if deadline else math.inf


@asynccontextmanager
async def before_deadline() -> AsyncIterator[None]:
    """Run the body before the deadline. Raises OverDeadline when it passes."""
    deadline = _deadline_in_use.get()
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
