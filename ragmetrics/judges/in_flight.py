"""A request in flight: when it times out, and when it is sent a second time."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragmetrics.judges.hedging import Hedge
    from ragmetrics.judges.rate_limiter import RateLimiter


@dataclass(eq=False, slots=True)
class RequestInFlight:
    """One attempt, from when it is sent until it ends."""

    kind: str
    sent: float
    limit: float
    times: int
    """Factor of the usual timeout, for a request that timed out before."""
    knows: bool = False
    """Whether the timeout follows from known latencies."""
    scope: asyncio.Timeout | None = None
    hedge: Hedge | None = None

    def seconds(self, limiter: RateLimiter) -> float:
        """Seconds from when it was sent."""
        usual = limiter.timeout(self.kind)
        self.knows = usual < math.inf
        return min(usual * self.times, self.limit)

    def plan_hedge(self, limiter: RateLimiter) -> None:
        """Send the request a second time when it is late, if that is known and wanted."""
        if self.hedge:
            left = self.sent + limiter.late_after(self.kind) - limiter.clock()
            self.hedge.begin_at(limiter.loop, limiter.loop.time() + left)

    def give_up(self) -> None:
        """End it: the second request has the answer."""
        if self.scope:
            self.scope.reschedule(0)

    @property
    def is_given_up(self) -> bool:
        """Whether the second request has the answer."""
        return self.hedge is not None and self.hedge.answer is not None
