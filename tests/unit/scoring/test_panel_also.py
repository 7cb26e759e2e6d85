"""A judge under `also` scores what the first judge cannot, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import JudgeRefused, SettingsError
from ragmetrics.metrics import select
from ragmetrics.pipeline import check_logs, run_night
from ragmetrics.records import Ask, LogRow, Score, Status
from ragmetrics.scoring import check_judging, metric_fingerprints
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import Panel
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.scripted import ScriptedJudge, a_broker

BOTH = ["context_relevance", "context_entity_recall"]
ROW = LogRow("r", "When?", ("At nine.",), reference="At nine.")
ROWS = make_rows(12, good=0.7)


@dataclass
class Grader(ScriptedJudge):
    """A judge that can answer one prompt."""

    only: frozenset[str] = frozenset({"grade"})


def grade(request: Ask, attempt: int) -> str:
    """Of some use."""
    return '{"grade": 1}'


def entities(request: Ask, attempt: int) -> str:
    """One."""
    return '{"entities": ["nine"]}'


def refuse(request: Ask, attempt: int) -> str:
    """A wrong key."""
    raise JudgeRefused("wrong key")


def scores(*judges: ScriptedJudge, repeats: int = 1) -> dict[str, Score]:
    """The row by both metrics, each by the first judge that can."""
    members = [Member(a_broker(judge), repeats) for judge in judges]
    return asyncio.run(Panel(members, "also").score(select(BOTH), ROW))


def both(server: JudgeServer, **more: Any) -> dict[str, Any]:
    """A decision model, and a chat model for what it cannot score."""
    return judge_at(server, "decision", model="luna", also=judge_at(server, model="chat")) | more


def night_of(folder: Path, judge: dict[str, Any], metrics: list[str] | None = None) -> Settings:
    """A night of twelve rows."""
    write_jsonl(folder / "logs" / f"{NIGHT}.jsonl", ROWS)
    named = {"logs": "logs/{date}.jsonl", "metrics": metrics or BOTH, "judge": judge}
    return make_settings(night_values(folder, **named))


def test_each_metric_is_scored_by_the_first_judge_that_can() -> None:
    """The other judge gets none of its requests, and is no vote."""
    first, second = Grader(grade, name="a"), ScriptedJudge(entities, name="b")
    scored = scores(first, second, repeats=2)
    assert [(one.value, one.votes) for one in scored.values()] == [(0.5, None), (1.0, None)]
    assert [sum(judge.asked.values()) for judge in (first, second)] == [2, 2]
    assert scored["context_relevance"].details["repeats"] == [0.5, 0.5]


def test_a_second_judge_that_refuses_costs_its_metrics_alone() -> None:
    """Their rows say why."""
    scored = scores(Grader(grade, name="a"), ScriptedJudge(refuse, name="b"))
    assert scored["context_relevance"].value == 0.5
    left = scored["context_entity_recall"]
    assert (left.status, left.reason) == (Status.JUDGE_FAILED, "wrong key")


def test_a_first_judge_that_refuses_ends_the_run() -> None:
    """As one without a second judge."""
    with pytest.raises(JudgeRefused, match="wrong key"):
        scores(Grader(refuse, name="a"), ScriptedJudge(entities, name="b"))


def test_a_night_names_who_scored_what_and_what_it_cost(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """One request a row to the decision model, the other metric's requests to the chat model."""
    price = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 8.0}
    also = judge_at(judge_server, model="chat", **price)
    judge = both(judge_server, also=also, usd_per_million_prompt_tokens=0.1)
    manifest = run_night(night_of(tmp_path, judge), NIGHT).manifest
    assert manifest.judge.title == "decision:luna, and openai:chat for context_entity_recall"
    assert [one.status for one in manifest.metrics] == [{"scored": 12}] * 2
    usage = {
        metric: {name for name, used in by_judge.items() if used.requests}
        for metric, by_judge in manifest.usage_by_metric.items()
    }
    assert usage == {
        "context_relevance": {"decision:luna"},
        "context_entity_recall": {"openai:chat"},
    }
    assert manifest.usage_by_judge["openai:chat"].usd == pytest.approx(
        2e-6 * manifest.usage_by_judge["openai:chat"].prompt_tokens
        + 8e-6 * manifest.usage_by_judge["openai:chat"].completion_tokens
    )
    page = (tmp_path / "store" / "dashboard" / f"{NIGHT}" / "index.html").read_text()
    assert page.count("decision:luna, and openai:chat for context_entity_recall") == 2


def test_fingerprints_are_those_of_each_judge_alone(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A judge under `also` that is added or replaced breaks no trend but its own."""
    chat = judge_at(judge_server, model="chat")
    prints = metric_fingerprints(night_of(tmp_path, both(judge_server)))
    decided = both(judge_server, also=None)
    assert prints == metric_fingerprints(
        night_of(tmp_path, decided, ["context_relevance"])
    ) | metric_fingerprints(night_of(tmp_path, chat, ["context_entity_recall"]))


def test_another_second_judge_is_another_run(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Its metrics are scored again, those of the first judge are taken over."""
    run_night(night_of(tmp_path, both(judge_server)), NIGHT)
    judge_server.reset()
    other = both(judge_server, also=judge_at(judge_server, model="other"))
    manifest = run_night(night_of(tmp_path, other), NIGHT).manifest
    assert [one.status for one in manifest.metrics] == [{"scored": 12}] * 2
    assert {*judge_server.stats()["by_model"]} == {"other"}


def test_what_it_scores_is_said_before_the_night(judge_server: JudgeServer, tmp_path: Path) -> None:
    """By `check`, `doctor` and a dry run, which counts the requests to either judge."""
    settings = night_of(tmp_path, both(judge_server))
    words = "the judge openai under `also` scores what decision cannot: context_entity_recall"
    assert check_judging(settings) == words
    assert check_logs(settings, [settings.logs.format(date=NIGHT)]).also == words
    estimate = ragmetrics.estimate(ROWS, BOTH, settings=settings)
    assert estimate.also == words
    assert judge_server.stats()["requests"] == 0
    sent = ragmetrics.evaluate(ROWS, BOTH, settings=settings).manifest.usage_by_metric
    assert {
        metric: {name: used.requests for name, used in by_judge.items() if used.requests}
        for metric, by_judge in estimate.by_metric.items()
    } == {
        metric: {name: used.requests for name, used in by_judge.items() if used.requests}
        for metric, by_judge in sent.items()
    }


def test_a_judge_that_is_not_needed_is_told(judge_server: JudgeServer, tmp_path: Path) -> None:
    """The first judge scores all metrics."""
    settings = night_of(tmp_path, both(judge_server), ["context_relevance"])
    assert "is not asked: decision scores all metrics" in check_judging(settings)


def test_an_old_judge_that_cannot_score_a_metric_is_told(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Before the night, which it does not cost."""
    old = judge_at(judge_server, "decision", model="luna")
    settings = night_of(tmp_path, judge_at(judge_server, model="chat", replaces=old))
    told = "no offset to the judge under `replaces` will be known: metrics: the judge decision"
    assert check_judging(settings).startswith(told)
    assert check_logs(settings, [settings.logs.format(date=NIGHT)]).also.startswith(told)
    with_also = old | {"also": judge_at(judge_server, model="chat")}
    mended = night_of(tmp_path, judge_at(judge_server, model="chat", replaces=with_also))
    assert check_judging(mended) == ""


def test_a_budget_in_dollars_needs_the_price_of_both(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """The second judge is paid for too."""
    judge = both(judge_server, usd_per_million_prompt_tokens=0.1)
    settings = night_of(tmp_path, judge).model_copy(
        update={"budget": make_settings({"budget": {"max_usd": 1.0}}).budget}
    )
    with pytest.raises(SettingsError, match="price of openai:chat is not known"):
        check_judging(settings)
