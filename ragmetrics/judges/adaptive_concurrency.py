"""How many requests at once an endpoint bears, found out from what becomes of them.

Pure logic: time is a parameter, nothing waits. Outcomes are gathered in windows of about one
latency and `limit` requests, and each window ends in one decision:

- refused (429, 503) or timed out too often: down, to the requests that were really served at once;
- then a trial: where fewer at once are refused as often, load was not the reason, so the limit is
  restored and that share of refusals is tolerated from then on;
- all well, and the limit was in use: up, doubling at first and again until the last trouble, then
  by a tenth, near where that did not work by one;
- half as many more brought nothing but longer waits: back, for the endpoint only queues them.
"""

from __future__ import annotations

import math
from collections import deque
from copy import copy
from dataclasses import dataclass, field
from statistics import median

START = 16
"""Requests at once to begin with."""

_CALM = 0.02  # a share of refusals that is nobody's load
_NO_HELP = 0.7  # of the refusals before: as many as that after a decrease, and it did not help
_CURED = 0.25  # so many or fewer, and load was the reason
_BACK = 0.7  # of the limit, where the requests served at once are not known
_HOPELESS = 0.5  # a share of refusals that is never put up with
_STRETCH = 3.0  # times its best latency that an answer may take before load is suspected
_LONGEST_HOLD = 32  # windows between two attempts to go beyond a limit that held so far
_KEPT = 200  # latencies remembered


class Latencies:
    """The latest latencies of one kind of request, in seconds."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=_KEPT)
        self._fresh = 0
        self.count = 0
        self.best = math.inf
        self.typical = 0.0
        """The median; 0 before there is one."""
        self.p95 = 0.0

    def add(self, latency: float) -> None:
        """Remember one; quantiles follow every few."""
        self._kept.append(latency)
        self.count += 1
        self._fresh += 1
        # What was best once may not be for ever: it drifts up until it is met again.
        self.best = min(self.best * 1.00001, latency)
        if self._fresh >= min(self.count / 4, _KEPT / 8):
            self._fresh = 0
            ordered = sorted(self._kept)
            self.typical = ordered[len(ordered) // 2]
            self.p95 = ordered[int(len(ordered) * 0.95)]


@dataclass(slots=True)
class _Window:
    """Outcomes since the last decision."""

    start: float
    answered: int = 0
    refused: int = 0
    late: int = 0
    """Those among the refused that timed out."""
    served: float = 0.0
    """Seconds that requests were in flight, all together, without those refused."""
    peak: int = 0
    """Most places taken."""
    latencies: float = 0.0
    """Of those answered, all together."""
    stretches: list[float] = field(default_factory=list)
    """Latencies over the best of their kind."""

    @property
    def outcomes(self) -> int:
        return self.answered + self.refused

    @property
    def share(self) -> float:
        return self.refused / self.outcomes if self.outcomes else 0.0

    def throughput(self, elapsed: float) -> float:
        """Answers a second by Little's law: counted, they would depend on where bursts fall."""
        return self.served / elapsed * self.answered / self.latencies if self.latencies else 0.0


@dataclass(frozen=True, slots=True)
class _Trial:
    """A decrease whose effect is awaited; what was before it."""

    limit: int
    share: float
    """Of refusals in the window that led to it, which by chance may have had many,"""
    usual: float
    """and of late."""
    throughput: float

    def needs(self, refused: int) -> int:
        """How many outcomes tell whether refusals became fewer; soon, if there are none at all."""
        return min(math.ceil((20 if refused else 8) / self.usual), _KEPT)

    def is_in_vain(self, share: float) -> bool:
        """Whether as many are refused as before."""
        return share >= _NO_HELP * self.usual and share >= 0.5 * self.share


class AdaptiveConcurrency:
    """The limit, and what was learned on the way to it."""

    def __init__(self, ceiling: int) -> None:
        self.limit = min(START, ceiling)
        self.tolerated = _CALM
        """The share of refusals that has nothing to do with load."""
        self.latencies = Latencies()
        self._ceiling = ceiling
        self._kinds: dict[str, Latencies] = {}
        self._in_flight = 0
        self._seen = 0.0
        self._window: _Window | None = None
        self._trial: _Trial | None = None
        self._before: _Trial | None = None  # the first of several decreases in a row
        self._recent = (0.0, 0.0)  # refused and all, of late
        self._threshold = ceiling  # doubling up to here
        self._hold = 0  # windows to wait before growing
        self._failed = 0  # times in a row that going beyond did not work
        self._failed_at = 0  # the limit at which it did not
        self._mark: tuple[int, float] | None = None  # a limit and the throughput it gave
        self._cut = 0  # the limit before a lower ceiling cut it

    def bound(self, ceiling: int) -> None:
        """Another ceiling from now on; a limit that only the ceiling cut comes back with it."""
        if ceiling == self._ceiling:
            return
        if self._threshold >= self._ceiling:
            self._threshold = ceiling  # no trouble was met so far
        self._ceiling = ceiling
        before = max(self.limit, self._cut)
        self.limit = min(before, ceiling)
        self._cut = before if before > ceiling else 0
        self._mark = None

    def successor(self) -> AdaptiveConcurrency:
        """What was learned, for the next gate before the same endpoint."""
        heir = copy(self)
        heir._in_flight, heir._window, heir._trial, heir._before = 0, None, None, None
        return heir

    def of(self, kind: str) -> Latencies:
        """The latencies of one kind of request."""
        return self._kinds.setdefault(kind, Latencies())

    def sent(self, now: float, busy: int) -> None:
        """A request goes out, with which so many places below the limit are taken."""
        window = self._until(now)
        self._in_flight += 1
        window.peak = max(window.peak, busy)

    def answered(self, now: float, sent: float, kind: str) -> None:
        """A request was answered."""
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
        self._decide(window, now)

    def refused(self, now: float, sent: float, *, late: bool = False) -> None:
        """A request was refused for want of capacity, or `late`: not answered in time."""
        window = self._until(now)
        self._in_flight -= 1
        window.served -= now - max(sent, window.start)
        if late or self._counts(window, sent):
            window.refused += 1
            window.late += late
        self._decide(window, now)

    def lost(self, now: float) -> None:
        """A request ended in a way that says nothing about load."""
        self._until(now)
        self._in_flight -= 1

    def _until(self, now: float) -> _Window:
        idle = not self._in_flight and now - self._seen > 2 * self.latencies.typical
        if self._window is None or idle:  # a window does not span times when nothing was asked
            self._window = _Window(now)
        else:
            self._window.served += self._in_flight * (now - self._seen)
        self._seen = now
        return self._window

    def _counts(self, window: _Window, sent: float) -> bool:
        # What was sent before a decrease says nothing about its effect.
        return self._trial is None or sent >= window.start

    def _decide(self, window: _Window, now: float) -> None:
        needed = max(self.limit, self._trial.needs(window.refused) if self._trial else 0)
        elapsed = now - window.start
        if window.outcomes < needed or elapsed <= 0 or elapsed < self.latencies.typical:
            return
        refused, outcomes = self._recent
        kept = _KEPT / (_KEPT + window.outcomes)
        self._recent = (refused * kept + window.refused, outcomes * kept + window.outcomes)
        if self._trial:
            self._conclude(self._trial, window, elapsed)
        elif self._is_troubled(window):
            self._shrink(window, elapsed)
        elif window.peak >= self.limit:
            self._grow(window, elapsed)
        self.tolerated = max(_CALM, self.tolerated * 0.99)  # so that it is tried again
        self._window = _Window(now)

    def _is_troubled(self, window: _Window) -> bool:
        expected = self.tolerated * window.outcomes
        return window.refused > expected + math.sqrt(expected)

    def _conclude(self, trial: _Trial, window: _Window, elapsed: float) -> None:
        self._trial = None
        first = self._before or trial
        # Down to what was really served, an endpoint answers as much as before.
        hurt = window.throughput(elapsed) < _BACK * first.throughput
        in_vain = trial.is_in_vain(window.share) and self._is_troubled(window)
        if not in_vain and not hurt:
            if window.share < _CURED * trial.share:
                self._before = None
            return
        self._before = None
        if window.share > _HOPELESS:
            self._shrink(window, elapsed)
            return
        self.limit = min(max(self.limit, first.limit), self._ceiling)
        self.tolerated = min(max(1.5 * window.share, self.tolerated), _HOPELESS)
        self._threshold = self._ceiling  # no trouble was met so far
        self._hold = self._failed = 0

    def _shrink(self, window: _Window, elapsed: float) -> None:
        """Down to what was served at once (Little's law: seconds in flight per second)."""
        before = max(min(self.limit, window.peak), 1)
        served = window.served / elapsed
        if window.late * 2 > window.refused:
            served = min(served, _BACK * before)  # they were in flight, but not served
        elif window.peak < self.limit:
            served = max(served, _BACK * before)  # few were asked at once: that says little
        self.limit = max(1, min(int(served + 0.25), before - 1))
        self._threshold = max(self.limit, before // 2)
        refused, outcomes = self._recent
        usual = min(refused / outcomes, window.share)
        self._trial = _Trial(before, window.share, usual, window.throughput(elapsed))
        self._before = self._before or self._trial
        self._mark = None
        self._hold_back(before)

    def _hold_back(self, limit: int) -> None:
        self._cut = 0
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
        # Near where it did not work before, one at a time.
        near = 0.8 * self._failed_at <= self.limit <= 1.2 * self._failed_at
        step = self.limit + (1 if near else max(1, self.limit // 10))
        self.limit = min(max(step, min(doubled, self._threshold)), self._ceiling)

    def _only_queues(self, window: _Window, elapsed: float) -> bool:
        """Whether the last half of the limit brought longer waits and no more answers."""
        throughput = window.answered / elapsed
        if self._mark is None:
            self._mark = (self.limit, throughput)
            return False
        limit, before = self._mark
        if self.limit < 1.5 * limit:
            return False
        stretched = bool(window.stretches) and median(window.stretches) > _STRETCH
        if not stretched or throughput > 1.15 * before:
            self._mark = (self.limit, throughput)
            return False
        self._hold_back(self.limit)
        self.limit = self._threshold = max(1, round(1.2 * limit))
        return True
