"""The judge `decision`: all questions about a row in one request, by both protocols."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import InputError, JudgeRefused
from ragmetrics.judges import Corpus, probe_judge
from ragmetrics.judges.decision_layout import DecisionLayout
from ragmetrics.judges.factory import make_judge
from ragmetrics.metrics import GRADE
from ragmetrics.pipeline import Result, check_logs, run_night
from ragmetrics.records import Ask, LogRow
from ragmetrics.scoring import check_judging
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

DEFAULTS = list(DEFAULT_METRICS)
MORE = ["faithfulness", "context_precision_with_reference", "context_precision_without_reference"]
ASIDES = ["The tower is high. It has a lift.", "Nothing at all."]


def rows(count: int = 20) -> list[dict[str, Any]]:
    """Rows with three contexts each, a response and a reference; each question is asked once."""
    return [
        row
        | {
            "user_input": f"{row['user_input']} ({number})",
            "retrieved_contexts": [*row["retrieved_contexts"], *ASIDES],
            "response": f"{row['retrieved_contexts'][0]} I hope that helps.",
            "reference": f"{row['retrieved_contexts'][0]} It is number {number}.",
        }
        for number, row in enumerate(make_rows(count, good=0.8))
    ]


def scored(
    server: JudgeServer, metrics: list[str] = DEFAULTS, count: int = 20, **more: Any
) -> Result:
    """The rows, judged by a decision model."""
    judge = {"name": "decision", "base_url": server.base_url, "model": "luna", "retries": 2, **more}
    return ragmetrics.evaluate(rows(count), metrics, settings=make_settings({"judge": judge}))


def values(result: Result) -> dict[tuple[str, str], float]:
    """The scores by row and metric."""
    scores = result.scores()
    keys = zip(scores["id"], scores["metric"], strict=True)
    return dict(zip(keys, scores["value"], strict=True))


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


def test_more_questions_than_a_server_takes_are_split_by_question(
    judge_server: JudgeServer,
) -> None:
    """Each part has the whole row; the values are those of one request."""
    whole = values(scored(judge_server))
    judge_server.reset()
    parted = scored(judge_server, max_questions=4)
    assert values(parted) == whole
    stats, usage = judge_server.stats(), parted.manifest.usage
    assert usage.requests == stats["requests"] > 20
    assert (usage.prompt_tokens, usage.unknown_requests) == (stats["prompt_tokens"], 0)
    judge_server.reset()
    judge_server.faults(most_questions=4)  # which only the server knows
    assert values(scored(judge_server)) == whole


def test_a_row_that_is_too_long_is_split_by_context(judge_server: JudgeServer) -> None:
    """Every context is judged in a part; what needs all of them counts by its best part."""
    judge_server.faults(max_prompt_chars=2_600)
    many = [f"Berth {number} of the harbour is {'very ' * 60}long." for number in range(12)]
    row = {
        "user_input": "How many berths has the harbour?",
        "retrieved_contexts": many,
        "reference": "Berth 7 of the harbour is long.",
        "response": "It has twelve berths.",
    }
    settings = make_settings({"judge": {"name": "decision", "base_url": judge_server.base_url}})
    wanted = ["context_relevance", "context_recall", "context_relevancy", "response_relevancy"]
    result = ragmetrics.evaluate([row], wanted, settings=settings)
    assert [one.status for one in result.manifest.metrics] == [{"scored": 1}] * 4
    details = result.scores().set_index("metric")["details"]
    assert len(details["context_relevance"]["grades"]) == 12
    assert details["context_recall"]["attributed"] == [True]


def test_a_context_that_is_too_long_alone_fails_with_its_length(
    judge_server: JudgeServer,
) -> None:
    """The other rows are scored, and nothing is cut."""
    judge_server.faults(max_prompt_chars=5_000)
    long = {"user_input": "What is long?", "retrieved_contexts": ["word " * 5_000]}
    settings = make_settings({"judge": {"name": "decision", "base_url": judge_server.base_url}})
    result = ragmetrics.evaluate([*rows(5), long], ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].status == {"scored": 5, "judge_failed": 1}
    reasons = result.scores()["reason"]
    assert reasons.str.contains(r"too long for the judge: 25,\d\d\d characters").sum() == 1


def test_a_declined_question_costs_its_own_verdict(judge_server: JudgeServer) -> None:
    """The other metrics of the rows are scored."""
    judge_server.faults(declines=["support 2"])
    result = scored(judge_server)
    usage = result.manifest.usage
    assert (usage.prompt_tokens, usage.unknown_requests) == (
        judge_server.stats()["prompt_tokens"],
        0,
    )
    statuses = {one.metric: one.status for one in result.manifest.metrics}
    assert statuses.pop("context_recall") == {"refused": 20}
    assert all(status == {"scored": 20} for status in statuses.values())


def test_a_rejected_question_costs_no_other_row_its_one_request(judge_server: JudgeServer) -> None:
    """It is searched for in its own row; rows after it are asked in one request as before."""
    judge_server.faults(rejects=["needed 9"])
    odd = rows(1)[0] | {
        "retrieved_contexts": ["One. Two. Three. Four. Five. Six. Seven. Eight. Nine."]
    }
    judge = {"name": "decision", "base_url": judge_server.base_url, "concurrency": 1}
    settings = make_settings({"judge": judge})
    result = ragmetrics.evaluate([odd, *rows(20)[1:]], DEFAULTS, settings=settings)
    statuses = {one.metric: one.status for one in result.manifest.metrics}
    assert statuses["context_relevancy"] == {"scored": 19, "judge_failed": 1}
    assert statuses["context_relevance"] == {"scored": 20}
    assert judge_server.stats()["by_path"]["/v1/decisions"] < 20 + 12


def test_a_state_that_was_cut_in_silence_is_split(judge_server: JudgeServer) -> None:
    """The server says how much it read: far less than it was sent."""
    judge_server.faults(reads=1_000)
    contexts = [f"Hall {number} is {'very ' * 900}high." for number in range(4)]
    row = {"user_input": "Which hall is high?", "retrieved_contexts": contexts}
    settings = make_settings({"judge": {"name": "decision", "base_url": judge_server.base_url}})
    result = ragmetrics.evaluate([row], ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].status == {"scored": 1}
    assert judge_server.stats()["requests"] > 1


def test_requests_that_nobody_waits_for_are_not_sent(judge_server: JudgeServer) -> None:
    """A run that stops leaves none behind, and none goes out after it."""
    judge_server.faults(latency_ms=300)
    chosen = judge_at(judge_server, name="decision", api="logprobs", concurrency=1)
    judge = make_judge(make_settings({"judge": chosen}).judge, Corpus())
    asks = DecisionLayout().arrange(
        LogRow(id="r", user_input="Why?", retrieved_contexts=("Because.", "So.", "Thus.")),
        [Ask(GRADE, {"question": "Why?", "context": one}) for one in ("Because.", "So.", "Thus.")],
    )

    async def stop() -> int:
        waiting = [asyncio.ensure_future(judge.reply(ask, 0)) for ask in asks]
        await asyncio.sleep(0.15)
        for task in waiting:
            task.cancel()
        await asyncio.sleep(0.5)
        sent = int(judge_server.stats()["requests"])
        await judge.close()
        return sent

    assert asyncio.run(stop()) == 1


def test_nothing_is_lost_to_a_stumbling_server(judge_server: JudgeServer) -> None:
    """A quarter of all attempts fails in five ways; the scores are those of a clean run."""
    clean = values(scored(judge_server, count=60))
    judge_server.reset()
    fail = {"429": 0.1, "500": 0.05, "drop": 0.03, "malformed": 0.04, "prose": 0.03}
    judge_server.faults(fail=fail, retry_after=0.1)
    result = scored(judge_server, count=60, retries=6)
    assert values(result) == clean
    counted = result.manifest.usage.failures
    assert counted["rate_limited"] == judge_server.stats()["by_status"]["429"]
    assert counted["unreadable"] > 0


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"fail": {"401": 1}}, "refused the key"),
        ({"decides": "none"}, "does not serve 'luna' as a decision model"),
        ({"models": ["other"]}, "does not serve 'luna' as a decision model"),
    ],
)
def test_a_server_that_cannot_answer_ends_the_run(
    judge_server: JudgeServer, behaviour: dict[str, Any], message: str
) -> None:
    """Within a few requests, with one sentence."""
    judge_server.faults(**behaviour)
    with pytest.raises(JudgeRefused, match=message):
        scored(judge_server)
    assert judge_server.stats()["requests"] < 10


def test_answers_that_are_no_probabilities_are_unreadable(judge_server: JudgeServer) -> None:
    """They are asked again, counted, and never become a score."""
    judge_server.faults(nonsense=True)
    result = scored(judge_server, ["context_relevance"], count=3, reasks=1)
    assert result.manifest.metrics[0].status == {"unreadable": 3}
    assert result.manifest.usage.failures["unreadable"] > 0


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
