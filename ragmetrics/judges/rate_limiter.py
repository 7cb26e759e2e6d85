"""Admission of requests to an endpoint: a limiter of rate and concurrency, and a circuit breaker.

`AdaptiveConcurrency` finds the number of concurrent requests. The limiter also enforces requests
and tokens per minute, and the pauses that the endpoint asks for. It belongs to one event loop; the
learned concurrency outlives it.

The circuit breaker refuses requests to an endpoint that has stopped answering:

    closed      requests pass
    half-open   after 100 requests given up in a row: one passes at a time
    open        after no usable reply for `patience` seconds: all requests are refused

An endpoint that has answered nothing is refused after the 100, or after 10 that it rejects in the
same words within 5 seconds or more. One usable reply closes the breaker. An open one stays open for
its judge. The next judge of the endpoint in this process starts half-open with a short patience.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges.adaptive_concurrency import START, AdaptiveConcurrency

_UNKNOWN_LATENCY = 0.1  # seconds
_BURST = 1.0  # seconds of an allowance that may be taken at once
_LEAST_TIMEOUT = 2.0
_SLOW = 10  # timeout, in 95th percentiles of latency
_GUESSED = 3  # replies from which a timeout is guessed: two that hang may hold all slots at first
_SLOW_AT_FIRST = 50
_LEAST_LATE = 1.0
_LATE = 2  # in 90th percentiles of latency
_KNOWN = 20  # replies from which the percentile is known
_LONGEST_PAUSE = 60.0  # longest pause, whatever the endpoint asks for
_STREAK = 3  # refusals without an answer between them after which all requests pause
_limiters: dict[Hashable, RateLimiter] = {}
MOST_GIVEN_UP = 100
"""Requests given up in a row that half-open the breaker."""
_ALIKE, _ALIKE_AT_ONCE = 10, 7  # rejections in the same words that suffice; those without a pause
_ALIKE_SECONDS = 5.0  # between the first and the last of them: a gateway may be starting
_OF_LENGTH = re.compile("context|length|too (?:long|large|many)|token", re.IGNORECASE)
SILENCE = 1.5
"""Patience in deadlines of one request."""
_LONGEST_PROBE_PAUSE = 20.0  # seconds between two requests of a half-open breaker
_dead: set[Hashable] = set()
"""Endpoints whose breaker opened in this process, without a usable reply since."""


class Bucket:
    """Token bucket: an allowance per minute that fills steadily and may be overdrawn."""

    def __init__(self, per_minute: float) -> None:
        self._rate = per_minute / 60
        self._paid = 0.0  # time at which the bucket is full again

    def delay(self, now: float) -> float:
        """Seconds until more may be taken."""
        return self._paid - _BURST - now

    def take(self, amount: float, now: float) -> None:
        """Take an amount; a negative amount returns it."""
        self._paid = max(self._paid, now) + amount / self._rate


class RateLimiter:
    """Slots for requests; each slot is released with the outcome of its request."""

    def __init__(
        self,
        ceiling: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        concurrency: AdaptiveConcurrency | None = None,
        start: int = START,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.concurrency = concurrency or AdaptiveConcurrency(ceiling, start)
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self._requests = Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = Bucket(tokens_per_minute) if tokens_per_minute else None
        self._busy = 0  # requests in flight, and slots that cool down
        self._waiting: deque[tuple[asyncio.Future[float], float]] = deque()
        self._paused = 0.0
        self._streak = 0
        self._refused_since = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._answered_at = 0.0  # time of the last answer
        self._newest_answered = 0.0  # latest sending of a request that was answered

    async def enter(self, tokens: float, *, again: bool = False) -> float:
        """Wait for a slot; return the time it was given. With `again` the request goes first."""
        if not self._waiting and self._delay() <= 0:
            return self._admit(tokens)
        place: asyncio.Future[float] = self.loop.create_future()
        put = self._waiting.appendleft if again else self._waiting.append
        put((place, tokens))
        self._admit_waiting()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.lost()  # the slot was given at the same moment
            raise

    def answered(self, sent: float, kind: str) -> None:
        """A request was answered."""
        self._streak = 0
        self._answered_at = self.clock()
        self._newest_answered = max(self._newest_answered, sent)
        self.concurrency.answered(self._answered_at, sent, kind)
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

    @property
    def latency(self) -> float:
        """Typical latency in seconds."""
        return self.concurrency.latencies.typical or _UNKNOWN_LATENCY

    def timeout(self, kind: str) -> float:
        """Timeout in seconds for this kind of request; inf while latencies are unknown."""
        known = self.concurrency.of(kind)
        if known.count < _GUESSED:
            return math.inf
        slow = _SLOW if known.count >= _KNOWN else _SLOW_AT_FIRST
        return max(_LEAST_TIMEOUT, slow * known.p95)

    def begun(self, sent: float, ahead: int) -> float:
        """The time at which the server can have begun with a request at the latest.

            sent + requests ahead of it * (typical latency / requests in flight)

        In flight now or when it was sent, whichever are more: few are left at the end of a run.
        While no later one is answered, the server may answer in order: not before its last answer.
        """
        each = self.concurrency.latencies.typical / max(self.concurrency.in_flight, ahead + 1)
        begun = sent + ahead * each
        return begun if sent < self._newest_answered else max(begun, self._answered_at)

    def late_after(self, kind: str) -> float:
        """Seconds from which a request of this kind is late; inf while latencies are unknown."""
        known = self.concurrency.of(kind)
        return math.inf if known.count < _KNOWN else max(_LEAST_LATE, _LATE * known.p90)

    def _leave(self) -> None:
        self._busy -= 1
        self._admit_waiting()

    def _admit(self, tokens: float) -> float:
        now = self.clock()
        self._busy += 1
        self.concurrency.sent(now, self._busy)
        if self._requests:
            self._requests.take(1, now)
        if self._tokens:
            self._tokens.take(tokens, now)
        return now

    def _admit_waiting(self) -> None:
        while self._waiting and self._busy < self.concurrency.limit:
            if (delay := self._delay()) > 0:
                self._alarm = self._alarm or self.loop.call_later(delay, self._wake)
                return
            place, tokens = self._waiting.popleft()
            if not place.done():
                place.set_result(self._admit(tokens))

    def _delay(self) -> float:
        """Seconds until the next request may be admitted, as known now."""
        if self._busy >= self.concurrency.limit:
            return 1.0  # or when a slot becomes free
        now = self.clock()
        buckets = filter(None, (self._requests, self._tokens))
        return max([self._paused - now, *(bucket.delay(now) for bucket in buckets)])

    def _wake(self) -> None:
        self._alarm = None
        self._admit_waiting()


def shared_rate_limiter(
    endpoint: Hashable,
    ceiling: int,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    *,
    start: int = START,
) -> RateLimiter:
    """The limiter of an endpoint, shared by all its users in this process."""
    key = (endpoint, ceiling, requests_per_minute, tokens_per_minute)
    limiter = _limiters.get(key)
    if limiter is None or limiter.loop is not asyncio.get_running_loop():
        concurrency = limiter.concurrency.successor() if limiter else None
        limiter = _limiters[key] = RateLimiter(
            ceiling, requests_per_minute, tokens_per_minute, concurrency=concurrency, start=start
        )
    return limiter


class Breaker:
    """The breaker of one endpoint, on one event loop."""

    def __init__(self, key: Hashable, address: str, patience: float, probe_seconds: float) -> None:
        self.refusal: JudgeRefused | None = None
        """Why every request is refused; None unless it is open."""
        self._key, self._address, self._usual = key, address, patience
        self._loop = asyncio.get_running_loop()
        self._patience, self._given_up = patience, 0
        if key in _dead:
            self._patience, self._given_up = min(probe_seconds, patience), MOST_GIVEN_UP
        self._proven, self._reason = False, ""
        self._alike: list[float] = []  # times of the last rejections, in the same words
        self._at_work: set[asyncio.Timeout] = set()
        self._silent_since, self._silence, self._probes = 0.0, 0.0, 0
        self._alarm: asyncio.TimerHandle | None = None
        self._one_at_a_time = asyncio.Semaphore(1)

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

    def given_up(self, error: JudgeError) -> float:
        """A request was given up: for how many seconds none should be sent, or JudgeRefused."""
        now, last, self._reason = self._loop.time(), self._reason, str(error)
        # Where rows are rejected for their length, shorter ones may pass.
        if error.transient or self._reason != last or _OF_LENGTH.search(last):
            self._alike.clear()
        self._alike.append(now)
        self._given_up += 1
        alike = len(self._alike)
        pause = self._alike[0] + _ALIKE_SECONDS - now if alike >= _ALIKE_AT_ONCE else 0.0
        if not self._proven and pause <= 0 and (alike >= _ALIKE or self._is_half_open):
            raise self._open(f"has answered with errors only: {error}") from error
        return max(pause, 0.0)

    @property
    def _is_half_open(self) -> bool:
        return self._given_up >= MOST_GIVEN_UP

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a request while the breaker is half-open."""
        async with self._one_at_a_time:
            if self._is_half_open:
                if self._probes:
                    await asyncio.sleep(min(2.0 ** (self._probes - 1), _LONGEST_PROBE_PAUSE))
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
        silence = f"gave no usable reply for {self._patience:g} s"
        self._open(f"{silence}: {self._reason}" if self._reason else silence)

    def _open(self, why: str) -> JudgeRefused:
        self.refusal = JudgeRefused(f"the judge at {self._address} {why}")
        _dead.add(self._key)
        waiting, self._at_work = self._at_work, set()
        for scope in waiting:
            scope.reschedule(self._loop.time())
        return self.refusal
