"""Questions about a row in several requests: too many, too long, or one that is rejected."""

from __future__ import annotations

import ragmetrics
from ragmetrics.config import make_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.decisions import DEFAULTS, rows, scored, values


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
        "nuggets": [{"text": "Berth 7 of the harbour is long.", "importance": "vital"}],
    }
    settings = make_settings({"judge": {"name": "decision", "base_url": judge_server.base_url}})
    wanted = ["context_relevance", "context_recall", "context_relevancy", "response_relevancy"]
    result = ragmetrics.evaluate([row], [*wanted, "nugget_recall"], settings=settings)
    assert [one.status for one in result.manifest.metrics] == [{"scored": 1}] * 5
    details = result.scores().set_index("metric")["details"]
    assert len(details["context_relevance"]["grades"]) == 12
    assert details["context_recall"]["attributed"] == [True]
    assert details["nugget_recall"]["support"] == [2]


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
