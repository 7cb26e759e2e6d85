"""Hedged requests: one that takes much longer than its like is sent a second time."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Any

import pytest
from pydantic import SecretStr

from ragmetrics.config import JudgeSettings
from ragmetrics.http import HttpClient
from ragmetrics.judges import SpendLimiter, use_budget
from ragmetrics.judges.attempts import Attempts
from ragmetrics.judges.base import HEDGED, Reply, find_access
from ragmetrics.judges.live import LiveJudge
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask
from tests.fakes.clients import JudgeServer

KNOWN = 30
"""Requests from which the usual latency is known."""


def make_ask(number: int) -> Ask:
    """A question whose context answers it."""
    context = f"The height of tower {number} is 107 metres."
    return Ask(GRADE, {"question": f"What is the height of tower {number}?", "context": context})


def make_judge(server: JudgeServer, **more: Any) -> LiveJudge:
    """A live judge of the server."""
    chosen = JudgeSettings(name="openai", model="judge", base_url=server.base_url, **more)
    return LiveJudge(find_access(chosen, server.base_url, SecretStr("testing")), chosen)


def make_attempts() -> Attempts:
    """Attempts that send nothing."""
    chosen = JudgeSettings(name="openai")
    return Attempts(HttpClient("http://judge.invalid"), chosen.model, chosen)


def ask_late(
    server: JudgeServer, hanging: int = 1, budget: SpendLimiter | None = None, **more: Any
) -> tuple[list[Reply | BaseException], float]:
    """The replies to requests that hang at first, sent when latencies are known; and seconds."""

    async def put() -> tuple[list[Reply | BaseException], float]:
        judge = make_judge(server, **more)
        try:
            await asyncio.gather(*(judge.reply(make_ask(number), 0) for number in range(KNOWN)))
            server.faults(fail={"hang": 1.0}, fail_attempts=1)
            begun = time.monotonic()
            with use_budget(budget):
                late = [judge.reply(make_ask(KNOWN + number), 0) for number in range(hanging)]
                replies = await asyncio.gather(*late, return_exceptions=True)
            return replies, time.monotonic() - begun
        finally:
            await judge.close()

    return asyncio.run(put())


def test_a_request_that_hangs_is_answered_by_a_second_one(judge_server: JudgeServer) -> None:
    """After a second, not after the timeout; it counts as hedged and as no failure."""
    (reply,), _ = ask_late(judge_server)
    assert isinstance(reply, Reply) and reply.text
    assert dict(reply.failures) == {HEDGED: 1}
    assert judge_server.stats()["requests"] == KNOWN + 2


def test_without_hedging_the_timeout_ends_it(judge_server: JudgeServer) -> None:
    """`hedge: off`."""
    (reply,), _ = ask_late(judge_server, hedge=False)
    assert isinstance(reply, Reply)
    assert dict(reply.failures) == {"timeout": 1}


def test_an_endpoint_that_stalls_is_not_asked_twice(judge_server: JudgeServer) -> None:
    """Where many requests wait, no place of the endpoint hangs: it is slow as a whole."""
    late = 12
    replies, _ = ask_late(judge_server, hanging=late)
    hedged = sum(reply.failures.get(HEDGED, 0) for reply in replies if isinstance(reply, Reply))
    assert hedged <= math.ceil(1 + (KNOWN + late) / 20)


def test_a_budget_of_tokens_allows_no_second_request(judge_server: JudgeServer) -> None:
    """What the slower request costs is never known."""
    (reply,), _ = ask_late(judge_server, budget=SpendLimiter(tokens=1e9))
    assert isinstance(reply, Reply)
    assert HEDGED not in reply.failures


def test_a_budget_of_requests_counts_the_second_one(judge_server: JudgeServer) -> None:
    """It is an attempt like any other."""
    budget = SpendLimiter(requests=10)
    ask_late(judge_server, budget=budget)
    assert budget.requests == 8


def test_the_last_request_of_a_budget_is_not_doubled(judge_server: JudgeServer) -> None:
    """Without a request left the first one goes on, until its timeout."""
    budget = SpendLimiter(requests=1)
    (reply,), _ = ask_late(judge_server, budget=budget)
    assert "the budget's requests are used up" in str(reply)


@pytest.mark.parametrize(("answered", "most"), [(0, 1), (100, 6), (1_000, 51)])
def test_few_requests_are_sent_twice(answered: int, most: int) -> None:
    """One in twenty, and one more."""
    attempts = make_attempts()
    attempts.answered = answered
    while attempts.may_hedge(1, 64) and attempts.hedged < 2 * most:
        attempts.hedged += 1
    assert attempts.hedged == most


def test_requests_late_together_are_not_hedged() -> None:
    """More than three, and more than a tenth of those in flight."""
    attempts = make_attempts()
    assert attempts.may_hedge(4, 64)
    assert not attempts.may_hedge(4, 30)
    assert attempts.may_hedge(3, 1)


def test_an_unlimited_budget_allows_hedging() -> None:
    """Only limits on tokens and money forbid it."""
    with use_budget(SpendLimiter(requests=5, tokens=math.inf)):
        assert make_attempts().may_hedge(1, 1)
    with use_budget(SpendLimiter(usd=1.0)):
        assert not make_attempts().may_hedge(1, 1)


def test_a_request_that_others_find_late_is_paid_from_its_budget(judge_server: JudgeServer) -> None:
    """It was sent before latencies were known, and the answers to others set its timer."""
    budget = SpendLimiter(requests=10)

    async def put() -> Reply:
        judge = make_judge(judge_server)
        try:
            await judge.reply(make_ask(0), 0)  # the first one of a run goes alone
            judge_server.faults(fail={"hang": 1.0}, fail_attempts=1)
            with use_budget(budget):
                late = asyncio.create_task(judge.reply(make_ask(1), 0))
            while judge_server.stats()["requests"] < 2:
                await asyncio.sleep(0.01)
            judge_server.faults(fail={})
            await asyncio.gather(*(judge.reply(make_ask(number), 0) for number in range(2, KNOWN)))
            return await late
        finally:
            await judge.close()

    assert dict(asyncio.run(put()).failures) == {HEDGED: 1}
    assert budget.requests == 8
