"""What decisions cost: the same in a dry run, in the manifest and under a budget."""

from __future__ import annotations

from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import JudgeSettings, Settings, make_settings
from ragmetrics.config.endpoints import Prices
from ragmetrics.judges.client_base import MeteredJudge
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows

ROWS = make_rows(10, good=0.7)
METRICS = ["context_relevance", "context_recall"]
PRICES = {
    "usd_per_million_prompt_tokens": 1.0,
    "usd_per_million_cached_tokens": 0.1,
    "usd_per_million_completion_tokens": 50.0,
}


def priced(server: JudgeServer, api: str, **more: Any) -> Settings:
    """A decision model with prices."""
    judge = judge_at(server, "decision", model="judge", api=api, concurrency=1)
    return make_settings({"judge": judge | PRICES, **more})


def decision(**more: Any) -> JudgeSettings:
    """A decision model at OpenAI."""
    return make_settings({"judge": {"name": "decision", **more}}).judge


@pytest.mark.parametrize("api", ["decisions", "systemone", "logprobs"])
def test_cached_and_written_tokens_have_their_price(judge_server: JudgeServer, api: str) -> None:
    """In the manifest and in what the budget counts."""
    judge_server.faults(prompt_cache="block")
    settings = priced(judge_server, api, budget={"max_usd": 1.0})
    manifest = ragmetrics.evaluate(ROWS, METRICS, settings=settings).manifest
    stats, usage = judge_server.stats(), manifest.usage
    assert usage.cached_tokens == stats["cached_tokens"] > 0
    assert usage.completion_tokens == stats["completion_tokens"]
    assert usage.completion_tokens == (usage.requests if api == "logprobs" else 0)
    fresh = usage.prompt_tokens - usage.cached_tokens
    paid = fresh * 1.0 + usage.cached_tokens * 0.1 + usage.completion_tokens * 50.0
    assert usage.usd == pytest.approx(paid / 1e6, abs=1e-6)
    assert usage.usd_saved == pytest.approx(usage.cached_tokens * 0.9e-6, abs=1e-6)
    assert manifest.budget and manifest.budget.spent.usd == pytest.approx(usage.usd)


@pytest.mark.parametrize("api", ["decisions", "logprobs"])
def test_a_dry_run_counts_the_written_tokens(judge_server: JudgeServer, api: str) -> None:
    """One for each question of a chat model, none of a decision model."""
    settings = priced(judge_server, api)
    estimate = ragmetrics.estimate(ROWS, METRICS, settings=settings).total
    sent = ragmetrics.evaluate(ROWS, METRICS, settings=settings).manifest.usage
    assert (estimate.requests, estimate.completion_tokens) == (
        sent.requests,
        sent.completion_tokens,
    )
    assert estimate.usd == pytest.approx(sent.usd, rel=0.2)


def test_decisions_at_openai_have_their_own_list() -> None:
    """Nothing is written; a chat model that is asked for one token is paid for it."""
    assert decision().prices == Prices(0.10, 0.01, 0.0)
    assert decision(api="logprobs").prices == Prices(0.10, 0.01, 0.50)


def test_a_price_that_is_set_wins() -> None:
    """Also that of completions; without one, what no decision model writes costs nothing."""
    assert decision(**PRICES).prices == Prices(1.0, 0.1, 50.0)
    assert decision(usd_per_million_prompt_tokens=1.0).prices == Prices(1.0, None, 0.0)


@pytest.mark.parametrize(("api", "least", "learned"), [("decisions", 0, 0), ("logprobs", 1, 3)])
def test_a_budget_expects_the_written_tokens(api: str, least: int, learned: int) -> None:
    """One until the first reply, then as many as the questions of a request had."""
    meter = MeteredJudge(settings=decision(api=api))
    request = Ask(GRADE, {"question": "Why?", "context": "Because."})
    kind = meter.bill(request).forecast.kind
    assert kind.completion == least
    kind.learn(40, 10, learned)
    assert meter.bill(request).forecast.kind.completion == learned


def test_a_row_has_one_request_however_many_rows_are_in_play(judge_server: JudgeServer) -> None:
    """Before the first verdict too: none of a row's requests is held up without the others."""
    judge_server.faults(latency_ms=100)
    settings = make_settings({"judge": judge_at(judge_server, "decision", concurrency=64)})
    ragmetrics.evaluate(wide_rows(90), METRICS, settings=settings)
    assert judge_server.stats()["requests"] == 90


def wide_rows(count: int) -> list[dict[str, Any]]:
    """Rows with five contexts each."""
    return [
        row | {"retrieved_contexts": [*row["retrieved_contexts"], *(f"Aside {n}." for n in "abcd")]}
        for row in make_rows(count)
    ]
