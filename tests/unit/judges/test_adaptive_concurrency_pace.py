"""The concurrency of two that ask one endpoint and know nothing of each other."""

from __future__ import annotations

import asyncio
import random

import pytest

from ragmetrics.judges.rate_limiter import RateLimiter
from tests.fakes.instant import instantly


class Endpoint:
    """Answers in about 0.1 s, and refuses what is beyond a dozen at once."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._at_work = 0

    async def answers(self) -> bool:
        """Whether it answers; what is refused is refused at once."""
        if self._at_work == 12:
            return False
        self._at_work += 1
        await asyncio.sleep(self._chance.uniform(0.08, 0.12))
        self._at_work -= 1
        return True


async def ask(gate: RateLimiter, endpoint: Endpoint, answered: list[float]) -> None:
    """One request after the other; what is refused is asked again a little later."""
    refused = 0
    while True:
        sent = await gate.enter(0, again=refused > 0)
        if await endpoint.answers():
            gate.answered(sent, "grade")
            answered.append(gate.clock())
            refused = 0
        else:
            gate.refused(sent)
            await asyncio.sleep(gate.latency * 2**refused)
            refused += 1


@pytest.mark.parametrize("seed", range(5))
def test_two_that_are_refused_by_one_endpoint_both_get_on(seed: int) -> None:
    """They know nothing of each other. Together they use it to the full; parts may be as unequal
    as eleven to one, and the lesser has an answer a second at least."""

    async def main() -> list[int]:
        loop, endpoint = asyncio.get_running_loop(), Endpoint(seed)
        answered: list[list[float]] = [[], []]
        askers: list[asyncio.Future[None]] = []
        for times in answered:
            gate = RateLimiter(64, clock=loop.time)
            askers += [asyncio.ensure_future(ask(gate, endpoint, times)) for _ in range(64)]
            await asyncio.sleep(3)
        await asyncio.sleep(60)
        assert not any(one.done() for one in askers)
        return [sum(moment >= 6 for moment in one) for one in answered]

    gains = instantly(main())
    assert sum(gains) > 0.95 * 60 * 12 / 0.1
    assert min(gains) > 60
