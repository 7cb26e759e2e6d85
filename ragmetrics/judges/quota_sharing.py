"""An endpoint's limits, shared by all processes that ask it and use one store.

A process that asks leaves a sign in the store, renews it every few seconds and looks for others:

    workers/judge=ENDPOINT/PROCESS.json

With n signs it takes the n-th part of the limits. Nothing is asked of anybody per request. Whether
a sign is fresh is told by the store's own times, its own against the others': clocks of machines
are never compared. A newcomer takes little until those who were there before must have seen it,
so together they stay near the limits from its first request on.
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

LOOK_SECONDS = 5.0
"""Between two renewals of a sign, each with a look for others."""
VOID_SECONDS = 30.0
"""A sign that was not renewed for so long is that of a process that died."""
GRACE_SECONDS = 7.0
"""After which those who were there before have seen a newcomer."""
LINGER_SECONDS = 10.0
"""A process between two parts stays: it would be a newcomer at each."""
_LITTLE = 16  # of its part a newcomer takes a sixteenth
_RUBBISH_SECONDS = 10 * VOID_SECONDS  # then anybody may remove a dead process's sign
_PARTING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class QuotaShare:
    """What of an endpoint's limits is for this process: equal parts by place, all of it alone."""

    place: int = 0
    of: int = 1
    settled: bool = True
    """Whether the others know of this process; until then it takes little."""

    def places(self, ceiling: int) -> int:
        """Requests at once: at least one; those of all places add up to the ceiling."""
        own = ceiling * (self.place + 1) // self.of - ceiling * self.place // self.of
        return max(1, own if self.settled else own // _LITTLE)

    def rate(self, per_minute: float) -> float:
        """Requests or tokens a minute."""
        return per_minute / self.of / (1 if self.settled else _LITTLE)


class _NoThread(Exception):
    """The interpreter ends: it starts no thread any more, while this loop still goes on."""


def _in_thread(work: Callable[[], T]) -> Awaitable[T]:
    """What `work` returns, called in a thread. Raises _NoThread."""
    try:
        return asyncio.get_running_loop().run_in_executor(None, work)
    except RuntimeError as error:  # of handing it over: what `work` raises comes later
        raise _NoThread from error


class QuotaSharer(Protocol):
    """A gate: keeps to the smallest of the shares that it was told."""

    def share(self, of: object, share: QuotaShare | None) -> None:
        """Keep to a share from now on; None: `of` has nothing to say any more."""


class Heartbeat:
    """This process among those who ask one endpoint. Belongs to one event loop."""

    def __init__(self, files: Files, folder: str, forget: Callable[[], object]) -> None:
        self._files, self._folder, self._forget = files, folder, forget
        self._path = f"{folder}/{uuid.uuid4().hex}.json"
        self._share = QuotaShare(settled=False)
        self._gates: Counter[QuotaSharer] = Counter()
        self._settled = self._failed = False
        self._seen: float | None = None
        self._since = 0.0
        self._keeping: asyncio.Task[None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._writing = threading.Lock()
        self._gone = False
        self._process = os.getpid()

    def join(self, gate: QuotaSharer) -> None:
        """Let a gate keep to the share, whatever it becomes, until it leaves."""
        self._gates[gate] += 1
        gate.share(self, self._share)
        if self._ending:
            self._ending.cancel()
            self._ending = None
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().create_task(self._keep())

    def leave(self, gate: QuotaSharer) -> None:
        """A gate has nothing to ask for now. After the last, and a moment, the sign is removed."""
        self._gates[gate] -= 1
        if not self.used:
            self._ending = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._end)

    @property
    def used(self) -> bool:
        """Whether any gate is at work."""
        return self._gates.total() > 0

    async def depart(self) -> None:
        """Remove the sign now."""
        self._end()
        if self._keeping:
            await asyncio.wait([self._keeping])

    def withdraw(self, patience: float = -1) -> None:
        """Remove the sign, for good; blocks."""
        if self._process != os.getpid() or not self._writing.acquire(timeout=patience):
            return  # it is the business of the process that was forked, or the store hangs
        try:
            if not self._gone:
                self._gone = True
                # One that stays is void soon.
                with suppress(StoreError):
                    self._files.remove(self._path)
        finally:
            self._writing.release()
        _signs.discard(self)

    def _end(self) -> None:
        if self._ending:
            self._ending.cancel()
            self._ending = None
        self._forget()
        for gate in self._gates:
            gate.share(self, None)
        if self._keeping:
            self._keeping.cancel()

    async def _keep(self) -> None:
        try:
            while True:
                try:
                    await self._look()
                except _NoThread:
                    return
                except Exception as error:  # whatever it is: others count on the sign
                    self._fail(error)
                wait = LOOK_SECONDS if self._settled else GRACE_SECONDS / 2
                await asyncio.sleep(wait)
        finally:
            with suppress(_NoThread):  # `_withdraw_all` removes the sign
                await _in_thread(self.withdraw)

    async def _look(self) -> None:
        """Renew the sign, and take the share that follows from those of the others."""
        now = asyncio.get_running_loop().time()
        alive = await _in_thread(self._renew)
        self._failed = False
        if self._seen is None or now - self._seen > VOID_SECONDS - LOOK_SECONDS:
            # Others may have taken this process for dead.
            self._since, self._settled = now, False
        self._seen = now
        alone = len(alive) == 1
        self._settled = self._settled or alone or now - self._since >= GRACE_SECONDS
        self._take(QuotaShare(alive.index(self._path), len(alive), self._settled))

    def _fail(self, error: Exception) -> None:
        if not self._failed and not self._gone:
            # Nobody foresaw what is no StoreError: its text alone tells little.
            foreseen = isinstance(error, StoreError)
            log.warning(
                "limits of the judge are not shared for now, its share stays: %s",
                error if foreseen else repr(error),
                exc_info=None if foreseen else error,
            )
        self._failed = True
        if self._seen is None:  # nothing is known of anybody
            self._take(QuotaShare())

    def _take(self, share: QuotaShare) -> None:
        if share.of != self._share.of:
            log.info("%d processes share the limits of %s", share.of, self._folder)
        self._share = share
        for gate in self._gates:
            gate.share(self, share)

    def _renew(self) -> Sequence[str]:
        """Write the sign; return those that are fresh, in order, with it among them."""
        with self._writing:
            if self._gone:
                return [self._path]
            said = {"host": platform.node(), "pid": self._process}
            self._files.write(self._path, json.dumps(said).encode())
            _remember(self)
        infos = self._files.below(self._folder)
        times = {info.path: info.modified for info in infos if info.modified is not None}
        if len(times) < len(infos):
            where = self._files.uri(self._folder)
            raise StoreError(f"{where}: the store does not say when its files were written")
        # Without one, somebody removed ours at the same moment.
        own = times.pop(self._path, None) or max(times.values(), default=0.0)
        alive = [self._path]
        for path, moment in times.items():
            age = abs(own - moment)  # a sign from the future is as dead
            if age <= VOID_SECONDS:
                alive.append(path)
            elif age > _RUBBISH_SECONDS:
                with suppress(StoreError):
                    self._files.remove(path)
        return sorted(alive)


_here: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Heartbeat]]
_here = WeakKeyDictionary()
_signs: set[Heartbeat] = set()
"""Those whose sign is in a store."""


def join_quota(files: Files, endpoint: Sequence[str], gate: QuotaSharer) -> Heartbeat:
    """Share the limits of an endpoint (address, model, key) with all who use it and the store."""
    digest = hashlib.blake2b("\0".join(endpoint).encode(), digest_size=8).hexdigest()
    present = _here.setdefault(asyncio.get_running_loop(), {})
    key = (files.root, digest)
    presence = present.get(key)
    if presence is None:
        # What does not come off soon is tried again at the next look.
        hasty = Files(files.root, {**(files.options or {}), SECONDS: LOOK_SECONDS})
        presence = Heartbeat(hasty, f"workers/judge={digest}", lambda: present.pop(key, None))
        present[key] = presence
    presence.join(gate)
    return presence


async def leave_quota(files: Files) -> None:
    """Remove the signs in a store, but those of endpoints in use: this process asks no more."""
    present = _here.get(asyncio.get_running_loop(), {})
    for (root, _), presence in list(present.items()):
        if root == files.root and not presence.used:
            await presence.depart()


def _remember(presence: Heartbeat) -> None:
    """See to it that the sign goes where the process ends without departing."""
    if not _signs:
        # After the store's own, and so run before it closes its connections.
        atexit.unregister(_withdraw_all)
        atexit.register(_withdraw_all)
    _signs.add(presence)


def _withdraw_all() -> None:
    for presence in list(_signs):
        presence.withdraw(_PARTING_SECONDS)
