"""Timeouts of requests to a server that answers one at a time."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ragmetrics.config import JudgeSettings
from ragmetrics.http import Answer, RetryableError
from ragmetrics.judges.attempts import Attempts
from ragmetrics.judges.endpoint import Call
from ragmetrics.judges.rate_limiter import RateLimiter
from tests.fakes.instant import instantly


class Server:
    """Answers in `seconds`, `slots` requests at a time; those of `hangs` never."""

    address = "http://judge.invalid"
    reached = True

    def __init__(self, slots: int, seconds: float, hangs: frozenset[str] = frozenset()) -> None:
        self._slots, self._seconds, self._hangs = asyncio.Semaphore(slots), seconds, hangs
        self.asked: Counter[str] = Counter()

    async def send(self, method: str, path: str, *, body: bytes) -> Answer:
        """The answer, in its turn."""
        self.asked[body.decode()] += 1
        if body.decode() in self._hangs and self.asked[body.decode()] == 1:
            await asyncio.sleep(math.inf)
        async with self._slots:
            await asyncio.sleep(self._seconds)
        return Answer(200, {}, b"{}")


async def ask(server: Server, requests: int, limit: int, **settings: Any) -> Mapping[str, Any]:
    """What became of some requests, `limit` at a time, by number."""
    chosen = JudgeSettings(name="openai", hedge=False, **settings)
    attempts = Attempts(server, "judge", chosen)  # type: ignore[arg-type]
    limiter = RateLimiter(limit, start=limit, clock=asyncio.get_running_loop().time)

    async def one(number: int) -> Any:
        call = Call("/judge", "grade", str(number).encode(), lambda answer: answer)
        sent = await limiter.enter(0)
        try:
            await attempts.send(limiter, call, 0, sent, sent + 600, Counter())
        except RetryableError as error:
            return error.kind
        return limiter.clock() - sent

    told = await asyncio.gather(*map(one, range(requests)))
    return {str(number): outcome for number, outcome in enumerate(told)}


def test_a_queue_in_the_server_is_no_timeout() -> None:
    """Eight are sent at once and answered one a second: the last one waits for eight seconds."""

    async def main() -> Mapping[str, Any]:
        return await ask(Server(1, 1.0), 8, 8, timeout_seconds=1.5)

    assert [instantly(main())[str(number)] for number in range(8)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_request_that_would_be_answered_next_is_not_dropped() -> None:
    """All requests are sent once, though all but the first take longer than the timeout."""

    async def main() -> Server:
        server = Server(1, 1.0)
        await ask(server, 40, 4, timeout_seconds=1.2)
        return server

    assert set(instantly(main()).asked.values()) == {1}


def test_a_request_that_is_overtaken_times_out() -> None:
    """Others that were sent later are answered: its place of the server hangs."""

    async def main() -> Mapping[str, Any]:
        return await ask(Server(4, 1.0, frozenset("2")), 12, 4, timeout_seconds=3)

    told = instantly(main())
    assert told.pop("2") == "timeout"
    assert set(told.values()) == {1}


def test_a_server_that_never_answers_is_not_waited_for() -> None:
    """Without an answer the timeout counts from when a request was sent."""

    async def main() -> tuple[Mapping[str, Any], float]:
        server = Server(1, math.inf)
        told = await ask(server, 2, 2, timeout_seconds=5)
        return told, asyncio.get_running_loop().time()

    told, seconds = instantly(main())
    assert set(told.values()) == {"timeout"}
    assert seconds == 5


def test_a_last_request_that_hangs_ends_as_soon_as_others() -> None:
    """It was sent behind 63 others, all of which are answered: nothing is ahead of it any more."""

    async def main() -> tuple[Mapping[str, Any], float]:
        told = await ask(Server(64, 1.0, frozenset({"63"})), 64, 64, timeout_seconds=3)
        return told, asyncio.get_running_loop().time()

    told, seconds = instantly(main())
    assert told["63"] == "timeout"
    assert seconds <= 5
