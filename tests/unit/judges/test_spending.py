"""What a run says that it cost, and what its budget allows, against the endpoint's own count."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from ragmetrics import evaluate
from ragmetrics.config import make_settings
from ragmetrics.errors import OverBudget
from ragmetrics.judges import Judge, Reply, SpendLimiter
from ragmetrics.judges.client_base import MeteredJudge
from ragmetrics.judges.spending import Bill, Expectation, Forecast, bill_in_use
from ragmetrics.metrics import GRADE
from ragmetrics.pipeline import Night
from ragmetrics.records import Ask, Usage
from ragmetrics.scoring import list_parts, score_part
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

PROMPT, COMPLETION = 400.0, 1_600.0
PRICES = {
    "usd_per_million_prompt_tokens": PROMPT,
    "usd_per_million_completion_tokens": COMPLETION,
}
LOST: dict[str, dict[str, Any]] = {
    "lost": {"fail": {"drop": 0.3}},
    "late": {"fail": {"late": 0.2}, "fail_attempts": 1},
    "asked again": {"fail": {"malformed": 0.4}},
    "refused": {"fail": {"500": 0.2, "429": 0.2}},
}
"""Faults of the server. All but the last bill the request."""
METRICS = ["context_relevance", "context_recall"]


def usage(server: JudgeServer, budget: dict[str, Any] | None = None, **judge: Any) -> Usage:
    """What a run of 60 rows says that it used."""
    chosen = judge_at(server) | PRICES | judge
    settings = make_settings({"judge": chosen, **({"budget": budget} if budget else {})})
    return evaluate(make_rows(60), METRICS, settings=settings).manifest.usage


def billed(server: JudgeServer) -> tuple[int, int, float]:
    """Requests, tokens and dollars by the server's own count."""
    met = server.stats()
    prompt, completion = met["prompt_tokens"], met["completion_tokens"]
    dollars = (prompt * PROMPT + completion * COMPLETION) / 1e6
    return met["requests"], prompt + completion, dollars


def all_are_told(said: Usage, requests: int) -> bool:
    """Each request that the server has read is in the count. One that was cut before it was read
    may be too, as a request of which nobody knows whether it is on the bill."""
    return requests <= said.requests <= requests + said.unknown_requests


@pytest.mark.parametrize("fault", LOST)
def test_the_bill_is_told_as_it_is(judge_server: JudgeServer, fault: str) -> None:
    """Requests are counted exactly; tokens and dollars of lost answers are estimated to a tenth."""
    judge_server.faults(**LOST[fault])
    said = usage(judge_server, timeout_seconds=1 if fault == "late" else 60)
    requests, tokens, dollars = billed(judge_server)
    assert all_are_told(said, requests)
    assert said.tokens == pytest.approx(tokens, rel=0.1)
    assert said.usd == pytest.approx(dollars, rel=0.1)
    assert (said.unknown_requests > 0) == (fault in ("lost", "late"))
    if said.unknown_requests:
        assert said.unknown_usd and 0 < said.unknown_usd < dollars


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize(
    "budget", [{"max_requests": 60}, {"max_tokens": 10_000}, {"max_usd": 5.0}], ids=str
)
def test_a_budget_holds_for_answers_that_never_come(
    judge_server: JudgeServer, fault: str, budget: dict[str, Any]
) -> None:
    """By the server's own count: requests exactly, tokens and dollars but for a tenth."""
    judge_server.faults(**LOST[fault])
    said = usage(judge_server, budget, timeout_seconds=1)
    requests, tokens, dollars = billed(judge_server)
    assert requests <= budget.get("max_requests", requests)
    assert tokens <= 1.1 * budget.get("max_tokens", tokens)
    assert dollars <= 1.1 * budget.get("max_usd", dollars)
    assert all_are_told(said, requests)


def test_a_hedged_request_is_on_the_bill_twice(judge_server: JudgeServer) -> None:
    """The slower of two requests is given up, and stays charged as expected, as one that took
    too long does: on a busy machine some do."""
    usage(judge_server)  # latencies are known
    judge_server.reset()
    judge_server.faults(fail={"late": 0.03}, fail_attempts=1)
    said = usage(judge_server, timeout_seconds=30)
    requests, tokens, _ = billed(judge_server)
    assert all_are_told(said, requests)
    assert said.tokens == pytest.approx(tokens, rel=0.05)
    assert said.hedged > 0
    assert said.unknown_requests == said.hedged + said.failures.get("timeout", 0)


def test_requests_that_a_deadline_cuts_are_counted(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """They may be on the bill, and the manifest says how much of it is estimated."""
    usage(judge_server)  # what a first request imports takes no time of the deadline's
    judge_server.reset()
    judge_server.faults(fail={"late": 0.3})
    settings = make_settings(
        {
            "dataset": "d",
            "logs": str(write_jsonl(tmp_path / "log.jsonl", make_rows(40))),
            "store": str(tmp_path / "store"),
            "metrics": METRICS,
            "judge": judge_at(judge_server) | PRICES,
        }
    )
    staged = Night(settings).stage(NIGHT)
    until = datetime.now(UTC) + timedelta(seconds=12)
    for family, shard in list_parts(settings, staged):
        score_part(settings, staged.ref, family, shard, until=until)
    said = Night(settings).publish(staged).usage
    requests, tokens, _ = billed(judge_server)
    assert all_are_told(said, requests)
    assert said.unknown_requests > 0
    assert said.tokens == pytest.approx(tokens, rel=0.1)


@pytest.mark.parametrize("budget", [5_000, 8_000, 20_000])
def test_a_small_budget_starts_with_one_request(judge_server: JudgeServer, budget: int) -> None:
    """Nobody knows yet that a reply has 2,000 tokens: a first wave would cost thirty times the
    budget. The first request shows it, of which the reply is cut at the bound of its verdict and
    asked for again with more room; the first one of the other kind is expected to cost as much.
    """
    judge_server.faults(extra_tokens=2_000)
    usage(judge_server, {"max_tokens": budget}, max_tokens=5_000)
    sent, tokens, _ = billed(judge_server)
    assert sent <= 1 + budget / 2_000
    assert budget / 2 < tokens <= budget


def test_a_budget_below_one_request_pays_for_one(judge_server: JudgeServer) -> None:
    """What it costs is known only afterwards; no other is sent beside it."""
    judge_server.faults(extra_tokens=2_000)
    usage(judge_server, {"max_tokens": 1_000})
    sent, tokens, _ = billed(judge_server)
    assert sent == 2 and tokens <= 2_500


def test_a_kind_that_is_never_answered_holds_up_no_other() -> None:
    """Its requests go alone; those of a kind that is known do not wait for them."""
    kinds = {"failing": Expectation(), "known": Expectation()}

    async def play() -> list[str]:
        budget, order = SpendLimiter(tokens=1e6), []
        for name, kind in kinds.items():
            budget.expectations["m", name] = kind

        async def ask(name: str, rounds: int) -> None:
            reserved = await budget.reserve(Forecast(kinds[name], 40, first_alone=True, model="m"))
            for _ in range(rounds):
                await asyncio.sleep(0)
            if name == "known":
                kinds[name].learn(40, 10, 2)
            order.append(name)
            budget.release(reserved)

        await asyncio.gather(ask("known", 1), *(ask("failing", 50) for _ in range(3)))
        await asyncio.gather(*(ask("failing", 50) for _ in range(2)), ask("known", 1))
        return order

    assert asyncio.run(play()) == ["known", *["failing"] * 3, "known", *["failing"] * 2]


def test_a_model_whose_replies_are_not_known_is_asked_once_first() -> None:
    """Another one has answered, with no tokens. Replies of 3,000 tokens to six prompts are not all
    asked for out of a budget of 5,000.
    """

    class Reasoning:
        async def reply(self, request: Ask, attempt: int) -> Reply:
            bill_in_use().send()
            await asyncio.sleep(0)
            return Reply("{}", prompt_tokens=50, completion_tokens=2_950)

    async def ask_six() -> float:
        budget = SpendLimiter(tokens=5_000.0)
        budget.expectations["decider", "decision"].learn(40, 10, 0)
        settings = make_settings({"judge": {"name": "openai", "model": "m"}}).panel[0]
        meter = MeteredJudge(budget, settings)
        asks = [
            Ask(replace(GRADE, name=f"grade {number}"), {"question": "Why?", "context": "So."})
            for number in range(6)
        ]
        judge = cast("Judge", Reasoning())
        asked = (meter.reply(judge, ask, 0, meter.bill(ask)) for ask in asks)
        await asyncio.gather(*asked, return_exceptions=True)
        return 5_000 - budget.tokens

    assert asyncio.run(ask_six()) == 3_000


def test_requests_to_an_endpoint_that_counts_no_tokens_do_not_wait_for_each_other() -> None:
    """Its first reply does not say what the others cost, and neither would the next one."""
    in_flight, most = 0, 0

    class Silent:
        async def reply(self, request: Ask, attempt: int) -> Reply:
            nonlocal in_flight, most
            bill_in_use().send()
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0)
            in_flight -= 1
            return Reply("{}")

    async def ask(meter: MeteredJudge) -> None:
        request = Ask(GRADE, {"question": "Why?", "context": "Because."})
        await meter.reply(cast("Judge", Silent()), request, 0, meter.bill(request))

    async def ask_nine_times() -> None:
        settings = make_settings({"judge": {"name": "openai", "model": "m"}}).panel[0]
        meter = MeteredJudge(SpendLimiter(tokens=1e6), settings)
        await asyncio.gather(*(ask(meter) for _ in range(9)))

    asyncio.run(ask_nine_times())
    assert most == 8  # all but the first one


@given(
    st.lists(st.sampled_from(["send", "free", "lose", "pay"]), max_size=30),
    st.integers(0, 200),
)
def test_nothing_stays_set_aside(steps: list[str], completion: int) -> None:
    """Whatever happens to the attempts of a request: what was set aside is charged or returned, and
    no attempt is charged twice.
    """
    budget = SpendLimiter(tokens=1_000.0)
    kind = Expectation(completion=float(completion))
    bill, paid = Bill(Forecast(kind, 40), budget), 0.0

    async def play() -> float:
        charged = 0.0
        with suppress(OverBudget), bill.in_use():
            await bill.set_aside()
            for step in steps:
                if step == "send":
                    await bill.set_aside()
                    bill.send()
                elif step == "pay":
                    before = budget.tokens
                    bill.pay(7.0, 0.0)
                    charged += before - budget.tokens
                else:
                    getattr(bill, step)()
        return charged

    paid = asyncio.run(play())
    unknown = bill.unknown.prompt_tokens + bill.unknown.completion_tokens
    assert budget.tokens == pytest.approx(1_000 - paid - unknown)
    assert not budget._reserved
    assert bill.unknown.requests <= bill.sent
