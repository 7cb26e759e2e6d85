"""One event loop for all judging of this process, in a thread of its own.

So all scoring threads, of Prefect or of a notebook, share clients, limits and pending answers. A
forked child starts a new loop, because threads are not forked. The loop ends before the interpreter
does: native code that runs while the interpreter is taken down can crash the process.
"""

from __future__ import annotations

import asyncio
import atexit
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
"""Most seconds that an interrupted thread, or the end of the process, waits for cancelled work."""


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # a tenth less CPU time per request than asyncio's own loop
    except ImportError:  # not available on Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self, name: str = "ragmetrics") -> None:
        self.loop = _new_loop()
        self.thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def stop(self) -> None:
        """Cancel the work that is left and end the thread. Work that blocks the loop is left."""
        asyncio.run_coroutine_threadsafe(self._end(), self.loop)
        self.thread.join(_PARTING_SECONDS)

    async def _end(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self.loop.stop()


_lock = threading.Lock()
_background: LoopThread | None = None


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop of this process, from any other thread, and wait for it.

    If the waiting thread is interrupted, as by Ctrl-C, the work is cancelled. Raises what the work
    raises, and RuntimeError on the loop's own thread, which would deadlock.
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
    """Work that can be cancelled at any time, also before its first step, because a signal can
    arrive at any time.
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
        """Cancel the work; call it on the loop."""
        self._cancelled = True
        if self._task is None:
            self._work.close()
            self.ended.set()
        else:
            self._task.cancel()


def _running() -> LoopThread:
    global _background
    with _lock:
        if _background is None:
            _background = LoopThread()
        return _background


@atexit.register
def _stop() -> None:
    global _background
    with _lock:
        ended, _background = _background, None
    if ended is not None:
        ended.stop()


@dataclass
class _Held(Generic[T]):
    made: asyncio.Future[T]
    holders: int = 0


class PerLoop(Generic[T]):
    """Objects shared on one event loop: made for the first user, closed after the last.

    They are made in a thread, one after the other, so that the loop is not blocked.
    """

    def __init__(self, close: Callable[[T], Awaitable[None]]) -> None:
        self._close = close
        self._held: dict[str, _Held[T]] = {}
        self._keepers = 0
        self._making = threading.Lock()
        _all_shared.add(self)

    @asynccontextmanager
    async def hold(self, key: str | None, make: Callable[[], T]) -> AsyncIterator[T]:
        """The object of a key, shared by its users; with None a private one.

        Raises what `make` or `close` raises.
        """
        name = uuid.uuid4().hex if key is None else key
        held = self._held.get(name)
        if held is None:
            # In a thread: importing a library or reading model weights takes seconds.
            future = asyncio.ensure_future(asyncio.to_thread(self._make, make))
            held = self._held[name] = _Held(future)
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
        """Within this context, objects with a key stay open between two users.

        Raises what `close` raises.
        """
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1
            if not self._keepers:
                idle = [name for name, held in self._held.items() if not held.holders]
                # Removed first, so that none is used while another is being closed.
                left = [self._held.pop(name).made for name in idle]
                async with AsyncExitStack() as stack:
                    for future in left:
                        stack.push_async_callback(self._let_go, future)

    def _make(self, make: Callable[[], T]) -> T:
        with self._making:
            return make()

    async def _let_go(self, future: asyncio.Future[T]) -> None:
        await asyncio.wait([future])  # the user may have been cancelled meanwhile
        if not future.exception():
            await self._close(future.result())

    def forget(self) -> None:
        """Drop all objects without closing them: they belong to the parent process."""
        self._held, self._keepers, self._making = {}, 0, threading.Lock()


def _is_made(future: asyncio.Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


_all_shared: WeakSet[PerLoop[Any]] = WeakSet()


def _begin_anew() -> None:
    global _lock, _background
    _lock, _background = threading.Lock(), None
    for shared in _all_shared:
        shared.forget()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin_anew)
