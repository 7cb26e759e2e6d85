"""Circuit breaker: refuses requests to an endpoint that has stopped answering.

    closed      requests pass
    half-open   after 100 requests given up in a row: one request passes at a time
    open        after no usable reply for `patience` seconds: all requests are refused

One usable reply closes it. An open breaker stays open for its judge. The next judge of this process
for the same endpoint starts half-open with a short patience: a dead endpoint is refused soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from ragmetrics.errors import JudgeError, JudgeRefused

MOST_GIVEN_UP = 100
"""Requests given up in a row that half-open the breaker."""
SILENCE = 1.5
"""Patience in deadlines of one request."""
_LONGEST_PAUSE = 20.0  # seconds between two requests of a half-open breaker

_dead: set[Hashable] = set()
"""Endpoints whose breaker opened in this process, without a usable reply since."""


class Breaker:
    """The breaker of one endpoint, on one event loop."""

    def __init__(self, key: Hashable, address: str, patience: float, probe_seconds: float) -> None:
        self.refusal: JudgeRefused | None = None
        """Why every request is refused; None unless it is open."""
        self._key, self._address, self._usual = key, address, patience
        self._loop = asyncio.get_running_loop()
        is_suspect = key in _dead
        self._patience = min(probe_seconds, patience) if is_suspect else patience
        self._given_up = MOST_GIVEN_UP if is_suspect else 0
        self._proven = False
        self._reason = ""
        self._at_work: set[asyncio.Timeout] = set()
        self._silent_since = self._silence = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._one_at_a_time = asyncio.Semaphore(1)
        self._probes = 0

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Let a request pass, at once or in its turn.

        Raises JudgeRefused if the breaker is open, or opens meanwhile.
        """
        if self.refusal:
            raise JudgeRefused(str(self.refusal))
        try:
            async with asyncio.timeout(None) as scope:
                self._begin(scope)
                try:
                    if self._is_half_open:
                        async with self._turn():
                            yield
                    else:
                        yield
                finally:
                    self._end(scope)
        except TimeoutError:
            if scope.expired() and self.refusal:
                raise JudgeRefused(str(self.refusal)) from None
            raise

    def replied(self) -> None:
        """A usable reply came."""
        self._silent_since = self._loop.time()
        self._proven = True
        self._given_up = self._probes = 0
        self._patience = self._usual
        _dead.discard(self._key)

    def given_up(self, error: JudgeError) -> None:
        """A request was given up. Raises JudgeRefused if that opens the breaker."""
        self._given_up += 1
        self._reason = str(error)
        if self._is_half_open and not self._proven:
            message = f"the judge at {self._address} has answered with errors only: {error}"
            raise self._open(message) from error

    @property
    def _is_half_open(self) -> bool:
        return self._given_up >= MOST_GIVEN_UP

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a request while the breaker is half-open."""
        async with self._one_at_a_time:
            if self._is_half_open:
                if self._probes:
                    await asyncio.sleep(min(2.0 ** (self._probes - 1), _LONGEST_PAUSE))
                self._probes += 1
                yield
                return
        yield

    def _begin(self, scope: asyncio.Timeout) -> None:
        if not self._at_work:  # idle time does not count as silence
            self._silent_since = self._loop.time() - self._silence
        self._at_work.add(scope)
        if self._alarm is None:
            self._alarm = self._loop.call_at(self._silent_since + self._patience, self._look)

    def _end(self, scope: asyncio.Timeout) -> None:
        self._at_work.discard(scope)
        if not self._at_work:
            self._silence = self._loop.time() - self._silent_since
            if self._alarm:
                self._alarm.cancel()
                self._alarm = None

    def _look(self) -> None:
        """Open if the endpoint was silent for too long; else check again when it would be."""
        self._alarm = None
        due = self._silent_since + self._patience
        if self._loop.time() < due:
            self._alarm = self._loop.call_at(due, self._look)
            return
        message = f"the judge at {self._address} gave no usable reply for {self._patience:g} s"
        self._open(f"{message}: {self._reason}" if self._reason else message)

    def _open(self, message: str) -> JudgeRefused:
        self.refusal = JudgeRefused(message)
        _dead.add(self._key)
        waiting, self._at_work = self._at_work, set()
        for scope in waiting:
            scope.reschedule(self._loop.time())
        return self.refusal
