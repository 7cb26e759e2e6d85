"""Adaptive concurrency: finds the number of concurrent requests that an endpoint can serve.

Pure logic: time is a parameter, nothing waits. Outcomes are counted in windows of about one
latency and `limit` requests. Each window ends with one decision:

- Too many requests were refused (429, 503) or timed out: decrease to the number of requests that
  were served concurrently.
- A decrease starts a trial. If as many are refused at the lower limit, load is not the cause: the
  limit is restored, and this share of refusals is tolerated.
- Few were refused, and the limit was reached: increase. The limit doubles up to the last limit
  that failed; then it grows by a tenth, and by one near a limit that failed.
- The limit grew by half, and only latency grew: go back, because the endpoint only queues.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from copy import copy
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlsplit

START = 16
"""Initial number of concurrent requests to a known provider."""
CAREFUL_START = 2
"""The same for another endpoint: a server on one's own machine may answer one at a time."""
_HOSTS = (
    *("openai.com", "azure.com", "amazonaws.com", "anthropic.com", "googleapis.com", "mistral.ai"),
    *("groq.com", "together.xyz", "together.ai", "fireworks.ai", "deepseek.com", "openrouter.ai"),
    *("cohere.com", "cohere.ai", "jina.ai", "voyageai.com", "x.ai", "perplexity.ai", "cerebras.ai"),
    *("deepinfra.com", "databricks.com", "nebius.com", "sambanova.ai", "upstage.ai"),
)
"""Endpoints that serve many users, and so many requests at once."""

_CALM = 0.02  # share of refusals that is always tolerated
_AT_FIRST = 0.3  # tolerated on the way up to START, where a trial would take long
_NO_HELP = 0.7  # a decrease did not help if this fraction of the refusals remains
_CURED = 0.25  # load was the cause if less than this fraction of the refusals remains
_BACK = 0.7  # factor of a decrease if the number of requests served is not known
_HOPELESS = 0.5  # share of refusals that is never tolerated
_FEW = 12  # outcomes needed below START to see whether a step up brought anything
_GAIN = 0.3  # least gain of throughput below START, in shares of the increase
_NO_QUEUE = 1.4  # ratio to the best latency up to which nothing waits for anything
_STRETCH = 3.0  # ratio to the best latency from which an endpoint counts as queueing
_LONGEST_HOLD = 32  # most windows between two attempts to exceed a limit
_KEPT = 200  # latencies in the sample


def first_in_flight(address: str) -> int:
    """Number of requests with which an endpoint is asked at first."""
    host = urlsplit(address).hostname or ""
    known = any(host == provider or host.endswith(f".{provider}") for provider in _HOSTS)
    return START if known else CAREFUL_START


class Latencies:
    """The latest latencies of one kind of request, in seconds."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=_KEPT)
        self._fresh = 0
        self.count = 0
        self.best = math.inf
        self.typical = 0.0
        """Median; 0 before the first latency."""
        self.p90 = 0.0
        self.p95 = 0.0

    def add(self, latency: float) -> None:
        """Add a latency; quantiles are updated after every few."""
        self._kept.append(latency)
        self.count += 1
        self._fresh += 1
        # The best latency may have become out of reach: it drifts up until it is met again.
        self.best = min(self.best * 1.00001, latency)
        if self._fresh >= min(self.count / 4, _KEPT / 8):
            self._fresh = 0
            ordered = sorted(self._kept)
            self.typical = ordered[len(ordered) // 2]
            self.p90 = ordered[int(len(ordered) * 0.9)]
            self.p95 = ordered[int(len(ordered) * 0.95)]


@dataclass(slots=True)
class _Window:
    """Outcomes since the last decision."""

    start: float
    answered: int = 0
    refused: int = 0
    late: int = 0
    """Timed-out requests, which are counted in `refused` too."""
    served: float = 0.0
    """Sum of the seconds in flight of all requests that were not refused."""
    peak: int = 0
    """Most slots in use."""
    latencies: float = 0.0
    """Sum of the latencies of answered requests."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Answered requests by kind."""
    stretches: list[float] = field(default_factory=list)
    """Ratios of latencies to the best latency of their kind."""

    @property
    def stretch(self) -> float:
        """Median ratio of a latency to the best one of its kind; 1 without an answer."""
        return median(self.stretches) if self.stretches else 1.0

    @property
    def outcomes(self) -> int:
        return self.answered + self.refused

    @property
    def share(self) -> float:
        return self.refused / self.outcomes if self.outcomes else 0.0

    def throughput(self, elapsed: float) -> float:
        """Answers per second by Little's law, which is robust to bursts."""
        return self.served / elapsed * self.answered / self.latencies if self.latencies else 0.0


@dataclass(frozen=True, slots=True)
class _Trial:
    """State before a decrease whose effect is being measured."""

    limit: int
    share: float
    """Share of refusals in the window that caused the decrease; by chance it may be high."""
    usual: float
    """Share of refusals over the recent windows."""
    throughput: float

    def needs(self, refused: int) -> int:
        """Outcomes needed to decide whether refusals became fewer; fewer if there are none."""
        return min(math.ceil((20 if refused else 8) / self.usual), _KEPT)

    def is_in_vain(self, share: float) -> bool:
        """Whether about as many requests are refused as before."""
        return share >= _NO_HELP * self.usual and share >= 0.5 * self.share


class AdaptiveConcurrency:
    """Current limit of concurrent requests, and the state that adapts it."""

    def __init__(self, ceiling: int, start: int = START) -> None:
        self.limit = min(start, ceiling)
        self.tolerated = _CALM
        """Share of refusals that is not attributed to load."""
        self.latencies = Latencies()
        self._ceiling = ceiling
        self._starts_low = self._begins = start < START
        self._kinds: dict[str, Latencies] = {}
        self._in_flight = 0
        self._seen = 0.0
        self._window: _Window | None = None
        self._trial: _Trial | None = None
        self._before: _Trial | None = None  # the first of several decreases in a row
        self._recent = (0.0, 0.0)  # refused and all outcomes, decayed
        self._threshold = ceiling  # the limit doubles up to here
        self._hold = 0  # windows to wait before growing
        self._failed = 0  # failed increases in a row
        self._failed_at = 0  # limit of the last failed increase
        self._mark: tuple[int, Counter[str], float] | None = None  # limit, its answers, seconds

    @property
    def in_flight(self) -> int:
        """Requests that are sent and not answered."""
        return self._in_flight

    @property
    def _is_careful(self) -> bool:
        return self._starts_low and self.limit < START

    def successor(self) -> AdaptiveConcurrency:
        """A copy with the learned state, for the next limiter of the same endpoint."""
        limiter = copy(self)
        limiter._in_flight, limiter._window, limiter._trial, limiter._before = 0, None, None, None
        return limiter

    def of(self, kind: str) -> Latencies:
        """The latencies of one kind of request."""
        return self._kinds.setdefault(kind, Latencies())

    def sent(self, now: float, busy: int) -> None:
        """Record that a request is sent; `busy` slots are now in use."""
        window = self._until(now)
        self._in_flight += 1
        window.peak = max(window.peak, busy)

    def answered(self, now: float, sent: float, kind: str) -> None:
        """Record an answer."""
        window = self._until(now)
        self._in_flight -= 1
        latency = now - sent
        known = self.of(kind)
        known.add(latency)
        self.latencies.add(latency)
        window.stretches.append(latency / known.best if known.best else 1.0)
        if self._counts(window, sent):
            window.answered += 1
            window.latencies += latency
            window.kinds[kind] += 1
        self._decide(window, now)

    def refused(self, now: float, sent: float, *, late: bool = False) -> None:
        """Record a request that was refused for lack of capacity, or that timed out (`late`)."""
        window = self._until(now)
        self._in_flight -= 1
        window.served -= now - max(sent, window.start)
        if late or self._counts(window, sent):
            window.refused += 1
            window.late += late
        self._decide(window, now)

    def lost(self, now: float) -> None:
        """Record a request that ended for a reason other than load."""
        self._until(now)
        self._in_flight -= 1

    def _until(self, now: float) -> _Window:
        idle = not self._in_flight and now - self._seen > 2 * self.latencies.typical
        if self._window is None or idle:  # a window does not span idle time
            self._window = _Window(now)
        else:
            self._window.served += self._in_flight * (now - self._seen)
        self._seen = now
        return self._window

    def _counts(self, window: _Window, sent: float) -> bool:
        # Requests sent before a decrease do not show its effect.
        return self._trial is None or sent >= window.start

    def _decide(self, window: _Window, now: float) -> None:
        unclear = window.refused or window.stretch > _NO_QUEUE
        few = _FEW if self._is_careful and unclear else 0
        needed = max(self.limit, few, self._trial.needs(window.refused) if self._trial else 0)
        elapsed = now - window.start
        if window.outcomes < needed or elapsed <= 0 or elapsed < self.latencies.typical:
            return
        refused, outcomes = self._recent
        decay = _KEPT / (_KEPT + window.outcomes)
        self._recent = (refused * decay + window.refused, outcomes * decay + window.outcomes)
        if self._trial:
            self._conclude(self._trial, window, elapsed)
        elif self._is_troubled(window):
            self._shrink(window, elapsed)
        elif window.peak >= self.limit:
            self._grow(window, elapsed)
        self.tolerated = max(
            _CALM, self.tolerated * 0.99
        )  # it decays, so that a decrease is tried again
        self._window = _Window(now)

    def _is_troubled(self, window: _Window) -> bool:
        tolerated = _AT_FIRST if self._begins and self._is_careful else self.tolerated
        expected = tolerated * window.outcomes
        return window.refused > expected + math.sqrt(expected)

    def _conclude(self, trial: _Trial, window: _Window, elapsed: float) -> None:
        self._trial = None
        first = self._before or trial
        # At the concurrency that it really serves, an endpoint has the same throughput.
        hurt = window.throughput(elapsed) < _BACK * first.throughput
        permanent = trial.is_in_vain(window.share) and self._is_troubled(window)
        if not permanent and not hurt:
            if window.share < _CURED * trial.share:
                self._before = None
            return
        self._before = None
        if window.share > _HOPELESS:
            self._shrink(window, elapsed)
            return
        self.limit = min(max(self.limit, first.limit), self._ceiling)
        self.tolerated = min(max(1.5 * window.share, self.tolerated), _HOPELESS)
        self._threshold = self._ceiling  # no increase has failed so far
        self._hold = self._failed = 0

    def _shrink(self, window: _Window, elapsed: float) -> None:
        """Decrease to the served concurrency (Little's law: seconds in flight per second)."""
        self._begins = False
        before = max(min(self.limit, window.peak), 1)
        served = window.served / elapsed
        if window.late * 2 > window.refused:
            served = min(
                served, _BACK * before
            )  # timed-out requests were in flight, but not served
        elif window.peak < self.limit:
            served = max(served, _BACK * before)  # the limit was not reached: weak evidence
        self.limit = max(1, min(int(served + 0.25), before - 1))
        self._threshold = max(self.limit, before // 2)
        refused, outcomes = self._recent
        usual = min(refused / outcomes, window.share)
        self._trial = _Trial(before, window.share, usual, window.throughput(elapsed))
        self._before = self._before or self._trial
        self._mark = None
        self._hold_back(before)

    def _hold_back(self, limit: int) -> None:
        self._hold = min(2**self._failed, _LONGEST_HOLD)
        self._failed += 1
        self._failed_at = limit

    def _grow(self, window: _Window, elapsed: float) -> None:
        if self._only_queues(window, elapsed):
            return
        if self.limit >= self._failed_at:
            self._failed = 0
        if self._hold > 0:
            self._hold -= 1
            return
        doubled = self.limit * 2 if self.limit < self._threshold else 0
        # Near a limit that failed: by one.
        near = 0.8 * self._failed_at <= self.limit <= 1.2 * self._failed_at
        step = self.limit + (1 if near else max(1, self.limit // 10))
        self.limit = min(max(step, min(doubled, self._threshold)), self._ceiling)

    def _work(self, kinds: Counter[str]) -> float:
        """The number of answers; after a low start the sum of the best latencies as known now."""
        if not self._starts_low:
            return kinds.total()
        return sum(count * self.of(kind).best for kind, count in kinds.items())

    def _only_queues(self, window: _Window, elapsed: float) -> bool:
        """Whether the last increase by half raised latency and not throughput.

        Where the start was low, an increase that brings little is taken back at once: a server that
        answers one request at a time is given no queue.
        """
        if self._mark is None:
            self._mark = (self.limit, window.kinds, elapsed)
            return False
        limit, kinds, seconds = self._mark
        if self.limit < 1.5 * limit:
            if self._is_careful and self.limit == limit:
                self._mark = (limit, kinds + window.kinds, seconds + elapsed)
            return False
        throughput, before = self._work(window.kinds) / elapsed, self._work(kinds) / seconds
        needed = before * (1 + _GAIN * (self.limit / limit - 1))
        was_careful = self._starts_low and limit < START
        if was_careful and window.stretch > _NO_QUEUE and throughput < needed:
            self._hold_back(self.limit)
            self.limit = limit
            return True
        if window.stretch <= _STRETCH or throughput > 1.15 * before:
            self._mark = (self.limit, window.kinds, elapsed)
            return False
        self._hold_back(self.limit)
        self.limit = self._threshold = max(1, round(1.2 * limit))
        return True
