"""Rate and concurrency limiter of an endpoint.

`AdaptiveConcurrency` finds the number of concurrent requests. The limiter also enforces requests
and tokens per minute, and the pauses that the endpoint asks for. It belongs to one event loop; the
learned concurrency outlives it.
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
_BURST = 1.0  # seconds of an allowance that may be taken at once
_LEAST_TIMEOUT = 2.0
_SLOW = 10  # timeout, in 95th percentiles of latency
_KNOWN = 20  # replies from which the percentile is known
_LONGEST_PAUSE = 60.0  # longest pause, whatever the endpoint asks for
_STREAK = 3  # refusals without an answer between them after which all requests pause


class Bucket:
    """Token bucket: an allowance per minute that fills steadily and may be overdrawn."""

    def __init__(self, per_minute: float) -> None:
        self.per_minute = per_minute
        """Whole allowance, before it is shared with other processes."""
        self._rate = per_minute / 60
        self._paid = 0.0  # time at which the bucket is full again

    def delay(self, now: float) -> float:
        """Seconds until more may be taken."""
        return self._paid - _BURST - now

    def take(self, amount: float, now: float) -> None:
        """Take an amount; a negative amount returns it."""
        self._paid = max(self._paid, now) + amount / self._rate

    def fill(self, per_minute: float, now: float) -> None:
        """Change the rate, also for the amount that is overdrawn."""
        owed = max(self._paid - now, 0.0) * self._rate
        self._rate = per_minute / 60
        self._paid = now + owed / self._rate


class RateLimiter:
    """Slots for requests; each slot is released with the outcome of its request."""

    def __init__(
        self,
        ceiling: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        concurrency: AdaptiveConcurrency | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.concurrency = concurrency or AdaptiveConcurrency(ceiling)
        self.concurrency.bound(ceiling)
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self._ceiling = ceiling
        self._shares: dict[object, QuotaShare] = {}
        self._requests = Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute) if tokens_per_minute else None
        self._busy = 0  # requests in flight, and slots that cool down
        self._waiting: deque[tuple[asyncio.Future[float], float]] = deque()
        self._paused = 0.0
        self._streak = 0
        self._refused_since = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    async def enter(self, tokens: float, *, again: bool = False) -> float:
        """Wait for a slot; return the time it was given. With `again` the request goes first."""
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
                self.lost()  # the slot was given at the same moment
            raise

    def answered(self, sent: float, kind: str) -> None:
        """A request was answered."""
        self._streak = 0
        self.concurrency.answered(self.clock(), sent, kind)
        self._leave()

    def correct_tokens(self, estimated: float, used: float) -> None:
        """Replace the estimated tokens of a request by those it used."""
        if self._tokens:
            self._tokens.take(used - estimated, self.clock())

    def refused(self, sent: float, retry_after: float = 0.0) -> None:
        """A request was refused for lack of capacity: its slot cools down for about one latency.

        A slot that is free at once would only be used for the next refused request.
        """
        now = self.clock()
        self.concurrency.refused(now, sent)
        self._refused_since = self._refused_since if self._streak else now
        self._streak += 1
        # One refusal delays one request. All requests pause when none is answered.
        if self._streak >= _STREAK and now - self._refused_since >= self.latency:
            self.pause(retry_after)
        self.loop.call_later(self.latency, self._leave)

    def late(self, sent: float) -> None:
        """A request was not answered in time."""
        self.concurrency.refused(self.clock(), sent, late=True)
        self._leave()

    def lost(self) -> None:
        """A request ended for a reason other than load."""
        self.concurrency.lost(self.clock())
        self._leave()

    def pause(self, seconds: float) -> None:
        """Admit no request for some seconds, at most a minute."""
        self._paused = max(self._paused, self.clock() + min(seconds, _LONGEST_PAUSE))

    def share(self, of: object, share: QuotaShare | None) -> None:
        """Apply a share of the limits; None removes the share of this source.

        The smallest of several shares applies.
        """
        if share == self._shares.get(of):
            return
        self._shares.pop(of, None)
        if share:
            self._shares[of] = share
        shares = list(self._shares.values()) or [QuotaShare()]
        self.concurrency.bound(min(one.places(self._ceiling) for one in shares))
        for bucket in (self._requests, self._tokens):
            if bucket:
                bucket.fill(min(one.rate(bucket.per_minute) for one in shares), self.clock())
        if self._alarm:  # it may be late for the new rate
            self._alarm.cancel()
            self._alarm = None
        self._let_in()

    @property
    def latency(self) -> float:
        """Typical latency in seconds."""
        return self.concurrency.latencies.typical or _UNKNOWN_LATENCY

    def timeout(self, kind: str) -> float:
        """Timeout in seconds for this kind of request; inf while latencies are unknown."""
        known = self.concurrency.of(kind)
        return math.inf if known.count < _KNOWN else max(_LEAST_TIMEOUT, _SLOW * known.p95)

    def _leave(self) -> None:
        self._busy -= 1
        self._let_in()

    def _admit(self, tokens: float) -> float:
        now = self.clock()
        self._busy += 1
        self.concurrency.sent(now, self._busy)
        if self._requests:
            self._requests.take(1, now)
        if self._tokens:
            self._tokens.take(tokens, now)
        return now

    def _let_in(self) -> None:
        while self._waiting and self._busy < self.concurrency.limit:
            if (delay := self._delay()) > 0:
                self._come_back(delay)
                return
            place, tokens = self._waiting.popleft()
            if not place.done():
                place.set_result(self._admit(tokens))

    def _delay(self) -> float:
        """Seconds until the next request may be admitted, as known now."""
        if self._busy >= self.concurrency.limit:
            return 1.0  # or when a slot becomes free
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


_limiters: dict[Hashable, RateLimiter] = {}


def shared_rate_limiter(
    endpoint: Hashable,
    ceiling: int,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> RateLimiter:
    """The limiter of an endpoint, shared by all its users in this process."""
    key = (endpoint, ceiling, requests_per_minute, tokens_per_minute)
    limiter = _limiters.get(key)
    if limiter is None or limiter.loop is not asyncio.get_running_loop():
        concurrency = limiter.concurrency.successor() if limiter else None
        limiter = _limiters[key] = RateLimiter(
            ceiling, requests_per_minute, tokens_per_minute, concurrency=concurrency
        )
    return limiter
