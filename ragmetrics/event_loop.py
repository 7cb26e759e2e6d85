"""One event loop for all judging of this process, in a thread of its own.

Whoever scores, a thread of Prefect's or a notebook's cell, so shares clients, limits and the
answers on their way with the others. A forked child begins anew: threads do not come along.
"""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_PARTING_SECONDS = 5.0
"""Longest that an interrupted thread waits for its work to put things in order."""


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # a tenth less processor time a request than asyncio's own
    except ImportError:  # there is none for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class _Background:
    """The loop and its thread."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="ragmetrics", daemon=True)
        self.thread.start()


_lock = threading.Lock()
_background: _Background | None = None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the loop of this process; from any thread but the loop's own.

    Where the thread that waits is interrupted, by Ctrl-C say, the work is cancelled. Raises what
    the work raises, and RuntimeError on the loop itself, which would wait for itself for ever.
    """
    background = _running()
    if threading.current_thread() is background.thread:
        work.close()
        raise RuntimeError("a coroutine on the loop of ragmetrics is awaited, not run")
    watched = _Watched(work)
    try:
        return asyncio.run_coroutine_threadsafe(watched.run(), background.loop).result()
    except BaseException:
        if not watched.ended.is_set():
            background.loop.call_soon_threadsafe(watched.cancel)
            watched.ended.wait(_PARTING_SECONDS)
        raise


class _Watched(Generic[T]):
    """Work that can be cancelled at any moment, before its first step or between its being
    handed to the loop and its future's coming back as well: a signal waits for none of them.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.ended = threading.Event()
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False

    async def run(self) -> T:
        if self._cancelled:
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        try:
            return await self._work
        finally:
            self.ended.set()

    def cancel(self) -> None:
        """On the loop."""
        self._cancelled = True
        if self._task is None:
            self._work.close()
            self.ended.set()
        else:
            self._task.cancel()


def _running() -> _Background:
    global _background
    with _lock:
        if _background is None:
            _background = _Background()
        return _background


@dataclass
class _Held(Generic[T]):
    made: asyncio.Future[T]
    holders: int = 0


class PerLoop(Generic[T]):
    """Things of this process that several hold at once: made for the first who asks, closed after
    the last. For use on one event loop, which goes on while they are made, one after the other.
    """

    def __init__(self, close: Callable[[T], Awaitable[None]]) -> None:
        self._close = close
        self._held: dict[str, _Held[T]] = {}
        self._keepers = 0
        self._making = threading.Lock()
        _all_shared.add(self)

    @asynccontextmanager
    async def hold(self, key: str | None, make: Callable[[], T]) -> AsyncIterator[T]:
        """The thing of that key, or one of its holder's own, while it is held.

        Raises what `make` or its close raises.
        """
        name = uuid.uuid4().hex if key is None else key
        held = self._held.get(name)
        if held is None:
            # In a thread: importing a library or reading a model's weights takes seconds.
            made = asyncio.ensure_future(asyncio.to_thread(self._make, make))
            held = self._held[name] = _Held(made)
        held.holders += 1
        try:
            yield await asyncio.shield(held.made)
        finally:
            held.holders -= 1
            stays = self._keepers and key is not None and _is_made(held.made)
            if not held.holders and not stays:
                await self._let_go(self._held.pop(name).made)

    @asynccontextmanager
    async def keep(self) -> AsyncIterator[None]:
        """While this is open, what has a key stays open between one holder and the next.

        Raises what a close raises.
        """
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1
            if not self._keepers:
                idle = [name for name, held in self._held.items() if not held.holders]
                # Nobody may take one while another one is being closed.
                left = [self._held.pop(name).made for name in idle]
                async with AsyncExitStack() as stack:
                    for made in left:
                        stack.push_async_callback(self._let_go, made)

    def _make(self, make: Callable[[], T]) -> T:
        with self._making:
            return make()

    async def _let_go(self, made: asyncio.Future[T]) -> None:
        await asyncio.wait([made])  # who asked may have been cancelled meanwhile
        if not made.exception():
            await self._close(made.result())

    def forget(self) -> None:
        """Let go of everything, and leave it open: it is the business of another process."""
        self._held, self._keepers, self._making = {}, 0, threading.Lock()


def _is_made(made: asyncio.Future[Any]) -> bool:
    return made.done() and not made.cancelled() and made.exception() is None


_all_shared: WeakSet[PerLoop[Any]] = WeakSet()


def _begin_anew() -> None:
    global _lock, _background
    _lock, _background = threading.Lock(), None
    for shared in _all_shared:
        shared.forget()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin_anew)
