"""`api: logprobs`: a chat model as a decision model, one token for each question."""

from __future__ import annotations

import math
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.decision_forms import Logprobs
from ragmetrics.judges.request_parameters import RequestParameters
from ragmetrics.records import Predicate, Question, ScoreQuestion
from tests.fakes.clients import JudgeServer
from tests.fakes.decisions import rows, scored, values

GRADE = ScoreQuestion("", ("useless", "helps", "answers"))
METRICS = ["context_relevance", "context_recall"]


def read(question: Question, listed: dict[str, float]) -> Any:
    """What is read from a reply with these likeliest tokens."""
    top = [{"token": token, "logprob": math.log(chance)} for token, chance in listed.items()]
    choice = {"message": {"content": "x"}, "logprobs": {"content": [{"top_logprobs": top}]}}
    return Logprobs(RequestParameters(JudgeSettings())).read(
        [("words", question)], {"choices": [choice], "usage": {}}
    )


def test_spellings_of_a_label_count_together_and_labels_add_up_to_one() -> None:
    """`Yes` and ` yes` are one answer; what is no answer is left out."""
    decided = read(Predicate(), {"Yes": 0.3, " yes": 0.1, "The": 0.4, "NO": 0.1, "n": 0.001})
    assert decided.answers == [pytest.approx(0.8)]
    assert decided.masses == [pytest.approx(0.5)]


def test_a_label_that_is_not_listed_is_at_most_as_likely_as_the_last_that_is() -> None:
    """No certainty comes from a short list, and no doubt from a list of one certain token."""
    decided = read(GRADE, {"1": 0.6, "2": 0.2, "A": 0.1})
    assert decided.answers == [pytest.approx([1 / 9, 6 / 9, 2 / 9])]
    assert read(Predicate(), {"yes": 0.99}).answers == [pytest.approx(0.99)]
    assert read(Predicate(), {"yes": 0.9, "Yes": 0.099}).answers == [pytest.approx(0.999)]


def test_a_reply_that_is_no_label_has_no_probability() -> None:
    """The reason is what the model would write, as of one that reasons first."""
    [answer] = read(Predicate(), {"<think>": 0.99, "Okay": 0.01}).answers
    assert answer == "the reply would begin with '<think>': no allowed answer"


@pytest.mark.parametrize("logprob", [math.nan, 3.0, "0", None, True])
def test_what_is_no_logarithm_of_a_probability_is_no_answer(logprob: Any) -> None:
    """The endpoint's answer is then malformed."""
    top = [{"token": "yes", "logprob": logprob}]
    choice = {"message": {"content": "yes"}, "logprobs": {"content": [{"top_logprobs": top}]}}
    with pytest.raises((ValueError, TypeError)):
        Logprobs(RequestParameters(JudgeSettings())).read(
            [("words", Predicate())], {"choices": [choice]}
        )


def test_the_values_are_those_of_a_decision_model(judge_server: JudgeServer) -> None:
    """One question a request; the same probabilities give the same scores."""
    by_decisions = values(scored(judge_server, METRICS, count=5))
    judge_server.reset()
    result = scored(judge_server, METRICS, count=5, api="logprobs")
    assert values(result) == pytest.approx(by_decisions, abs=1e-3)
    stats, usage = judge_server.stats(), result.manifest.usage
    assert stats["by_path"] == {"/v1/chat/completions": usage.requests}
    assert usage.completion_tokens == usage.requests == 30  # one for each of six questions a row
    assert (usage.prompt_tokens, usage.unknown_requests) == (stats["prompt_tokens"], 0)


def test_requests_about_a_row_begin_with_the_row(judge_server: JudgeServer) -> None:
    """All that differs is the question at the end: a server reads the row once."""
    scored(judge_server, METRICS, count=1, api="logprobs", concurrency=1)
    last = judge_server.stats()["last_chat"]
    assert last["max_tokens"] == 1
    text = last["messages"][-1]["content"]
    [row] = rows(1)
    assert text.startswith('{"read":')
    assert all(context in text for context in row["retrieved_contexts"])
    assert text.rindex("is it so? Answer yes or no.") == len(text) - 27


def test_a_server_without_logprobs_is_told_in_a_sentence(judge_server: JudgeServer) -> None:
    """It ignores what it does not know: nothing can be read."""
    judge_server.faults(logprobs=False)
    with pytest.raises(JudgeRefused, match="the endpoint returns no `top_logprobs`"):
        scored(judge_server, METRICS, api="logprobs")
    assert judge_server.stats()["requests"] < 10


def test_one_answer_without_logprobs_is_asked_again(judge_server: JudgeServer) -> None:
    """After good answers it is a stumble of the server, and ends no run."""
    judge_server.faults(lacks_logprobs=8)
    result = scored(judge_server, ["context_relevance"], count=6, api="logprobs", concurrency=1)
    assert result.manifest.metrics[0].status == {"scored": 6}


def test_a_server_that_refuses_logprobs_is_told_by_name(judge_server: JudgeServer) -> None:
    """The endpoint's own words, and the parameter."""
    judge_server.faults(refuses=["logprobs"])
    with pytest.raises(JudgeRefused, match="logprobs"):
        scored(judge_server, METRICS, api="logprobs")
    assert judge_server.stats()["requests"] < 10


def test_a_model_that_would_write_something_else_is_unreadable(judge_server: JudgeServer) -> None:
    """It is asked again, counted, and never becomes a score."""
    judge_server.faults(nonsense=True)
    result = scored(judge_server, ["context_relevance"], count=2, api="logprobs", reasks=1)
    assert result.manifest.metrics[0].status == {"unreadable": 2}
    assert result.scores()["reason"].str.contains("would begin with 'sure'").all()


def test_a_row_that_is_too_long_is_asked_context_by_context(judge_server: JudgeServer) -> None:
    """Where the whole row does not fit, a question has what it is about alone."""
    judge_server.faults(max_prompt_chars=1_500)
    whole = values(scored(judge_server, METRICS, count=3, api="logprobs"))
    judge_server.faults(max_prompt_chars=1_000)
    assert values(scored(judge_server, METRICS, count=3, api="logprobs")) == whole


def test_a_dry_run_counts_a_request_for_each_question(judge_server: JudgeServer) -> None:
    """More requests than metrics ask for: none is left out, nor are its tokens."""
    judge = {"name": "decision", "base_url": judge_server.base_url, "api": "logprobs"}
    settings = make_settings({"judge": judge})
    estimate = ragmetrics.estimate(rows(5), DEFAULT_METRICS, settings=settings).total
    assert judge_server.stats()["requests"] == 0
    sent = scored(judge_server, list(DEFAULT_METRICS), count=5, api="logprobs").manifest.usage
    assert estimate.requests == sent.requests
    assert estimate.prompt_tokens == pytest.approx(sent.prompt_tokens, rel=0.2)


def test_todays_default_model_is_asked_in_the_way_that_it_takes(judge_server: JudgeServer) -> None:
    """A model that is known to reason is refused nothing, and answers by one token."""
    result = scored(judge_server, METRICS, count=5, api="logprobs", model="gpt-6-luna")
    assert all(summary.status == {"scored": 5} for summary in result.manifest.metrics)
    assert judge_server.stats()["by_status"] == {"200": 30}
    sent = judge_server.stats()["last_chat"]
    assert (sent["max_completion_tokens"], sent["reasoning_effort"]) == (1, "none")
    changed = "max_completion_tokens in place of max_tokens, reasoning_effort none"
    assert result.manifest.changed_parameters == {"decision:gpt-6-luna": changed}


def test_what_an_endpoint_refuses_by_name_is_learned_once(judge_server: JudgeServer) -> None:
    """An alias of a model that reasons: two refusals for a run, as in chat."""
    judge_server.faults(efforts=["none", "low"], refuses=["temperature"])
    result = scored(judge_server, METRICS, count=5, api="logprobs", model="an-alias-of-ours")
    assert all(summary.status == {"scored": 5} for summary in result.manifest.metrics)
    assert judge_server.stats()["by_status"] == {"200": 30, "400": 2}
    assert not {"max_tokens", "temperature"} & judge_server.stats()["last_chat"].keys()
    assert not result.manifest.usage.failures


def test_an_answer_cut_by_reasoning_gets_more_room(judge_server: JudgeServer) -> None:
    """It is asked again with more tokens, and later questions with as many."""
    judge_server.faults(efforts=["medium"], extra_tokens=9_000)
    result = scored(
        judge_server, ["context_relevance"], count=3, api="logprobs", model="gpt-6-luna"
    )
    assert result.manifest.metrics[0].status == {"scored": 3}
    assert judge_server.stats()["last_chat"]["max_completion_tokens"] > 9_000 + 1_024
    usage = result.manifest.usage
    assert usage.completion_tokens > usage.reasoning_tokens > 9_000 * 9
