"""Budgets: the same sample of the questions every night, and never a request too many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics import Result, evaluate
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import OverBudget, SettingsError
from ragmetrics.judges import SpendLimiter, use_budget
from ragmetrics.judges.spending import Expectation, Forecast, take_attempt
from ragmetrics.pipeline import run_night
from ragmetrics.records import SpendLimits, Status, question_key
from ragmetrics.records.judging import Usage
from ragmetrics.scoring import check_judging
from ragmetrics.scoring.budget.plan import BUCKETS, Costs, bucket_of, divide, no_costs
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

PRICES = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}
METRICS = ["context_relevance", "context_recall"]


def budgeted(
    server: JudgeServer, budget: dict[str, Any], prices: Any = PRICES, **more: Any
) -> Settings:
    """Settings of a paid judge with a budget."""
    paid = judge_at(server) | prices
    return make_settings({"judge": paid, "budget": budget, **more})


def over(result: Result) -> dict[str, set[str]]:
    """The rows over budget, by metric."""
    found: dict[str, set[str]] = {metric.metric: set() for metric in result.manifest.metrics}
    for record in result.records():
        if record["status"] == Status.OVER_BUDGET:
            assert record["value"] is None
            assert "budget" in record["reason"]
            found[record["metric"]].add(record["id"])
    return found


costs_of_parts = st.dictionaries(
    st.text("abc/", min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, BUCKETS - 1), st.integers(0, 9)), max_size=30),
    min_size=1,
    max_size=6,
)


def spread_out(asked: list[tuple[int, int]]) -> Costs:
    """Costs of questions at these places."""
    costs = no_costs()
    for place, requests in asked:
        costs[place, :3] += (requests, requests * 100, requests * 0.001)
    return costs


EVERYWHERE = np.ones((BUCKETS, 2), dtype=np.int64)
"""A log with one question at each place."""


@given(costs_of_parts, st.integers(0, 200))
def test_parts_share_the_whole_limit_and_no_more(
    asked: dict[str, list[tuple[int, int]]], limit: int
) -> None:
    """What parts may send adds up to the limit, whatever they expect."""
    costs = {key: spread_out(part) for key, part in asked.items()}
    plan = divide(SpendLimits(max_requests=limit), Usage(), costs, EVERYWHERE)
    given_out = [part.requests or 0 for part in plan.parts.values()]
    assert sum(given_out) == limit
    assert plan.parts.keys() == asked.keys()


@given(costs_of_parts, st.integers(0, 200))
def test_the_sample_fits_into_the_limit(
    asked: dict[str, list[tuple[int, int]]], limit: int
) -> None:
    """What is judged is expected to cost no more; all is judged where all fits."""
    costs = {key: spread_out(part) for key, part in asked.items()}
    whole = sum(part[:, 0].sum() for part in costs.values())
    plan = divide(SpendLimits(max_requests=limit), Usage(), costs, EVERYWHERE)
    judged = sum(part[: plan.places, 0].sum() for part in costs.values())
    assert judged <= limit
    assert (plan.share == 1) or whole > limit


def test_a_sample_is_part_of_every_larger_one() -> None:
    """Nights with other shares judge the same questions, as far as they go."""
    costs = {"a/0": spread_out([(place, 1) for place in range(BUCKETS)])}
    small, large = (
        divide(SpendLimits(max_requests=n), Usage(), costs, EVERYWHERE) for n in (100, 600)
    )
    keys = [question_key(f"What is {n}?") for n in range(2_000)]
    in_small, in_large = ({k for k in keys if plan.judges(k)} for plan in (small, large))
    assert in_small < in_large
    assert len(in_small) / len(keys) == pytest.approx(small.share, abs=0.02)
    assert len(in_large) / len(keys) == pytest.approx(large.share, abs=0.03)


def test_places_are_spread_evenly() -> None:
    """The sample is fair: each place has about as many questions."""
    places = [bucket_of(question_key(f"question {n}")) for n in range(20_000)]
    counts, _ = np.histogram(places, bins=8, range=(0, BUCKETS))
    assert counts.min() > 2_300


def test_a_purse_pays_what_is_spent_and_no_more() -> None:
    """Attempts one by one; tokens as expected at first, then as they were."""
    purse = SpendLimiter(requests=2, tokens=100, usd=1)
    with use_budget(purse):
        take_attempt()
        take_attempt()
        with pytest.raises(OverBudget, match="requests"):
            take_attempt()
    take_attempt()  # nobody pays here, so there is no limit


def expecting(tokens: float) -> Forecast:
    """A request that is expected to use so many tokens."""
    return Forecast(Expectation(completion=tokens))


def test_what_is_set_aside_is_waited_for() -> None:
    """A request that does not fit beside others waits for their bills, and then goes or not."""
    order: list[str] = []

    async def ask(name: str, tokens: float, paid: float) -> None:
        reservation = await purse.reserve(expecting(tokens))
        order.append(name)
        await asyncio.sleep(0)
        purse.charge(reservation, paid, 0)

    async def run() -> None:
        asking = [ask("first", 90, 20), ask("second", 60, 60), ask("third", 60, 60)]
        _, _, third = await asyncio.gather(*asking, return_exceptions=True)
        assert isinstance(third, OverBudget)
        assert "tokens" in str(third)

    purse = SpendLimiter(tokens=100)
    asyncio.run(run())
    assert order == ["first", "second"]
    assert purse.tokens == 20


def test_money_runs_out_like_tokens() -> None:
    """Where nothing is on its way, nothing is waited for."""

    async def ask() -> None:
        await purse.reserve(Forecast(Expectation(), 1, lambda *_: 0.2))

    purse = SpendLimiter(usd=0.1)
    with pytest.raises(OverBudget, match="money"):
        asyncio.run(ask())


def test_tasks_spend_from_the_purse_of_their_part() -> None:
    """Parts run side by side on one loop, and each pays its own."""

    async def part(purse: SpendLimiter, times: int) -> None:
        with use_budget(purse):
            async with asyncio.TaskGroup() as group:
                for _ in range(times):
                    group.create_task(asyncio.to_thread(take_attempt))

    async def both() -> None:
        await asyncio.gather(part(one, 3), part(other, 5))

    one, other = SpendLimiter(requests=10), SpendLimiter(requests=10)
    asyncio.run(both())
    assert (one.requests, other.requests) == (7, 5)


def test_a_budget_that_is_enough_changes_nothing(judge_server: JudgeServer) -> None:
    """All rows are judged, and the manifest says what was spent."""
    rows = make_rows(20, good=0.75)
    free = evaluate(rows, METRICS, settings=budgeted(judge_server, {}))
    result = evaluate(rows, METRICS, settings=budgeted(judge_server, {"max_requests": 60}))
    assert free.manifest.budget is None
    assert list(result.records()) == list(free.records())
    report = result.manifest.budget
    assert report is not None
    assert (report.share, report.rows_over) == (1, 0)
    assert report.spent == result.manifest.usage
    assert report.spent.requests == report.estimated.requests == 60


@pytest.mark.parametrize(
    "budget", [{"max_requests": 90}, {"max_tokens": 16_000}, {"max_usd": 0.0075}], ids=str
)
def test_a_sample_of_the_questions_is_judged(
    judge_server: JudgeServer, budget: dict[str, float]
) -> None:
    """The same rows by every metric; the others are told as over budget, not as failures."""
    rows = make_rows(80, good=0.75)
    result = evaluate(rows, METRICS, settings=budgeted(judge_server, budget))
    stats = judge_server.stats()
    limits = {
        "max_requests": stats["requests"],
        "max_tokens": stats["prompt_tokens"] + stats["completion_tokens"],
        "max_usd": result.manifest.usage.usd,
    }
    for name, limit in budget.items():
        assert 0.6 * limit < limits[name] <= limit
    missing = over(result)
    assert missing["context_relevance"] == missing["context_recall"]
    report = result.manifest.budget
    assert report is not None
    assert report.rows_over == len(missing["context_recall"])
    assert report.share == pytest.approx(1 - report.rows_over / 80)
    assert result.manifest.problems == []
    assert not any(metric.status.get("judge_failed") for metric in result.manifest.metrics)


def test_sampled_rows_are_those_of_the_hash(judge_server: JudgeServer) -> None:
    """Which rows are judged depends on the question alone, not on where it stands."""
    settings = budgeted(judge_server, {"max_requests": 60})
    rows = make_rows(40, good=0.75)
    there = over(evaluate(rows, METRICS, settings=settings))
    back = over(evaluate(rows[::-1], METRICS, settings=settings))
    assert there == back
    assert 0 < len(there["context_recall"]) < 40


def test_requests_never_exceed_the_limit_under_faults(judge_server: JudgeServer) -> None:
    """Retries, reasks and embeddings count: the server is never asked once more than allowed."""
    judge_server.faults(fail={"429": 0.2, "500": 0.1, "drop": 0.05, "malformed": 0.15})
    limit = 90
    settings = budgeted(judge_server, {"max_requests": limit})
    result = evaluate(make_rows(40, good=0.75), [*METRICS, "response_relevancy"], settings=settings)
    assert judge_server.stats()["requests"] <= limit
    report = result.manifest.budget
    assert report is not None
    assert 0.6 * limit < report.spent.requests <= limit
    assert report.rows_over > 0


def test_metrics_that_ask_nothing_are_scored_on_all_rows(judge_server: JudgeServer) -> None:
    """They cost nothing, so no budget leaves a row out."""
    ids = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a"]}
    settings = budgeted(judge_server, {"max_requests": 0})
    result = evaluate(make_rows(6, **ids), ["context_recall", "hit_rate"], settings=settings)
    missing = over(result)
    assert (len(missing["context_recall"]), len(missing["hit_rate"])) == (6, 0)
    assert judge_server.stats()["requests"] == 0


def test_known_answers_cost_nothing(judge_server: JudgeServer, tmp_path: Path) -> None:
    """What the store has is judged for nothing, even without any budget."""
    rows, store = make_rows(10, good=0.75), str(tmp_path / "store")
    first = evaluate(rows, METRICS, settings=budgeted(judge_server, {}), store=store)
    broke = budgeted(judge_server, {"max_requests": 0})
    again = evaluate(rows, METRICS, settings=broke, store=store)
    assert list(again.records()) == list(first.records())
    assert judge_server.stats()["requests"] == first.manifest.usage.requests


def test_judges_on_this_machine_need_no_budget() -> None:
    """The lexical judge costs nothing: all is judged."""
    settings = make_settings({"budget": {"max_requests": 1, "max_usd": 0.01}})
    result = evaluate(make_rows(5), METRICS, settings=settings)
    assert result.manifest.budget is None
    assert not any(over(result).values())


@pytest.mark.parametrize(
    ("lacking", "named"),
    [
        ({"usd_per_million_prompt_tokens": None}, "usd_per_million_prompt_tokens"),
        ({"usd_per_million_completion_tokens": None}, "usd_per_million_completion_tokens"),
    ],
)
def test_money_without_a_price_is_a_mistake_in_the_settings(
    judge_server: JudgeServer, lacking: dict[str, None], named: str
) -> None:
    """The message says which key is missing; requests and tokens need no price."""
    settings = budgeted(judge_server, {"max_usd": 1}, PRICES | lacking, metrics=METRICS)
    with pytest.raises(
        SettingsError, match=f"max_usd: the price of openai:.* set {named} of the judge$"
    ):
        check_judging(settings)
    with pytest.raises(SettingsError, match=named):
        evaluate(make_rows(2), METRICS, settings=settings)
    evaluate(make_rows(2), METRICS, settings=budgeted(judge_server, {"max_tokens": 9_999}))


def test_money_without_the_price_of_a_replaced_judge_is_one_too(judge_server: JudgeServer) -> None:
    """The old judge scores the nights of the bridge, from the same budget."""
    old = judge_at(judge_server, model="old")
    unpriced = budgeted(judge_server, {"max_usd": 1}, PRICES | {"replaces": old}, metrics=METRICS)
    with pytest.raises(SettingsError, match="max_usd: the price of openai:old is not known"):
        check_judging(unpriced)
    priced = PRICES | {"replaces": old | PRICES}
    check_judging(budgeted(judge_server, {"max_usd": 1}, priced, metrics=METRICS))


def test_money_without_the_price_of_embeddings_is_one_too(judge_server: JudgeServer) -> None:
    """Where a metric asks for them."""
    with pytest.raises(SettingsError, match="embeddings: usd_per_million_tokens"):
        check_judging(budgeted(judge_server, {"max_usd": 1}))
    check_judging(budgeted(judge_server, {"max_usd": 1}, metrics=METRICS))
    priced = {"embeddings": {"usd_per_million_tokens": 0.02}}
    check_judging(budgeted(judge_server, {"max_usd": 1}, **priced))


def test_a_night_keeps_its_plan(judge_server: JudgeServer, tmp_path: Path) -> None:
    """What was decided stands beside the rows; a rerun finds it, and asks nothing more."""
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", make_rows(40, good=0.75))
    settings = budgeted(
        judge_server,
        {"max_requests": 60},
        logs=f"{tmp_path}/logs/dt={{date}}/",
        store=f"{tmp_path}/store",
        metrics=METRICS,
        shards=3,
    )
    first = run_night(settings, NIGHT).manifest
    (path,) = (tmp_path / "store/rows").rglob("budget.json")
    plan = json.loads(path.read_text())
    assert plan["limits"]["max_requests"] == sum(one["requests"] for one in plan["parts"].values())
    assert len(plan["parts"]) == 2 * 3
    assert first.budget is not None
    assert 0 < first.budget.rows_over < 40
    assert judge_server.stats()["requests"] == first.budget.spent.requests <= 60
    failures = [finding for finding in first.findings if finding.kind == "judge_failures"]
    assert {failure.level for failure in failures} == {"ok"}
    again = run_night(settings, NIGHT).manifest
    assert again.budget == first.budget
    assert judge_server.stats()["requests"] == first.budget.spent.requests


def test_panels_pay_for_the_judges_that_cost(
    judge_server: JudgeServer, start_judge: Callable[[], JudgeServer]
) -> None:
    """All of a panel share the budget, and repeats multiply; the lexical judge is free."""
    other = start_judge()
    judges = [
        judge_at(judge_server, repeats=2),
        judge_at(other, model="other"),
        "lexical",
    ]
    settings = make_settings({"judges": judges, "budget": {"max_requests": 60}})
    result = evaluate(make_rows(40, good=0.75), ["context_recall"], settings=settings)
    asked = judge_server.stats()["requests"] + other.stats()["requests"]
    assert 30 < asked <= 60
    report = result.manifest.budget
    assert report is not None
    assert (report.estimated.requests, report.spent.requests) == (120, asked)


def test_batches_keep_to_the_limit(judge_server: JudgeServer) -> None:
    """A request of a batch is one as any other."""
    judge = judge_at(judge_server, name="openai-batch", poll_seconds=0.05)
    settings = make_settings({"judge": judge, "budget": {"max_requests": 30}})
    result = evaluate(make_rows(40, good=0.75), ["context_recall"], settings=settings)
    report = result.manifest.budget
    assert report is not None
    assert 20 < report.spent.requests <= 30
    assert judge_server.batch_stats()["requests"] == report.spent.requests
    assert len(over(result)["context_recall"]) == 40 - report.spent.requests
