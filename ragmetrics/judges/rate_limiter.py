"""The gate before an endpoint: lets through as many requests at once as the endpoint bears.

How many that is, the pace finds out. Beside it the gate keeps to requests and tokens per minute
and to the pauses that the endpoint asks for. It belongs to one event loop; what was learned of an
endpoint outlives it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Hashable

from ragmetrics.judges.adaptive_concurrency import AdaptiveConcurrency
from ragmetrics.judges.quota_sharing import QuotaShare

_UNKNOWN_LATENCY = 0.1  # seconds
_BURST = 1.0  # seconds' worth of an allowance that may be taken at once
_LEAST_TIMEOUT = 2.0
_SLOW = 10  # times the 95th percentile of latencies: nothing comes after that
_KNOWN = 20  # replies that tell latencies
_LONGEST_PAUSE = 60.0  # then it is tried again, whatever was said
_STREAK = 3  # refusals without an answer between them before all wait


class Bucket:
    """An allowance per minute that fills steadily; more than it holds is paid by waiting."""

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        """All of it, however much of it is for others."""
        self._rate = per_minute / 60
        self._paid = 0.0  # the time at which all that was taken is paid

    def delay(self, now: float) -> float:
        """Seconds until more may be taken."""
        return self._paid - _BURST - now

    def take(self, amount: float, now: float) -> None:
        """Take some; less than nothing gives back what was taken too much."""
        self._paid = max(self._paid, now) + amount / self._rate

    def fill(self, per_minute: float, now: float) -> None:
        """Fill at another pace from now on, also what is taken and not paid."""
        owed = max(self._paid - now, 0.0) * self._rate
        self._rate = per_minute / 60
        self._paid = now + owed / self._rate


class RateLimiter:
    """Places for requests, each given back with what became of its request."""

    def __init__(
        self,
        ceiling: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        pace: AdaptiveConcurrency | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pace = pace or AdaptiveConcurrency(ceiling)
        self.pace.bound(ceiling)
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self._ceiling = ceiling
        self._shares: dict[object, QuotaShare] = {}
        self._requests = Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute) if tokens_per_minute else None
        self._busy = 0  # requests in flight, and places that cool
        self._waiting: deque[tuple[asyncio.Future[float], float]] = deque()
        self._paused = 0.0
        self._streak = 0
        self._refused_since = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    async def enter(self, tokens: float, *, again: bool = False) -> float:
        """Wait for a place; who comes `again` goes first. Returns the time it was given."""
        if not self._waiting and self._delay() <= 0:
            return self._admit(tokens)
        place: asyncio.Future[float] = self.loop.create_future()
        put = self._waiting.appendleft if again else self._waiting.append
        put((place, tokens))
        self._let_in()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.lost()  # the place was given at the same moment
            raise

    def answered(self, sent: float, kind: str) -> None:
        """A request was answered."""
        self._streak = 0
        self.pace.answered(self.clock(), sent, kind)
        self._leave()

    def spent(self, estimated: float, used: float) -> None:
        """Correct the tokens that a request was let in with."""
        if self._tokens:
            self._tokens.take(used - estimated, self.clock())

    def refused(self, sent: float, retry_after: float = 0.0) -> None:
        """A request was refused for want of capacity: its place cools for about one latency.

        Given back at once it would serve to be refused again, as fast as the endpoint can.
        """
        now = self.clock()
        self.pace.refused(now, sent)
        self._refused_since = self._refused_since if self._streak else now
        self._streak += 1
        # That one request must wait is its own affair; that all must shows when none is answered.
        if self._streak >= _STREAK and now - self._refused_since >= self.latency:
            self.pause(retry_after)
        self.loop.call_later(self.latency, self._leave)

    def late(self, sent: float) -> None:
        """A request was not answered in time."""
        self.pace.refused(self.clock(), sent, late=True)
        self._leave()

    def lost(self) -> None:
        """A request ended in a way that says nothing about load."""
        self.pace.lost(self.clock())
        self._leave()

    def pause(self, seconds: float) -> None:
        """Let nobody in for so long, at most a minute."""
        self._paused = max(self._paused, self.clock() + min(seconds, _LONGEST_PAUSE))

    def share(self, of: object, share: QuotaShare | None) -> None:
        """Keep to a share of the limits from now on; None: `of` has nothing to say any more.

        Of several shares the smallest counts.
        """
        if share == self._shares.get(of):
            return
        self._shares.pop(of, None)
        if share:
            self._shares[of] = share
        told = list(self._shares.values()) or [QuotaShare()]
        self.pace.bound(min(one.places(self._ceiling) for one in told))
        for bucket in (self._requests, self._tokens):
            if bucket:
                bucket.fill(min(one.rate(bucket.per_minute) for one in told), self.clock())
        if self._alarm:  # it may be late for the new pace
            self._alarm.cancel()
            self._alarm = None
        self._let_in()

    @property
    def latency(self) -> float:
        """The typical latency, in seconds."""
        return self.pace.latencies.typical or _UNKNOWN_LATENCY

    def timeout(self, kind: str) -> float:
        """Seconds after which a request of this kind is not answered any more; inf: unknown."""
        known = self.pace.of(kind)
        return math.inf if known.count < _KNOWN else max(_LEAST_TIMEOUT, _SLOW * known.p95)

    def _leave(self) -> None:
        self._busy -= 1
        self._let_in()

    def _admit(self, tokens: float) -> float:
        now = self.clock()
        self._busy += 1
        self.pace.sent(now, self._busy)
        if self._requests:
            self._requests.take(1, now)
        if self._tokens:
            self._tokens.take(tokens, now)
        return now

    def _let_in(self) -> None:
        while self._waiting and self._busy < self.pace.limit:
            if (delay := self._delay()) > 0:
                self._come_back(delay)
                return
            place, tokens = self._waiting.popleft()
            if not place.done():
                place.set_result(self._admit(tokens))

    def _delay(self) -> float:
        """Seconds until the next may be let in, for all that is known now."""
        if self._busy >= self.pace.limit:
            return 1.0  # or when a place becomes free
        now = self.clock()
        delay = self._paused - now
        for bucket in (self._requests, self._tokens):
            if bucket:
                delay = max(delay, bucket.delay(now))
        return delay

    def _come_back(self, seconds: float) -> None:
        if self._alarm is None:
            self._alarm = self.loop.call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self._let_in()


_gates: dict[Hashable, RateLimiter] = {}


def shared_rate_limiter(
    endpoint: Hashable,
    ceiling: int,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> RateLimiter:
    """The gate of an endpoint in this process: all who ask there share its places."""
    key = (endpoint, ceiling, requests_per_minute, tokens_per_minute)
    gate = _gates.get(key)
    if gate is None or gate.loop is not asyncio.get_running_loop():
        pace = gate.pace.successor() if gate else None
        gate = _gates[key] = RateLimiter(ceiling, requests_per_minute, tokens_per_minute, pace=pace)
    return gate
