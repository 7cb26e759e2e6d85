"""Hedged requests: a request that takes much longer than its like is sent a second time.

The first answer counts, and the slower request is given up. So one place of an endpoint that hangs
does not hold up a night until the timeout. A request is hedged

    once, after twice the time in which nine in ten of its kind are answered, at least a second;
    at most one request in twenty, so that a slow endpoint gets little more load;
    not if many wait as long: then the endpoint is slow, and not a place of it;
    not if the budget limits tokens or money: what the slower request costs is never known.

Source: Dean and Barroso 2013, "The tail at scale".
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from ragmetrics.errors import JudgeError, OverBudget
from ragmetrics.http import Answer
from ragmetrics.judges.responses import RetryableError
from ragmetrics.judges.run_limits import budget_in_use

_MOST = 0.05
"""Largest share of requests that are hedged."""
_WAITING_TOGETHER = 0.1
"""Share of the requests in flight that may be late at the same time; three always may."""


class Hedges:
    """The hedged requests of one endpoint."""

    def __init__(self) -> None:
        self._answered = 0
        self._sent = 0
        self._late = 0

    def answered(self) -> None:
        """Count an answered request."""
        self._answered += 1

    def allowed(self, in_flight: int) -> bool:
        """Whether one more request may be hedged."""
        budget = budget_in_use()
        if budget and not (math.isinf(budget.tokens) and math.isinf(budget.usd)):
            return False
        if self._late > max(3, _WAITING_TOGETHER * in_flight):
            return False
        return self._sent < 1 + _MOST * self._answered

    def begin(self) -> None:
        """Count a request that is late."""
        self._late += 1

    def end(self) -> None:
        """A late request has ended."""
        self._late -= 1

    def send(self) -> None:
        """Count a request that is sent a second time."""
        self._sent += 1


class Hedge:
    """The second request for one that may become late.

    `send` sends it and returns the answer. `won` is called when the answer is a usable one, so that
    the caller gives the first request up.
    """

    def __init__(
        self,
        hedges: Hedges,
        send: Callable[[], Awaitable[Answer]],
        in_flight: Callable[[], int],
        won: Callable[[], None],
    ) -> None:
        self.answer: Answer | None = None
        self._hedges, self._send, self._in_flight, self._won = hedges, send, in_flight, won
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_late = False

    def begin_at(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        """Send the second request at a time of the loop, unless the first is answered before."""
        if self._timer is None and when < math.inf:
            self._timer = loop.call_at(when, self._begin)

    async def answer_of_second(self) -> Answer | None:
        """Wait for the second request, if it was sent; its answer, or None."""
        if self._task:
            await asyncio.wait([self._task])
        return self.answer

    def close(self) -> None:
        """The first request has ended: send no second one, or give it up."""
        if self._timer:
            self._timer.cancel()
        if self._task:
            self._task.cancel()
        if self._is_late:
            self._is_late = False
            self._hedges.end()

    def _begin(self) -> None:
        self._hedges.begin()
        self._is_late = True
        if self._hedges.allowed(self._in_flight()):
            self._task = asyncio.get_running_loop().create_task(self._race())

    async def _race(self) -> None:
        try:
            answer = await self._send()
        except (RetryableError, JudgeError, OverBudget):
            return  # the first request may still be answered
        if answer.status == 200:
            self.answer = answer
            self._won()
