"""The pace under changing ceilings, and of two that ask one endpoint and know nothing of it."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import example, given, strategies as st

from ragmetrics.judges.adaptive_concurrency import START, AdaptiveConcurrency
from ragmetrics.judges.rate_limiter import RateLimiter
from tests.fakes.instant import instantly


def serve(pace: AdaptiveConcurrency, now: float, seconds: float, refused: bool = False) -> float:
    """As many requests at once as the limit allows, each with its outcome; the time after them."""
    for busy in range(pace.limit):
        pace.sent(now, busy + 1)
    for _ in range(pace.limit):
        if refused:
            pace.refused(now + seconds, now)
        else:
            pace.answered(now + seconds, now, "grade")
    return now + seconds


def test_a_limit_that_was_found_out_comes_back_with_the_ceiling() -> None:
    """One that the ceiling cut; not one at which there was trouble."""
    pace = AdaptiveConcurrency(64)
    assert pace.limit == START
    pace.bound(8)
    assert pace.limit == 8
    pace.bound(64)
    assert pace.limit == START
    pace.bound(8)
    now = 0.0
    while pace.limit == 8:
        now = serve(pace, now, 1.0, refused=True)
    pace.bound(64)
    assert pace.limit < 8


@given(
    st.lists(
        st.tuples(
            st.integers(1, 100),
            st.lists(st.sampled_from([0.05, 0.2, 1.0, 5.0]), min_size=1, max_size=4),
        ),
        max_size=6,
    )
)
@example([(100, [0.05, 0.05]), (50, [5.0])])
def test_a_limit_that_the_ceiling_cut_is_the_ceiling_until_there_is_trouble(
    spells: list[tuple[int, list[float]]],
) -> None:
    """Longer waits do not lower it: what comes back with a higher ceiling is no limit that was
    given up meanwhile, because more at once only queued."""
    pace, now = AdaptiveConcurrency(100), 0.0
    for ceiling, latencies in spells:
        cut = pace.limit > ceiling
        pace.bound(ceiling)
        for latency in latencies:
            now = serve(pace, now, latency)
            assert pace.limit <= ceiling
            assert not cut or pace.limit == ceiling


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
        for one in answered:
            gate = RateLimiter(64, clock=loop.time)
            askers += [asyncio.ensure_future(ask(gate, endpoint, one)) for _ in range(64)]
            await asyncio.sleep(3)
        await asyncio.sleep(60)
        assert not any(one.done() for one in askers)
        return [sum(moment >= 6 for moment in one) for one in answered]

    gains = instantly(main())
    assert sum(gains) > 0.95 * 60 * 12 / 0.1
    assert min(gains) > 60
