"""Divides an endpoint's limits among the processes that use it and share a store.

Each process writes a heartbeat file to the store, renews it every few seconds and lists the others:

    workers/judge=ENDPOINT/PROCESS.json

With n live heartbeats a process takes 1/n of the limits. Requests need no coordination. The age of
a heartbeat is the difference between two modification times of the store; clocks of machines are
never compared. A new process takes a small share until the others must have seen its heartbeat, so
the sum stays near the limits.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import json
import logging
import os
import platform
import threading
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from ragmetrics.errors import StoreError
from ragmetrics.storage import SECONDS, Files

log = logging.getLogger(__name__)

T = TypeVar("T")

REFRESH_SECONDS = 5.0
"""Interval at which a heartbeat is renewed and the others are listed."""
EXPIRY_SECONDS = 30.0
"""Age from which the process of a heartbeat counts as dead."""
GRACE_SECONDS = 7.0
"""Time after which the other processes have seen a new heartbeat."""
LINGER_SECONDS = 10.0
"""Time that a heartbeat stays after its last user, so that a process keeps it between two parts."""
_LITTLE = 16  # a new process takes a sixteenth of its share
_REMOVAL_SECONDS = 10 * EXPIRY_SECONDS  # age from which any process may remove a heartbeat
_EXIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class QuotaShare:
    """Share of an endpoint's limits: number `place` of `of` equal shares."""

    place: int = 0
    of: int = 1
    settled: bool = True
    """Whether the others have seen this process; until then it takes a small share."""

    def places(self, ceiling: int) -> int:
        """Concurrent requests, at least one. The sum over all shares is the ceiling."""
        own = ceiling * (self.place + 1) // self.of - ceiling * self.place // self.of
        return max(1, own if self.settled else own // _LITTLE)

    def rate(self, per_minute: float) -> float:
        """Requests or tokens per minute."""
        return per_minute / self.of / (1 if self.settled else _LITTLE)


class _NoThread(Exception):
    """The interpreter shuts down and starts no more threads; the event loop still runs."""


def _in_thread(work: Callable[[], T]) -> Awaitable[T]:
    """Call `work` in a thread. Raises _NoThread."""
    try:
        return asyncio.get_running_loop().run_in_executor(None, work)
    except RuntimeError as error:  # raised by the executor; errors of `work` are raised on await
        raise _NoThread from error


class QuotaSharer(Protocol):
    """A limiter that applies the smallest of its shares."""

    def share(self, of: object, share: QuotaShare | None) -> None:
        """Apply a share; None removes the share of this source."""


class Heartbeat:
    """Heartbeat of this process for one endpoint. Belongs to one event loop."""

    def __init__(self, files: Files, folder: str, forget: Callable[[], object]) -> None:
        self._files, self._folder, self._forget = files, folder, forget
        self._path = f"{folder}/{uuid.uuid4().hex}.json"
        self._share = QuotaShare(settled=False)
        self._limiters: Counter[QuotaSharer] = Counter()
        self._settled = self._failed = False
        self._seen: float | None = None
        self._since = 0.0
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._writing = threading.Lock()
        self._gone = False
        self._process = os.getpid()

    def join(self, limiter: QuotaSharer) -> None:
        """Apply the share, and its changes, to a limiter until it leaves."""
        self._limiters[limiter] += 1
        limiter.share(self, self._share)
        if self._ending:
            self._ending.cancel()
            self._ending = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def leave(self, limiter: QuotaSharer) -> None:
        """Release a limiter. The heartbeat is removed some seconds after the last one."""
        self._limiters[limiter] -= 1
        if not self.used:
            self._ending = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._end)

    @property
    def used(self) -> bool:
        """Whether any limiter uses it."""
        return self._limiters.total() > 0

    async def depart(self) -> None:
        """Remove the heartbeat now."""
        self._end()
        if self._task:
            await asyncio.wait([self._task])

    def withdraw(self, patience: float = -1) -> None:
        """Remove the heartbeat for good; blocks."""
        if self._process != os.getpid() or not self._writing.acquire(timeout=patience):
            return  # this is a forked copy, or the store hangs
        try:
            if not self._gone:
                self._gone = True
                # A file that stays expires soon.
                with suppress(StoreError):
                    self._files.remove(self._path)
        finally:
            self._writing.release()
        _registered.discard(self)

    def _end(self) -> None:
        if self._ending:
            self._ending.cancel()
            self._ending = None
        self._forget()
        for limiter in self._limiters:
            limiter.share(self, None)
        if self._task:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._refresh()
                except _NoThread:
                    return
                except Exception as error:  # any error: the other processes rely on the heartbeat
                    self._fail(error)
                wait = REFRESH_SECONDS if self._settled else GRACE_SECONDS / 2
                await asyncio.sleep(wait)
        finally:
            with suppress(_NoThread):  # `_withdraw_all` removes the heartbeat
                await _in_thread(self.withdraw)

    async def _refresh(self) -> None:
        """Renew the heartbeat, and apply the share that follows from the live ones."""
        now = asyncio.get_running_loop().time()
        alive = await _in_thread(self._renew)
        self._failed = False
        if self._seen is None or now - self._seen > EXPIRY_SECONDS - REFRESH_SECONDS:
            # The others may count this process as dead.
            self._since, self._settled = now, False
        self._seen = now
        alone = len(alive) == 1
        self._settled = self._settled or alone or now - self._since >= GRACE_SECONDS
        self._apply(QuotaShare(alive.index(self._path), len(alive), self._settled))

    def _fail(self, error: Exception) -> None:
        if not self._failed and not self._gone:
            # Any error but StoreError is unexpected: log its traceback.
            foreseen = isinstance(error, StoreError)
            log.warning(
                "sharing the judge's limits fails, the share of this process stays: %s",
                error if foreseen else repr(error),
                exc_info=None if foreseen else error,
            )
        self._failed = True
        if self._seen is None:  # no other process is known
            self._apply(QuotaShare())

    def _apply(self, share: QuotaShare) -> None:
        if share.of != self._share.of:
            log.info("%d processes share the limits of %s", share.of, self._folder)
        self._share = share
        for limiter in self._limiters:
            limiter.share(self, share)

    def _renew(self) -> Sequence[str]:
        """Write the heartbeat; return the paths of all live ones, its own included, sorted."""
        with self._writing:
            if self._gone:
                return [self._path]
            content = {"host": platform.node(), "pid": self._process}
            self._files.write(self._path, json.dumps(content).encode())
            _register(self)
        infos = self._files.below(self._folder)
        times = {info.path: info.modified for info in infos if info.modified is not None}
        if len(times) < len(infos):
            where = self._files.uri(self._folder)
            raise StoreError(f"{where}: the store has no modification times")
        # Another process may have removed it at the same moment.
        own = times.pop(self._path, None) or max(times.values(), default=0.0)
        alive = [self._path]
        for path, moment in times.items():
            age = abs(own - moment)  # a heartbeat from the future is dead too
            if age <= EXPIRY_SECONDS:
                alive.append(path)
            elif age > _REMOVAL_SECONDS:
                with suppress(StoreError):
                    self._files.remove(path)
        return sorted(alive)


_heartbeats: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Heartbeat]]
_heartbeats = WeakKeyDictionary()
_registered: set[Heartbeat] = set()
"""Heartbeats with a file in a store."""


def join_quota(files: Files, endpoint: Sequence[str], limiter: QuotaSharer) -> Heartbeat:
    """Share the limits of an endpoint (address, model, key) with the other users of the store."""
    digest = hashlib.blake2b("\0".join(endpoint).encode(), digest_size=8).hexdigest()
    heartbeats = _heartbeats.setdefault(asyncio.get_running_loop(), {})
    key = (files.root, digest)
    heartbeat = heartbeats.get(key)
    if heartbeat is None:
        # Few retries: a failure is tried again at the next refresh.
        impatient = Files(files.root, {**(files.options or {}), SECONDS: REFRESH_SECONDS})
        heartbeat = Heartbeat(
            impatient, f"workers/judge={digest}", lambda: heartbeats.pop(key, None)
        )
        heartbeats[key] = heartbeat
    heartbeat.join(limiter)
    return heartbeat


async def leave_quota(files: Files) -> None:
    """Remove this process's heartbeats from a store, except for endpoints in use."""
    heartbeats = _heartbeats.get(asyncio.get_running_loop(), {})
    for (root, _), heartbeat in list(heartbeats.items()):
        if root == files.root and not heartbeat.used:
            await heartbeat.depart()


def _register(heartbeat: Heartbeat) -> None:
    """Have the heartbeat removed when the process exits."""
    if not _registered:
        # Registered after the store's own handler, and so run before it closes connections.
        atexit.unregister(_withdraw_all)
        atexit.register(_withdraw_all)
    _registered.add(heartbeat)


def _withdraw_all() -> None:
    for heartbeat in list(_registered):
        heartbeat.withdraw(_EXIT_SECONDS)
