"""Deadline of a run: one absolute time for all its parts, on all machines.

After it no request goes to a judge, an embedder or a retriever, and errors of a bucket are not
waited out. It is passed on in a context variable, so that requests of different runs can share
clients and connections.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime

from ragmetrics.errors import OverDeadline

_deadline_in_use: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


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


@contextmanager
def use_deadline(deadline: Deadline | None) -> Iterator[None]:
    """Apply a deadline to what is done in this context, and in tasks started in it."""
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


def check_deadline() -> None:
    """Raise OverDeadline if the deadline has passed."""
    deadline = _deadline_in_use.get()
    if deadline and deadline.left <= 0:
        raise deadline.error()


def before_deadline() -> AbstractAsyncContextManager[None]:
    """Run the body before the deadline. Raises OverDeadline when it passes."""
    deadline = _deadline_in_use.get()
    return _before(deadline) if deadline else nullcontext()


@asynccontextmanager
async def _before(deadline: Deadline) -> AsyncIterator[None]:
    if deadline.left <= 0:
        raise deadline.error()
    try:
        async with asyncio.timeout(deadline.left) as scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise deadline.error() from None
