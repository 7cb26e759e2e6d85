"""The gate: how many requests at once an endpoint is given, and when all must wait."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.judges.adaptive_concurrency import (
    CAREFUL_START,
    START,
    AdaptiveConcurrency,
    Latencies,
    first_in_flight,
)
from ragmetrics.judges.rate_limiter import Bucket, RateLimiter, shared_rate_limiter

Outcome = tuple[str, float]
Server = Callable[[int, random.Random], Outcome]


def endpoint(
    allowed: int = 1_000, refuse: float = 0.0, hang: float = 0.0, queue: int = 1_000
) -> Server:
    """An endpoint of 50 to 55 ms: refuses beyond so many at once, or at random, or queues."""

    def serve(in_flight: int, chance: random.Random) -> Outcome:
        if in_flight >= allowed or chance.random() < refuse:
            return "refused", 0.001
        if chance.random() < hang:
            return "late", 2.0
        return "answered", chance.uniform(0.05, 0.055) * max(1.0, (in_flight + 1) / queue)

    return serve


@dataclass
class Ended:
    """How a simulation went."""

    seconds: float
    refused: int = 0
    limits: list[int] = field(default_factory=list)


def play(
    pace: AdaptiveConcurrency, serve: Server, requests: int = 3_000, seed: int = 0, supply: int = 64
) -> Ended:
    """So many answers from an endpoint at the pace's limit; what is refused is asked again."""
    chance, ended = random.Random(seed), Ended(0.0)
    now, busy, answered, number = 0.0, 0, 0, 0
    served: set[int] = set()
    events: list[tuple[float, int, str, float]] = []
    while answered < requests:
        while busy < min(pace.limit, supply):
            busy, number = busy + 1, number + 1
            pace.sent(now, busy)
            outcome, seconds = serve(len(served), chance)
            if outcome == "answered":
                served.add(number)
            heapq.heappush(events, (now + seconds, number, outcome, now))
        now, event, outcome, sent = heapq.heappop(events)
        if outcome == "refused":
            pace.refused(now, sent)
            ended.refused += 1
            cooled = now + (pace.latencies.typical or 0.1)
            heapq.heappush(events, (cooled, event, "cooled", sent))
            continue
        busy -= 1
        if outcome == "answered":
            served.discard(event)
            answered += 1
            pace.answered(now, sent, "grade")
        elif outcome == "late":
            pace.refused(now, sent, late=True)
        ended.limits.append(pace.limit)
    ended.seconds = now
    return ended


def steady(ended: Ended) -> list[int]:
    """The limits after the beginning."""
    return ended.limits[len(ended.limits) // 4 :]


@settings(max_examples=15, deadline=None)
@given(allowed=st.integers(1, 60), seed=st.integers(0, 99))
def test_an_endpoint_that_refuses_beyond_its_limit_is_used_to_the_full(
    allowed: int, seed: int
) -> None:
    """Within a tenth of the throughput of who was told, with few refusals on the way."""
    ended = play(AdaptiveConcurrency(64), endpoint(allowed), 800, seed)
    assert ended.seconds < 1.1 * 800 * 0.0525 / allowed + 1.0
    assert max(steady(ended)) <= 1.1 * allowed + 1
    assert ended.refused < 0.1 * 800 + 100


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_refusals_that_have_nothing_to_do_with_load_do_not_slow_it_down(
    share: float, seed: int
) -> None:
    """Fewer at once are refused as often: the limit is restored, and the share tolerated."""
    ended = play(AdaptiveConcurrency(64), endpoint(refuse=share), seed=seed)
    limits = steady(ended)
    assert sum(limits) / len(limits) > 0.8 * 64


@pytest.mark.parametrize("seed", range(3))
def test_hanging_requests_do_not_slow_it_down(seed: int) -> None:
    """Two in a hundred that hang are not load."""
    limits = steady(play(AdaptiveConcurrency(64), endpoint(refuse=0.1, hang=0.02), seed=seed))
    assert sum(limits) / len(limits) > 0.8 * 64


@pytest.mark.parametrize("seed", range(3))
def test_random_refusals_do_not_hide_a_real_limit(seed: int) -> None:
    """With both, the endpoint is still used to the full and not far beyond."""
    ended = play(AdaptiveConcurrency(64), endpoint(20, refuse=0.1), seed=seed)
    assert ended.seconds < 1.25 * 3_000 * 0.0525 / 20
    assert sum(steady(ended)) / len(steady(ended)) < 40


def test_an_endpoint_that_only_queues_is_not_flooded() -> None:
    """Where twice as many at once only wait longer, the limit stays near what the server can do."""
    ended = play(AdaptiveConcurrency(1_000), endpoint(queue=16), 20_000, supply=1_000)
    assert max(steady(ended)) < 300


def test_an_endpoint_that_bears_all_gets_the_ceiling_soon() -> None:
    """16, 32, 64, and never beyond."""
    ended = play(AdaptiveConcurrency(64), endpoint())
    assert ended.limits[0] == START
    assert ended.limits.index(64) < 100
    assert max(ended.limits) == 64


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_answers_one_at_a_time_gets_no_queue(seed: int) -> None:
    """Where two at once only wait longer, the limit stays near two: no timeout is in danger."""
    limits = play(AdaptiveConcurrency(64, CAREFUL_START), endpoint(queue=1), 600, seed).limits
    assert sum(limits) / len(limits) < 5
    assert max(limits) <= 8


def test_an_unknown_endpoint_that_bears_all_gets_the_ceiling_too() -> None:
    """2, 4, 8 ..., a little later than a known provider."""
    ended = play(AdaptiveConcurrency(64, CAREFUL_START), endpoint())
    assert ended.limits[0] == CAREFUL_START
    assert ended.limits.index(64) < 400


def test_latencies_that_vary_are_no_queue() -> None:
    """Those of an LLM do. The first two are seldom the best, and say little about throughput."""

    def serve(in_flight: int, chance: random.Random) -> Outcome:
        return "answered", 0.05 * (1 + abs(chance.gauss(0, 2)))

    paces = [AdaptiveConcurrency(64, CAREFUL_START) for _ in range(40)]
    limits = [play(pace, serve, seed=seed).limits for seed, pace in enumerate(paces)]
    assert sum(one.index(64) > 100 for one in limits) <= 5  # without an increase taken back: 65


def test_a_ceiling_below_the_start_holds() -> None:
    """One at a time is one at a time."""
    assert set(play(AdaptiveConcurrency(1), endpoint(), 50).limits) == {1}


def test_an_outage_ends_and_the_limit_comes_back() -> None:
    """All refused: down to a single request; then it doubles again."""
    pace = AdaptiveConcurrency(64)
    play(pace, endpoint(), 500)
    down = AdaptiveConcurrency.successor(pace)
    for moment in range(2_000):
        down.sent(100 + moment / 100, 1)
        down.refused(100 + moment / 100 + 0.001, 100 + moment / 100)
    assert down.limit == 1
    assert play(down.successor(), endpoint(), 1_500).limits[-1] == 64


def test_a_short_supply_is_no_reason_to_shrink_far() -> None:
    """Few requests at once, of which some are refused, say little about the limit."""
    pace = AdaptiveConcurrency(64)
    play(pace, endpoint(), 1_000)
    assert min(play(pace.successor(), endpoint(refuse=0.1), 300, supply=8).limits) >= 4


def test_latencies_know_their_quantiles() -> None:
    """The median, the 95th percentile and the best of the latest."""
    latencies = Latencies()
    for number in range(1, 101):
        latencies.add(number / 100)
    assert latencies.count == 100
    assert latencies.typical == pytest.approx(0.5, abs=0.15)
    assert latencies.p95 == pytest.approx(0.95, abs=0.2)
    assert latencies.best < 0.02


class Clock:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_an_allowance_is_a_minutes() -> None:
    """600 a minute: about a second's worth at once, then one every tenth of a second."""
    bucket, taken = Bucket(600), []
    for tick in range(1_000):
        now = 50 + tick / 100
        while bucket.delay(now) <= 0:
            bucket.take(1, now)
            taken.append(now)
    assert 105 <= len(taken) <= 115


def test_an_allowance_smaller_than_a_request_is_paid_by_waiting() -> None:
    """1,000 tokens at 600 a minute take 100 seconds; what was too much comes back."""
    bucket = Bucket(600)
    assert bucket.delay(10) <= 0
    bucket.take(1_000, 10)
    assert bucket.delay(10) == pytest.approx(99)
    bucket.take(-500, 10)
    assert bucket.delay(10) == pytest.approx(49)


def entered(gate: RateLimiter, count: int) -> list[asyncio.Task[float]]:
    """So many who want in."""
    return [asyncio.ensure_future(gate.enter(1)) for _ in range(count)]


async def inside(tasks: list[asyncio.Task[float]]) -> int:
    """How many are in after all had their turn."""
    for _ in range(5):
        await asyncio.sleep(0)
    return sum(task.done() for task in tasks)


def test_no_more_get_in_than_the_limit() -> None:
    """A place given back lets the next in; who comes again goes first; who gave up is gone."""

    async def scenario() -> None:
        gate = RateLimiter(2)
        tasks = entered(gate, 4)
        assert await inside(tasks) == 2
        again = asyncio.ensure_future(gate.enter(1, again=True))
        await asyncio.sleep(0)
        tasks[2].cancel()
        gate.lost()
        assert await inside([again]) == 1
        assert await inside(tasks[3:]) == 0
        gate.lost()
        assert await inside(tasks[3:]) == 1

    asyncio.run(scenario())


def test_one_refused_request_waits_alone() -> None:
    """Others are answered meanwhile: the gate stays open whatever Retry-After says."""

    async def scenario() -> None:
        clock = Clock()
        gate = RateLimiter(16, clock=clock)
        for _ in range(10):
            await gate.enter(1)
        for _ in range(5):
            clock.now += 0.2
            gate.answered(clock.now - 0.1, "grade")
            gate.refused(clock.now - 0.1, 3_600)
        assert await inside(entered(gate, 1)) == 1

    asyncio.run(scenario())


def test_all_wait_where_all_are_refused() -> None:
    """A minute's quota that is used up closes the gate, until then and at most a minute."""

    async def scenario() -> None:
        clock = Clock()
        gate = RateLimiter(16, clock=clock)
        for _ in range(4):
            await gate.enter(1)
        for _ in range(4):
            clock.now += 0.1
            gate.refused(clock.now - 0.05, 3_600)
        waiting = entered(gate, 1)
        assert await inside(waiting) == 0
        clock.now += 61
        assert await inside([*waiting, *entered(gate, 1)]) == 2

    asyncio.run(scenario())


def test_a_timeout_follows_what_is_known() -> None:
    """Ten times the 95th percentile of the kind, at least two seconds."""

    async def scenario() -> None:
        gate = RateLimiter(64)
        assert gate.timeout("grade") == math.inf
        for _ in range(20):
            gate.concurrency.of("grade").add(0.05)
            gate.concurrency.of("questions").add(1.0)
        assert gate.timeout("grade") == 2
        assert gate.timeout("questions") == 10
        assert gate.timeout("other") == math.inf

    asyncio.run(scenario())


def test_what_was_learned_outlives_the_loop() -> None:
    """A gate of a later event loop begins with the limit found before; in one loop it is shared."""

    async def learn() -> int:
        gate = shared_rate_limiter("an endpoint", 64)
        assert shared_rate_limiter("an endpoint", 64) is gate
        assert shared_rate_limiter("another", 64) is not gate
        gate.concurrency.limit = 20
        return id(gate)

    async def remember() -> int:
        return shared_rate_limiter("an endpoint", 64).concurrency.limit

    asyncio.run(learn())
    assert asyncio.run(remember()) == 20


@pytest.mark.parametrize(
    ("address", "first"),
    [
        ("https://api.openai.com/v1/", START),
        ("https://team.openai.azure.com/openai/v1/", START),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/", START),
        ("http://localhost:11434/v1/", CAREFUL_START),
        ("http://10.0.0.7:8000/v1/", CAREFUL_START),
        ("https://notopenai.com/v1/", CAREFUL_START),
        ("https://openai.com.example/v1/", CAREFUL_START),
        ("", CAREFUL_START),
    ],
)
def test_a_known_provider_is_asked_more_at_once(address: str, first: int) -> None:
    """By its host; a server that nobody knows may answer one request at a time."""
    assert first_in_flight(address) == first
