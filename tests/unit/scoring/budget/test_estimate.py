"""Estimates: what a run would ask for, held against the run itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragmetrics import Estimate, Result, estimate, evaluate
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import JudgePending
from ragmetrics.judges import EmbeddingClient
from ragmetrics.metrics import metric, select, selection
from ragmetrics.records import LogRow, Score, Steps, ask
from ragmetrics.records.judging import Usage
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

PRICES = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}
FIRST_WAVE = ["context_relevance", "context_precision", "context_recall", "context_relevancy"]


def paid(judge: JudgeServer, **more: Any) -> Settings:
    """Settings of a paid judge."""
    return make_settings({"judge": judge_at(judge) | PRICES} | more)


def tokens(usage: Usage) -> int:
    """In and out."""
    return usage.prompt_tokens + usage.completion_tokens


def agree(expected: Estimate, result: Result, judge: JudgeServer) -> None:
    """The estimate is the run, and the run what the server saw: requests exactly, tokens nearly."""
    stats, usage = judge.stats(), result.manifest.usage
    assert expected.total.requests == usage.requests == stats["requests"]
    assert usage.prompt_tokens == stats["prompt_tokens"]
    assert usage.completion_tokens == stats["completion_tokens"]
    assert tokens(expected.total) == pytest.approx(tokens(usage), rel=0.1)
    assert expected.total.usd == pytest.approx(usage.usd, rel=0.1)
    assert expected.total.shared == usage.shared
    assert expected.total.answered_from_store == usage.answered_from_store
    for asking, of in expected.by_metric.items():
        for name, expectation in of.items():
            assert expectation.requests == result.manifest.usage_by_metric[asking][name].requests


@pytest.mark.parametrize("more", [{}, {"shards": 4}], ids=str)
def test_the_estimate_is_what_the_run_asks_for(
    judge_server: JudgeServer, more: dict[str, Any]
) -> None:
    """Metrics that ask once, with questions, contexts and whole rows that repeat."""
    rows = make_rows(30, good=0.75)
    rows += [{**row, "id": f"again-{row['id']}"} for row in rows[:10]]
    settings = paid(judge_server, **more)
    expected = estimate(rows, FIRST_WAVE, settings=settings)
    assert judge_server.stats()["requests"] == 0
    assert expected.rows == 40
    assert expected.at_least == []
    assert expected.total.shared > 0
    agree(expected, evaluate(rows, FIRST_WAVE, settings=settings), judge_server)


def test_repeats_and_panels_multiply(judge_server: JudgeServer) -> None:
    """Each repeat is a request of its own, and each judge asks for itself."""
    judge = judge_at(judge_server) | PRICES
    judges = [{**judge, "repeats": 3}, {**judge, "model": "other"}]
    settings = make_settings({"judges": judges})
    rows = make_rows(10)
    expected = estimate(rows, ["context_recall"], settings=settings)
    assert expected.total.requests == 10 * (3 + 1)
    agree(expected, evaluate(rows, ["context_recall"], settings=settings), judge_server)


def test_later_waves_and_embeddings_are_estimated_too(judge_server: JudgeServer) -> None:
    """From what a baseline would have said; texts to embed go together in a few requests."""
    rows = make_rows(20, good=0.75)
    settings = paid(judge_server, embeddings={"usd_per_million_tokens": 0.02})
    expected = estimate(rows, settings=settings)
    usage = evaluate(rows, settings=settings).manifest.usage
    embeddings = expected.by_metric["response_relevancy"]["embeddings"]
    assert embeddings.requests == 3
    assert abs(expected.total.requests - usage.requests) <= 10
    assert tokens(expected.total) == pytest.approx(tokens(usage), rel=0.1)


def test_answers_that_the_store_has_are_not_asked_for(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A second run asks only for what is new, and kept replies say how long new ones will be."""
    rows, store = make_rows(30, good=0.75), str(tmp_path / "store")
    settings = paid(judge_server)
    evaluate(rows[:20], FIRST_WAVE, settings=settings, store=store)
    judge_server.reset()
    expected = estimate(rows, FIRST_WAVE, settings=settings, store=store)
    assert expected.total.answered_from_store > 0
    result = evaluate(rows, FIRST_WAVE, settings=settings, store=store)
    agree(expected, result, judge_server)


def test_cached_vectors_and_estimated_ones_go_together(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """An estimate takes the cached vectors, counts the others, and writes nothing."""
    rows, store = make_rows(20), tmp_path / "store"
    settings = paid(judge_server)
    evaluate(rows[:16], ["response_relevancy"], settings=settings, store=str(store))
    before = sorted(path for path in store.rglob("*") if path.is_file())
    expected = estimate(rows, ["response_relevancy"], settings=settings, store=str(store))
    assert sorted(path for path in store.rglob("*") if path.is_file()) == before
    of = expected.by_metric["response_relevancy"]
    assert of["embeddings"].requests == 1
    assert of["embeddings"].answered_from_store > 0
    assert of["openai:gpt-6-luna"].requests == 4


def test_what_a_batch_has_is_not_asked_for(judge_server: JudgeServer, tmp_path: Path) -> None:
    """A run that ended while its batch was at work left it on record: the next one pays nothing."""
    judge = judge_at(judge_server, name="openai-batch", wait_seconds=0.01)
    settings = make_settings({"judge": {**judge, "poll_seconds": 0.02}})
    rows, asked = make_rows(8), {"settings": settings, "store": str(tmp_path / "store")}
    judge_server.batch_faults(delay_seconds=600)
    with pytest.raises(JudgePending):
        evaluate(rows, ["context_recall", "context_relevancy"], **asked)
    expected = estimate(rows, ["context_recall", "context_relevancy"], **asked)
    assert (expected.total.requests, expected.total.answered_from_store) == (0, 16)
    more = estimate(make_rows(10), ["context_recall", "context_relevancy"], **asked)
    assert more.total.requests == 4


def test_no_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the judge needs one: nothing is sent. A listed price is known without it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    expected = estimate(make_rows(3), ["context_recall"], "openai")
    assert expected.total.requests == 3
    assert expected.total.usd
    unknown = estimate(make_rows(3), ["context_recall"], "openai", model="m")
    assert unknown.total.usd is None


def test_the_judge_of_the_estimate_is_that_of_the_run(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a key and with OpenAI's own address it finds the same kept replies."""
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.base_url)
    rows, store = make_rows(3), str(tmp_path / "store")
    evaluate(rows, ["context_recall"], "openai", store=store)
    monkeypatch.delenv("OPENAI_API_KEY")
    expected = estimate(rows, ["context_recall"], "openai", store=store)
    assert (expected.total.requests, expected.total.answered_from_store) == (0, 3)


def test_prompts_without_a_baseline_say_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell what such a metric asks next, so it is told as open-ended."""
    recall = select(["context_recall"])[0]
    blind = replace(recall.prompts[0], name="blind", baseline=None, questions=None, expect=None)

    @metric(version=1, calls="1 and more", prompts=[blind])
    def guessing(row: LogRow) -> Steps[Score]:
        """Asks what no baseline answers."""
        verdict = yield from ask(blind, context=row.retrieved_contexts[0], claims=["It is so."])
        return Score(float(len(verdict.supported)))

    monkeypatch.setattr(
        selection, "find_metric", {"context_recall": recall, "guessing": guessing}.get
    )
    expected = estimate(make_rows(4), ["guessing", "context_recall"], "openai")
    assert expected.at_least == ["guessing"]
    assert expected.total.requests == 8


def test_few_requests_are_kept_for_texts_that_are_embedded_together() -> None:
    """Each text costs its share of a request, or a limit on requests would judge fewer rows."""
    settings = make_settings({"judge": "openai", "budget": {"max_requests": 30}})
    expected = estimate(make_rows(20), ["response_relevancy"], settings=settings)
    assert expected.plan
    assert expected.plan.judged == 20
    (part,) = expected.plan.parts.values()
    texts = part.for_embeddings.requests * EmbeddingClient.texts_per_request
    assert texts == pytest.approx(40)


def test_the_embedded_judge_costs_nothing() -> None:
    """Its requests go nowhere, so they are no part of an estimate; those of others are."""
    expected = estimate(make_rows(4), ["context_recall"])
    assert (expected.total, expected.by_metric) == (Usage(), {})
    panel = estimate(make_rows(4), ["context_recall"], ["lexical", "openai"])
    assert panel.total.requests == 4
    assert list(panel.by_metric["context_recall"]) == ["openai:gpt-6-luna"]


def test_an_estimate_that_hangs_on_answers_says_about(run: Run, tmp_path: Path) -> None:
    """What is asked in a second wave depends on the replies to the first."""
    logs = write_jsonl(tmp_path / "logs.jsonl", make_rows(4))
    asked = ("score", logs, "--judge", "openai", "--dry-run", "--metrics")
    assert "A run would send 4 requests" in run(*asked, "context_recall").out
    assert "A run would send about " in run(*asked, "faithfulness").out


@pytest.mark.parametrize("flag", ["--out", "--record"])
def test_an_estimate_has_nothing_to_keep(run: Run, tmp_path: Path, flag: str) -> None:
    """A flag that would do nothing is an error."""
    logs = write_jsonl(tmp_path / "logs.jsonl", make_rows(4))
    ended = run("score", logs, "--dry-run", flag, tmp_path / "kept.jsonl")
    assert ended.code == 2
    assert "--dry-run scores nothing; remove --out and --record" in ended.err


def test_dry_run_prints_a_table_and_sends_nothing(
    run: Run, judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Requests, tokens and money by metric, what is known, and what the budget allows."""
    logs = write_jsonl(tmp_path / "logs.jsonl", make_rows(20, good=0.75))
    settings = tmp_path / "ragmetrics.yaml"
    judge = judge_at(judge_server) | PRICES
    settings.write_text(json.dumps({"judge": judge, "budget": {"max_requests": 30}}))
    asked = ("score", logs, "--settings", settings, "--metrics", ",".join(FIRST_WAVE), "--dry-run")
    ended = run(*asked)
    assert (ended.code, ended.err) == (0, "")
    for text in (
        "nothing was sent",
        "80 requests",
        "In the store already: 0",
        "shared with an equal request: 40",
    ):
        assert text in ended.out
    assert "The budget (30 requests) is enough for " in ended.out
    told = json.loads(run(*asked, "--json").out)
    assert told["dry_run"]
    assert told["usage"]["requests"] == 80
    assert set(told["usage_by_metric"]) == set(FIRST_WAVE)
    assert 0 < told["budget"]["share"] < 1
    assert judge_server.stats()["requests"] == 0


@pytest.mark.parametrize("more", [{}, {"sample": {"rows": 150}}], ids=["all rows", "sample"])
def test_a_part_of_a_large_log_is_enough_for_an_estimate(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    """Rows of very unequal length: within 10% of a dry run that scores all, and said to be about
    so; the budget judges about as many questions."""
    rows = make_rows(200, good=0.7)
    for number, row in enumerate(rows):
        row["user_input"] += f" Case {number}?"
        row["retrieved_contexts"] = [f"{'Long story. ' * (number % 40)}{number}."] * (number % 3)
    judge = {"name": "openai", "base_url": "http://127.0.0.1:9/v1", **PRICES}
    settings = make_settings({"judge": judge, "budget": {"max_tokens": 25_000}, **more})
    exact = estimate(rows, ["context_relevance", "context_recall"], settings=settings)
    monkeypatch.setattr("ragmetrics.scoring.budget.estimate.WALKED_ROWS", 100)
    rough = estimate(rows, ["context_relevance", "context_recall"], settings=settings)
    assert not exact.about and rough.about
    assert rough.rows == exact.rows == 200
    assert rough.total.requests == pytest.approx(exact.total.requests, rel=0.1)
    assert tokens(rough.total) == pytest.approx(tokens(exact.total), rel=0.1)
    assert rough.plan is not None and exact.plan is not None
    assert 0 < exact.plan.share < 1
    assert rough.plan.share == pytest.approx(exact.plan.share, rel=0.15)
