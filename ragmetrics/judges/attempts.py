"""Attempts: a request is sent within its timeout, and a second time if it is late.

The first answer counts, and the slower request is given up. So one place of an endpoint that hangs
does not hold up a night until the timeout. A request is hedged so

    once, after twice the time in which nine in ten of its kind are answered, at least a second;
    at most one request in twenty, so that a slow endpoint gets little more load;
    not if many are late together: then the endpoint is slow, and not a place of it;
    not if the budget limits tokens or money: what the slower request costs is never known.

Source: Dean and Barroso 2013, "The tail at scale".

Durations are recorded as a histogram of OpenTelemetry, by its conventions for GenAI, where the
process has a provider of metrics. `tasks/tracing.py` sets one up.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragmetrics.errors import JudgeError, JudgeRefused, OverBudget
from ragmetrics.http import (
    Answer,
    Dropped,
    HttpClient,
    RetryableError,
    TooLarge,
    Unreachable,
    retry_after,
)
from ragmetrics.judges.base import HEDGED
from ragmetrics.judges.responses import used_up
from ragmetrics.judges.spending import Bill, bill_in_use, budget_in_use, take_attempt

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram

    from ragmetrics.config import JudgeSettings
    from ragmetrics.judges.endpoint import Call
    from ragmetrics.judges.rate_limiter import RateLimiter

_CONNECT_TRIES = 2  # to connect, before the server was ever reached
_ANSWER_LOST = (502, 504, 524)  # of a proxy that has lost the endpoint's answer
_HEDGED = 0.05
"""Largest share of requests that are sent a second time."""
_LATE_TOGETHER = 0.1
"""Share of the requests in flight that may be late at the same time; three always may."""


@dataclass(eq=False, slots=True)
class _Attempt:
    """A request from when it is sent until it is answered or given up."""

    call: Call[Any]
    sent: float
    ahead: int
    """Requests in flight when it was sent: the server may answer them first."""
    end: float
    """The deadline of the request."""
    limit: float
    """Most seconds that the server may take for it."""
    times: int
    """Factor of the usual timeout, for a request that timed out before."""
    hedge: Callable[[], None] | None = None
    """Called when it is late. None: it is not sent again."""
    knows: bool = False
    """Whether latencies of its kind are known."""
    is_late: bool = False
    answer: Answer | None = None
    """The answer to the second request, by which this one is given up."""
    second: asyncio.Task[None] | None = None
    scope: asyncio.Timeout | None = None
    alarm: asyncio.TimerHandle | None = None
    """Timer of its timeout."""
    timer: asyncio.TimerHandle | None = None
    """Timer of the second request."""
    context: Context = field(default_factory=copy_context)
    """Its budget and its bill: another request may find out that it is late."""

    def watch(self, limiter: RateLimiter) -> None:
        """End it at its timeout, which counts from when the server can have begun with it; until
        then look again when that would be. Sets the timer of the second request too.
        """
        usual = limiter.timeout(self.call.kind)
        self.knows = limiter.late_after(self.call.kind) < math.inf
        if self.hedge and self.knows and self.timer is None:
            left = self.sent + limiter.late_after(self.call.kind) - limiter.clock()
            self.timer = limiter.loop.call_later(left, self.hedge, context=self.context)
        due = limiter.begun(self.sent, self.ahead) + min(usual * self.times, self.limit)
        left = min(due, self.end) - limiter.clock()
        self.stop_watching()
        if left > 0:
            self.alarm = limiter.loop.call_later(left, self.watch, limiter)
        elif self.scope:
            self.scope.reschedule(limiter.loop.time())

    def stop_watching(self) -> None:
        """End it at no time."""
        if self.alarm:
            self.alarm.cancel()

    def close(self) -> None:
        """Send no second request, or give it up."""
        if self.timer:
            self.timer.cancel()
        if self.second:
            self.second.cancel()


class Attempts:
    """Sends the requests to one endpoint, and reports each outcome to its limiter."""

    def __init__(self, client: HttpClient, model: str, settings: JudgeSettings) -> None:
        self._client, self._model, self._settings = client, model, settings
        self._in_flight: set[_Attempt] = set()
        self._was_dropped = False
        """Whether a server has taken a connection, and broken it."""
        self.answered = self.hedged = 0

    async def send(
        self,
        limiter: RateLimiter,
        call: Call[Any],
        tokens: float,
        sent: float,
        deadline: float,
        failures: Counter[str],
    ) -> Answer:
        """The answer to a request whose slot was given at `sent`.

        Raises RetryableError, TooLarge, and JudgeRefused if no server was ever reached.
        """
        first = self._attempt(limiter, call, sent, deadline, failures)
        if not self._settings.hedge or failures[HEDGED]:
            return await self._run(limiter, first, failures)
        first.hedge = partial(self._hedge, limiter, first, tokens, deadline, failures)
        try:
            return await self._run(limiter, first, failures)
        except RetryableError:
            if first.second:
                await asyncio.wait([first.second])
            if first.answer:
                return first.answer
            raise
        finally:
            first.close()

    def _attempt(
        self,
        limiter: RateLimiter,
        call: Call[Any],
        sent: float,
        deadline: float,
        failures: Counter[str],
    ) -> _Attempt:
        ahead, end = limiter.concurrency.in_flight - 1, max(deadline, sent + 1.0)
        limit = self._settings.timeout_seconds
        return _Attempt(call, sent, ahead, end, limit, 2 ** failures["timeout"])

    def _hedge(self, limiter: RateLimiter, first: _Attempt, *more: Any) -> None:
        """A request is late: send it a second time, if that is allowed."""
        first.is_late = True
        late = sum(attempt.is_late for attempt in self._in_flight)
        if self.may_hedge(late, len(self._in_flight)):
            first.second = limiter.loop.create_task(self._send_again(limiter, first, *more))

    def may_hedge(self, late: int, in_flight: int) -> bool:
        """Whether one more request may be sent a second time."""
        budget = budget_in_use()
        return (
            late <= max(3, _LATE_TOGETHER * in_flight)
            and self.hedged < 1 + _HEDGED * self.answered
            and not (budget and budget.limits_spend)
        )

    async def _send_again(
        self,
        limiter: RateLimiter,
        first: _Attempt,
        tokens: float,
        deadline: float,
        failures: Counter[str],
    ) -> None:
        try:
            now = await limiter.enter(tokens, again=True)
            try:  # the first request may have ended meanwhile, so the slot comes first
                await bill_in_use().set_aside()
                take_attempt(embeds=first.call.kind == "embedding")
            except OverBudget:
                limiter.lost()
                raise
            self.hedged += 1
            failures[HEDGED] += 1
            second = self._attempt(limiter, first.call, now, deadline, failures)
            answer = await self._run(limiter, second, failures)
        except (RetryableError, JudgeError, TooLarge):
            return  # the first request may still be answered
        if answer.status == 200:
            first.answer = answer
            if first.scope:
                first.scope.reschedule(0)

    async def _run(self, limiter: RateLimiter, attempt: _Attempt, failures: Counter[str]) -> Answer:
        """Send the request once, and report the outcome to the limiter."""
        try:
            answer = await self._in_time(limiter, attempt)
        except TimeoutError as error:
            if attempt.answer:
                limiter.lost()
            else:
                limiter.late(attempt.sent)
            seconds = limiter.clock() - attempt.sent
            message = f"the judge did not answer in time ({seconds:.3g} s)"
            raise RetryableError("timeout", message) from error
        except Unreachable as error:
            limiter.lost()
            raise self._unreachable(error, failures) from error
        except Dropped as error:
            limiter.lost()
            self._was_dropped = True
            message = f"the connection to the judge broke: {error}"
            raise RetryableError("dropped", message) from error
        except BaseException:
            limiter.lost()
            raise
        if answer.status == 200:
            self.answered += 1
            limiter.answered(attempt.sent, attempt.call.kind)
            self._tighten_timeouts(limiter)
        elif answer.status in (429, 503):
            limiter.refused(attempt.sent, retry_after(answer.headers, datetime.now(UTC)))
        else:
            limiter.lost()
        if wait := used_up(answer.headers):
            limiter.pause(wait)
        return answer

    async def _in_time(self, limiter: RateLimiter, attempt: _Attempt) -> Answer:
        bill = bill_in_use()
        async with asyncio.timeout(None) as attempt.scope:
            attempt.watch(limiter)
            self._in_flight.add(attempt)
            try:
                with timed(self._model, self._client.address, attempt.call.path):
                    return await self._post(attempt.call, bill)
            finally:
                self._in_flight.discard(attempt)
                attempt.stop_watching()
                attempt.scope = None

    async def _post(self, call: Call[Any], bill: Bill) -> Answer:
        """Send the request once. An error by status costs nothing; a proxy's may hide an answer."""
        bill.send()
        try:
            answer = await self._client.send("POST", call.path, body=call.body)
        except Unreachable:
            bill.free()
            raise
        except BaseException:
            bill.lose()
            raise
        if answer.status in _ANSWER_LOST:
            bill.lose()
        elif answer.status != 200:
            bill.free()
        return answer

    def _tighten_timeouts(self, limiter: RateLimiter) -> None:
        """Apply the timeout of known latencies to requests that were sent before it was known."""
        for attempt in [attempt for attempt in self._in_flight if not attempt.knows]:
            if limiter.timeout(attempt.call.kind) < math.inf:
                attempt.watch(limiter)

    def _unreachable(
        self, error: Unreachable, failures: Counter[str]
    ) -> RetryableError | JudgeRefused:
        message = f"no connection to {self._client.address}/: {error}"
        may_retry = not error.permanent and failures["dropped"] + 1 < _CONNECT_TRIES
        if self._client.reached or self._was_dropped or may_retry:
            return RetryableError("dropped", message)
        return JudgeRefused(message)


_BOUNDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Upper bounds in seconds, as the conventions advise."""

_OPERATIONS = {"completions": "chat", "embeddings": "embeddings", "rerank": "rerank"}
"""By the last word of the path."""


@contextmanager
def timed(model: str, address: str, path: str) -> Iterator[None]:
    """Record how long the block takes, with the kind of its error, if it ends in one.

    Of the address only the host is recorded: an address may hold a password.
    """
    # A process that exports metrics has imported this; others need not look for it.
    if "opentelemetry.sdk.metrics" not in sys.modules:
        yield
        return
    attributes = {
        "gen_ai.operation.name": _OPERATIONS.get(path.rpartition("/")[2], "other"),
        "gen_ai.request.model": model,
        "server.address": urlsplit(address).hostname or "",
    }
    begun = perf_counter()
    try:
        yield
    except BaseException as error:
        attributes["error.type"] = type(error).__name__
        raise
    finally:
        _histogram().record(perf_counter() - begun, attributes)


@cache
def _histogram() -> Histogram:
    from opentelemetry.metrics import get_meter

    return get_meter("ragmetrics").create_histogram(
        "gen_ai.client.operation.duration",
        unit="s",
        description="Duration of requests to judges.",
        explicit_bucket_boundaries_advisory=_BOUNDS,
    )
