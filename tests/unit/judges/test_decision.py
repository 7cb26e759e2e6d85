"""The judge `decision`: all questions about a row in one request, by both protocols."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.errors import InputError
from ragmetrics.judges import probe_judge
from ragmetrics.pipeline import check_logs, run_night
from ragmetrics.scoring import check_judging
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.decisions import DEFAULTS, rows, scored, values
from tests.fakes.logs import NIGHT, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

MORE = ["faithfulness", "context_precision_with_reference", "context_precision_without_reference"]


@pytest.mark.parametrize("form", ["decisions", "systemone"])
def test_one_request_a_row_for_all_metrics(judge_server: JudgeServer, form: str) -> None:
    """The server of either protocol is asked once a row; the other protocol is tried once."""
    judge_server.faults(decides=form)
    result = scored(judge_server, [*DEFAULTS, *MORE])
    counts = judge_server.stats()["by_path"]
    assert (
        counts == {"/v1/decisions": 20}
        if form == "decisions"
        else {
            "/v1/decisions": 1,
            "/v1/systemone": 20,
        }
    )
    assert all(summary.status == {"scored": 20} for summary in result.manifest.metrics)
    assert result.manifest.usage.completion_tokens == 0
    assert result.manifest.usage.prompt_tokens == judge_server.stats()["prompt_tokens"]


def test_both_protocols_give_the_same_scores(judge_server: JudgeServer) -> None:
    """They differ on the wire alone."""
    both = [values(scored(judge_server, api=api)) for api in ("decisions", "systemone")]
    assert both[0] == both[1]


def test_values_are_expectations_and_details_keep_the_probabilities(
    judge_server: JudgeServer,
) -> None:
    """The grade of a context is the expectation of its levels."""
    scores = scored(judge_server, ["context_relevance", "context_relevancy"], count=1).scores()
    details = dict(zip(scores["metric"], scores["details"], strict=True))
    value = dict(zip(scores["metric"], scores["value"], strict=True))
    grades = details["context_relevance"]["probabilities"]
    levels = [sum(level * share for level, share in enumerate(shares)) for shares in grades]
    assert value["context_relevance"] == pytest.approx(sum(levels) / (2 * len(levels)))
    assert details["context_relevance"]["grades"] == [
        max(range(3), key=shares.__getitem__) for shares in grades
    ]
    needed = details["context_relevancy"]
    total = sum(needed["sentences"])
    assert len(needed["probabilities"]) == total
    assert value["context_relevancy"] == pytest.approx(sum(needed["probabilities"]) / total)


def test_rounded_verdicts_are_hard(judge_server: JudgeServer) -> None:
    """`round` gives the grades 0, 1 and 2, and the values of a judge without probabilities."""
    result = scored(judge_server, ["context_relevance", "context_recall"], round=True)
    scores = result.scores()
    for metric, detail, value in zip(
        scores["metric"], scores["details"], scores["value"], strict=True
    ):
        verdicts = detail["grades" if metric == "context_relevance" else "attributed"]
        most = 2 if metric == "context_relevance" else 1
        assert value == pytest.approx(sum(verdicts) / (most * len(verdicts)))
    assert result.manifest.judge.fingerprint != scored(judge_server).manifest.judge.fingerprint


@pytest.mark.parametrize("name", ["decision", "rerank"])
def test_metrics_that_a_judge_cannot_score_are_named_before_the_night(
    judge_server: JudgeServer, tmp_path: Path, name: str
) -> None:
    """By a run, a dry run, `check` and what `doctor` asks: nothing is sent."""
    log = write_jsonl(tmp_path / "log.jsonl", rows(2))
    more = {"thresholds": [0.2, 0.6]} if name == "rerank" else {}
    judge = {"name": name, "base_url": judge_server.base_url, **more}
    wanted = ["context_relevance", "context_entity_recall"]
    settings = make_settings({"judge": judge, "metrics": wanted})
    for ask in (
        lambda: ragmetrics.evaluate(rows(2), wanted, settings=settings),
        lambda: ragmetrics.estimate(rows(2), wanted, settings=settings),
        lambda: check_logs(settings, [str(log)]),
        lambda: check_judging(settings),
    ):
        with pytest.raises(InputError, match="cannot score context_entity_recall"):
            ask()
    assert judge_server.stats()["requests"] == 0


def test_a_night_that_is_repeated_asks_nothing_and_a_new_metric_asks_its_own(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Replies are kept by question: the second night has all, the third asks for one metric."""
    log = write_jsonl(tmp_path / "log.jsonl", rows(5))
    base = {
        "logs": str(log),
        "store": str(tmp_path / "store"),
        "judge": {"name": "decision", "base_url": judge_server.base_url},
        "metrics": ["context_relevance"],
        "alerts": {"checks": {"canaries": 0}},
    }
    run_night(make_settings(base), NIGHT)
    again = base | {"metrics": ["context_relevance", "context_precision"]}
    assert run_night(make_settings(again), NIGHT).manifest.usage.requests == 0
    assert judge_server.stats()["requests"] == 5
    more = base | {"metrics": ["context_relevance", "context_recall"]}
    run_night(make_settings(more), NIGHT)
    assert judge_server.stats()["requests"] == 10
    asked = [one["instructions"] for one in judge_server.stats()["last_decision"]["questions"]]
    assert asked == ["support 1", "support 2"]


def test_equal_contexts_of_other_rows_are_not_asked_again(judge_server: JudgeServer) -> None:
    """A (question, context) pair is judged once, whatever other contexts its row has."""
    contexts = ["The harbour has nine berths.", "It rains.", "The berths are long."]
    both = [
        {"user_input": "How many berths?", "retrieved_contexts": contexts[:2]},
        {"user_input": "How many berths?", "retrieved_contexts": contexts[1:]},
    ]
    judge = {"name": "decision", "base_url": judge_server.base_url, "concurrency": 1}
    settings = make_settings({"judge": judge})
    result = ragmetrics.evaluate(both, ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].status == {"scored": 2}
    assert judge_server.stats()["requests"] == 2
    assert result.manifest.usage.shared >= 1


def test_doctor_probes_it_by_one_question(judge_server: JudgeServer) -> None:
    """The grade of one context, without a row."""
    settings = make_settings({"judge": {"name": "decision", "base_url": judge_server.base_url}})
    assert "gave a grade" in asyncio.run(probe_judge(settings.judge, ask=True))
    assert judge_server.stats()["requests"] == 1


def test_a_chat_judge_scores_what_a_decision_model_cannot(judge_server: JudgeServer) -> None:
    """In a panel each metric is scored by the judges that can."""
    place = {"base_url": judge_server.base_url, "model": "luna"}
    judges = [{"name": "decision", **place}, judge_at(judge_server)]
    settings = make_settings({"judges": judges})
    wanted = ["context_relevance", "context_entity_recall"]
    result = ragmetrics.evaluate(rows(3), wanted, settings=settings)
    assert [one.status["scored"] for one in result.manifest.metrics] == [3, 3]


@pytest.mark.parametrize("most", [400, 6])
def test_a_dry_run_knows_the_requests_and_the_tokens(judge_server: JudgeServer, most: int) -> None:
    """Nothing is sent; what a run would send is counted to the request, and tokens nearly."""
    judge = {"name": "decision", "base_url": judge_server.base_url, "max_questions": most}
    settings = make_settings({"judge": judge | {"usd_per_million_prompt_tokens": 0.1}})
    estimate = ragmetrics.estimate(rows(), DEFAULTS, settings=settings).total
    assert judge_server.stats()["requests"] == 0
    sent = scored(judge_server, max_questions=most).manifest.usage
    assert estimate.requests == sent.requests
    assert estimate.prompt_tokens == pytest.approx(sent.prompt_tokens, rel=0.2)
    assert estimate.completion_tokens == 0
    assert estimate.usd == pytest.approx(estimate.prompt_tokens * 1e-7, rel=0.01)
