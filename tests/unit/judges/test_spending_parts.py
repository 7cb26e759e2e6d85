"""Funds: the parts of a run spend from one purse, and together never more than the limits."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ragmetrics import evaluate
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import OverBudget, StoreError
from ragmetrics.http import run_coroutine
from ragmetrics.judges import Spend, SpendLimiter
from ragmetrics.judges.spending import Expectation, Forecast
from ragmetrics.pipeline import Night, run_night
from ragmetrics.records import Status
from ragmetrics.scoring import Staged, list_parts, score_part
from ragmetrics.scoring.budget.plan import load_plan, open_budget_pool
from ragmetrics.storage import StoredPart, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

FAULTS = {"429": 0.1, "500": 0.05, "malformed": 0.05}


def nightly(server: JudgeServer, folder: Path, rows: int = 40, **more: object) -> Settings:
    """Settings of a night with a paid judge."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "a.jsonl", make_rows(rows, good=0.75))
    return make_settings(
        night_values(
            folder, judge=judge_at(server), metrics=["context_relevance", "context_recall"]
        )
        | more
    )


def left(settings: Settings, staged: Staged, *several: int) -> float:
    """Requests in the purse of a process that has these parts."""

    async def brought() -> float:
        async with open_budget_pool(open_store(settings), staged.ref) as funds:
            assert funds is not None
            todo = list_parts(settings, staged)
            await funds.add_parts([todo[number] for number in several])
            return funds.limiter.requests

    return run_coroutine(brought())


def test_parts_put_their_portions_together(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Each once, however often it is begun; all of them are the whole limit."""
    settings = nightly(judge_server, tmp_path, budget={"max_requests": 60}, shards=2)
    staged = Night(settings).stage(NIGHT)
    plan = load_plan(open_store(settings), staged.ref)
    assert plan is not None
    assert left(settings, staged, 0, 1, 2, 3) == 60
    assert left(settings, staged, 0, 0) == plan.parts["context_relevance/0"].requests


def test_a_part_whose_store_fails_for_a_moment_has_its_portion_when_it_is_retried(
    judge_server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The portion is added when the store answers, and once."""
    settings = nightly(judge_server, tmp_path, budget={"max_requests": 60}, shards=2)
    staged = Night(settings).stage(NIGHT)
    answers = iter([StoreError("the bucket is slow"), False, False])

    def is_whole(*_: object) -> bool:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    monkeypatch.setattr(StoredPart, "is_whole", is_whole)
    part = list_parts(settings, staged)[0]

    async def retried() -> float:
        async with open_budget_pool(open_store(settings), staged.ref) as pool:
            assert pool is not None
            with pytest.raises(StoreError):
                await pool.add_parts([part])
            await pool.add_parts([part])
            await pool.add_parts([part])
            return pool.limiter.requests

    plan = load_plan(open_store(settings), staged.ref)
    assert plan is not None
    assert run_coroutine(retried()) == plan.parts["context_relevance/0"].requests


@pytest.mark.parametrize("name", ["budget", "sample"])
def test_a_damaged_plan_is_named(judge_server: JudgeServer, tmp_path: Path, name: str) -> None:
    """In one line, with its file."""
    part_of_it = {"sample": {"rows": 10}} if name == "sample" else {"budget": {"max_requests": 60}}
    settings = nightly(judge_server, tmp_path, **part_of_it)
    staged = Night(settings).stage(NIGHT)
    (path,) = (tmp_path / "store").rglob(f"{name}.json")
    path.write_text(path.read_text()[:-20])
    with pytest.raises(StoreError, match=rf"{name}\.json is damaged: "):
        score_part(settings, staged.ref, *list_parts(settings, staged)[0])


def test_a_finished_part_brings_what_it_left(judge_server: JudgeServer, tmp_path: Path) -> None:
    """A run that goes on later has what is left of the limit, not the limit again."""
    settings = nightly(judge_server, tmp_path, budget={"max_requests": 60}, shards=2)
    staged = Night(settings).stage(NIGHT)
    judge_server.faults(fail={"malformed": 0.3})
    score_part(settings, staged.ref, *list_parts(settings, staged)[0])
    asked = judge_server.stats()["requests"]
    assert asked > 0
    assert left(settings, staged, 0, 1, 2, 3) == 60 - asked


def test_parts_in_processes_of_their_own_keep_to_the_limit(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Scored one by one, as by workers that know nothing of each other."""
    settings = nightly(judge_server, tmp_path, budget={"max_requests": 60}, shards=2)
    staged = Night(settings).stage(NIGHT)
    judge_server.faults(fail=FAULTS)
    for family, shard in list_parts(settings, staged):
        score_part(settings, staged.ref, family, shard)
    assert judge_server.stats()["requests"] <= 60


@pytest.mark.parametrize("shards", [1, 3])
def test_a_part_draws_on_what_others_leave(judge_server: JudgeServer, shards: int) -> None:
    """Under faults the whole budget is spent, but for what is kept for embeddings."""
    judge_server.faults(fail=FAULTS)
    judge = judge_at(judge_server)
    settings = make_settings({"judge": judge, "budget": {"max_requests": 120}, "shards": shards})
    evaluate(make_rows(60, good=0.75), settings=settings)
    assert 110 <= judge_server.stats()["requests"] <= 120


@pytest.mark.parametrize("budget", [{"max_tokens": 6_000}, {"max_usd": 0.005}], ids=str)
def test_no_question_is_asked_without_its_embeddings(
    judge_server: JudgeServer, budget: dict[str, float]
) -> None:
    """Where replies cost more than was expected, rows lack a question, not a score."""
    prices = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}
    judge = judge_at(judge_server) | prices
    settings = make_settings(
        {"judge": judge, "budget": budget, "embeddings": {"usd_per_million_tokens": 0.02}}
    )
    result = evaluate(make_rows(40, good=0.75), ["response_relevancy"], settings=settings)
    (name,) = (name for name in result.manifest.usage_by_judge if name != "embeddings")
    asked = result.manifest.usage_by_metric["response_relevancy"][name].requests
    assert 0 < asked < 40
    assert result.manifest.metrics[0].status[Status.SCORED] == asked


def test_embeddings_go_together_where_requests_are_few(judge_server: JudgeServer) -> None:
    """A request has many texts, so nearly all of the budget is for questions."""
    judge = judge_at(judge_server)
    settings = make_settings({"judge": judge, "budget": {"max_requests": 100}})
    result = evaluate(make_rows(40, good=0.75), settings=settings)
    assert 90 <= judge_server.stats()["requests"] <= 100
    assert {metric.scored for metric in result.manifest.metrics} == {18}


def test_judges_leave_what_is_kept_for_embeddings() -> None:
    """Until the texts are embedded; tokens refuse no embedding, requests do."""
    purse = SpendLimiter(requests=2, tokens=100)
    purse.add(Spend(requests=1), Spend(requests=1, tokens=40))

    async def ask(tokens: float) -> None:
        purse.release(await purse.reserve(Forecast(Expectation(completion=tokens))))

    purse.attempt()
    purse.attempt()
    with pytest.raises(OverBudget, match="requests"):
        purse.attempt()
    with pytest.raises(OverBudget, match="tokens"):
        asyncio.run(ask(61))
    purse.attempt(embeds=True)
    purse.charge_embedding(Spend(1, 40), tokens=30, usd=0)
    asyncio.run(ask(70))
    with pytest.raises(OverBudget, match="requests"):
        purse.attempt(embeds=True)


def test_a_budget_of_nothing_is_for_no_question(judge_server: JudgeServer) -> None:
    """The share is that of the log's own questions."""
    judge = judge_at(judge_server)
    settings = make_settings({"judge": judge, "budget": {"max_requests": 0}})
    result = evaluate(make_rows(10), ["context_recall"], settings=settings)
    assert result.manifest.budget is not None
    assert result.manifest.budget.share == 0
    (reason,) = {record["reason"] for record in result.records()}
    assert reason == "not in the sample: the budget is for 0.0% of the questions"


def test_a_sample_too_small_for_alerts_is_told(
    judge_server: JudgeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rules with fewer rows than they need say no_data, so the night warns beforehand."""
    rules = [{"metric": "context_recall", "min": 0.5, "min_rows": 30}]
    settings = nightly(judge_server, tmp_path, budget={"max_requests": 40}, alerts={"rules": rules})
    with caplog.at_level(logging.WARNING):
        Night(settings).stage(NIGHT)
    assert "alert rules need 30: they will have no_data" in caplog.text


def test_a_sample_large_enough_warns_of_nothing(
    judge_server: JudgeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without rules, those by default need 20 rows."""
    settings = nightly(judge_server, tmp_path, budget={"max_requests": 70})
    with caplog.at_level(logging.WARNING):
        manifest = run_night(settings, NIGHT).manifest
    assert manifest.budget is not None
    assert manifest.budget.share < 1
    assert "no_data" not in caplog.text
