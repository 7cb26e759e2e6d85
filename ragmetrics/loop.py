"""One event loop for all judging of this process, in a thread of its own.

Whoever scores, a thread of Prefect's or a notebook's cell, so shares clients, limits and the
answers on their way with the others.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the loop of this process; from any thread but the loop's own."""
    future = asyncio.run_coroutine_threadsafe(work, _running())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # where this thread is interrupted, by Ctrl-C say, the work ends too
        raise


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="ragmetrics", daemon=True).start()
        return _loop


@dataclass
class _Held(Generic[T]):
    thing: T
    holders: int = 0


class Shared(Generic[T]):
    """Things of this process that several hold at once: made for the first who asks, closed after
    the last. For use on one event loop.
    """

    def __init__(self, close: Callable[[T], Awaitable[None]]) -> None:
        self._close = close
        self._held: dict[str, _Held[T]] = {}

    @asynccontextmanager
    async def hold(self, key: str, make: Callable[[], T]) -> AsyncIterator[T]:
        """The thing of that key, while it is held."""
        if key not in self._held:
            self._held[key] = _Held(make())
        held = self._held[key]
        held.holders += 1
        try:
            yield held.thing
        finally:
            held.holders -= 1
            if not held.holders:
                del self._held[key]
                await self._close(held.thing)
