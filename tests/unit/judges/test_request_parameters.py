"""Parameters that an endpoint refuses by name, as OpenAI's current models do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import SecretStr

from ragmetrics import Result, evaluate
from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import probe_judge, translate
from ragmetrics.judges.base import Reply, find_access
from ragmetrics.judges.batch import BatchJudge
from ragmetrics.judges.batch_api import make_client
from ragmetrics.judges.live import LiveJudge, chat_fingerprint
from ragmetrics.judges.request_parameters import (
    PARAMETERS,
    RequestParameters,
    refused_parameter,
)
from ragmetrics.metrics import GRADE, NEEDED
from ragmetrics.records import Ask, fingerprint
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows

CURRENT = ["max_tokens", "temperature"]
"""What OpenAI's current models refuse."""
CHANGES = "max_completion_tokens in place of max_tokens, reasoning_effort none, no temperature"
TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)


def settings(server: JudgeServer, **more: Any) -> JudgeSettings:
    """Settings of a judge at the server."""
    return JudgeSettings(name="openai", model="judge", base_url=server.base_url, **more)


def ask(number: int) -> Ask:
    """A request for a grade."""
    return Ask(GRADE, {"question": f"What is {number}?", "context": f"It is {number}."})


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        ({"message": TOKENS, "param": "max_tokens", "code": "unsupported_parameter"}, "max_tokens"),
        ({"message": TOKENS, "code": "invalid_request_body"}, "max_tokens"),
        ({"message": f"litellm.BadRequestError: OpenAIException - {TOKENS}"}, "max_tokens"),
        (
            {
                "message": "Unsupported value: 'temperature' does not support 0.1 with this "
                "model. Only the default (1) value is supported.",
                "param": "temperature",
                "code": "unsupported_value",
            },
            "temperature",
        ),
        ({"message": "`temperature` is deprecated for this model."}, "temperature"),
        ({"message": "gpt-5 models don't support temperature=0.1. Only 1."}, "temperature"),
        (
            {"message": "Unrecognized request argument supplied: max_completion_tokens"},
            "max_completion_tokens",
        ),
        # The value is wrong for this request, or the text of a row is quoted.
        ({"message": "max_tokens is too large: 9. At most 4.", "param": "max_tokens"}, ""),
        ({"message": "Maximum context length is 8192 tokens. Not supported: max_tokens"}, ""),
        ({"message": "The input is too long.\nUnsupported: temperature"}, ""),
        ({"message": None, "param": 7}, ""),
        ({}, ""),
    ],
)
def test_a_parameter_is_read_from_the_words_of_servers(
    error: dict[str, Any], parameter: str
) -> None:
    """By `param`, or in the first sentence; a value that is too large is no refusal."""
    assert refused_parameter(error) == parameter


@given(st.dictionaries(st.sampled_from(["message", "param", "code"]), st.text(max_size=400)))
def test_any_error_is_read(error: dict[str, Any]) -> None:
    """What names nothing refuses nothing; a name has a bounded length."""
    assert len(refused_parameter(error)) <= 60


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*PARAMETERS, "model", "x"]),
            st.lists(st.sampled_from(JudgeSettings.efforts), max_size=3),
        )
    ),
    st.sampled_from([None, *JudgeSettings.efforts]),
    st.sampled_from(["judge", "gpt-6-luna"]),
)
def test_what_was_refused_is_not_sent_again(
    refusals: list[tuple[str, list[str]]], effort: str | None, model: str
) -> None:
    """Whatever an endpoint refuses, and however often: asking in other ways ends."""
    known = RequestParameters(
        JudgeSettings.model_validate({"model": model, "reasoning_effort": effort})
    )
    turns, refused = 0, set[str]()
    for name, efforts in refusals:
        sent = known.sent
        if known.turn(name, sent, " ".join(f"'{one}'" for one in efforts)):
            turns += 1
            # A first refusal of the temperature may mean the effort with which it is sent.
            if name != "temperature" or "reasoning_effort" in sent:
                refused.add(sent[name] if name == "reasoning_effort" else name)
            assert not refused & {*known.sent, known.sent.get("reasoning_effort")}
        body = known.fit({"model": "m", "max_tokens": 9, "temperature": 0.1})
        assert body["model"] == "m"
        assert len({"max_tokens", "max_completion_tokens"} & body.keys()) == 1
    assert turns <= 2 + len(JudgeSettings.efforts) + 1


async def _live(server: JudgeServer, count: int) -> tuple[list[Reply], str]:
    chosen = settings(server)
    judge = LiveJudge(find_access(chosen, chosen.base_url, None), chosen)
    replies = await asyncio.gather(*(judge.reply(ask(number), 0) for number in range(count)))
    other = Ask(NEEDED, {"question": "?", "contexts": [{"1": "A."}]})
    await judge.reply(other, 0)
    await judge.close()
    return replies, judge.request_parameters.changes


def test_what_is_refused_is_learned_once(judge_server: JudgeServer) -> None:
    """Three rejections for a run, whatever the number of requests and prompts: a temperature that
    is refused is first sent with the least effort.
    """
    judge_server.faults(refuses=CURRENT)
    replies, changes = asyncio.run(_live(judge_server, 12))
    assert judge_server.stats()["by_status"] == {"400": 3, "200": 13}
    assert not any(reply.failures for reply in replies)
    assert changes == CHANGES
    assert 0 < judge_server.stats()["last_chat"]["max_completion_tokens"] < 100
    assert not {"max_tokens", "temperature"} & judge_server.stats()["last_chat"].keys()


def test_formats_and_parameters_are_learned_side_by_side(judge_server: JudgeServer) -> None:
    """A server that takes neither a schema nor a temperature is asked without both."""
    judge_server.faults(refuses=CURRENT, json_schema=False, json_object=False)
    asyncio.run(_live(judge_server, 3))
    assert judge_server.stats()["by_status"] == {"400": 5, "200": 4}


def test_an_endpoint_that_takes_all_is_sent_what_it_was(judge_server: JudgeServer) -> None:
    """Nothing changes where nothing is refused."""
    _, changes = asyncio.run(_live(judge_server, 2))
    sent = judge_server.stats()["last_chat"]
    assert (sent["temperature"], changes) == (0.1, "")
    assert "max_tokens" in sent and "max_completion_tokens" not in sent


def test_batches_are_sent_again_without_it(judge_server: JudgeServer) -> None:
    """One batch for each refusal, no failure of a request, and the same verdicts."""
    judge_server.faults(refuses=CURRENT)
    chosen = settings(judge_server, poll_seconds=0.01)
    access = find_access(chosen, chosen.base_url, SecretStr("testing"))

    async def answer() -> tuple[list[Reply], str]:
        judge = BatchJudge(make_client(access, chosen), chosen, quiet_seconds=0.05)
        replies = await asyncio.gather(*(judge.reply(ask(number), 0) for number in range(4)))
        await judge.close()
        return replies, judge.request_parameters.changes

    replies, changes = asyncio.run(answer())
    assert judge_server.batch_stats()["sizes"] == [4, 4, 4, 4]
    assert not any(reply.failures for reply in replies)
    assert changes == CHANGES


def test_what_has_no_replacement_ends_the_run(judge_server: JudgeServer) -> None:
    """A server that refuses both names of the limit: without a limit a reply may cost anything."""
    judge_server.faults(refuses=["max_tokens", "max_completion_tokens"])
    with pytest.raises(JudgeRefused, match="in place of 'max_completion_tokens'"):
        scored(judge_server, rows=300)
    assert judge_server.stats()["requests"] == 2


def test_a_batch_without_a_replacement_is_given_up(judge_server: JudgeServer) -> None:
    """Each line says why, and nothing is sent for ever."""
    judge_server.faults(refuses=["max_tokens", "max_completion_tokens"])
    result = scored(judge_server, "openai-batch", rows=8)
    (summary,) = result.manifest.metrics
    assert (summary.scored, summary.status) == (0, {"judge_failed": 8})
    assert "'max_completion_tokens' is not supported" in next(iter(summary.unanswered))
    assert judge_server.batch_stats()["sizes"] == [8, 8]


def scored(server: JudgeServer, judge: str = "openai", rows: int = 40, **more: Any) -> Result:
    """The result of `evaluate` by a judge at the server."""
    chosen = {"name": judge, "base_url": server.base_url, "poll_seconds": 0.01, "model": "judge"}
    chosen |= more
    log = make_rows(rows)
    return evaluate(log, metrics=["context_recall"], settings=make_settings({"judge": chosen}))


def test_a_run_says_what_was_sent(judge_server: JudgeServer) -> None:
    """All rows are scored, and the manifest has what the endpoint refused."""
    judge_server.faults(refuses=CURRENT)
    result = scored(judge_server)
    assert result.manifest.metrics[0].scored == 40
    assert judge_server.stats()["by_status"]["400"] == 3
    assert result.manifest.changed_parameters == {"openai:judge": CHANGES}
    assert result.as_json()["changed_parameters"] == {"openai:judge": CHANGES}


def test_fingerprints_do_not_change() -> None:
    """Cached replies are found under the key that they always had."""
    chosen = JudgeSettings(name="openai", model="m", base_url="http://judge.invalid/v1")
    judge = LiveJudge(find_access(chosen, chosen.base_url, SecretStr("x")), chosen)
    assert judge.fingerprint == "d96cf5f63105"


def test_doctor_asks_without_it(judge_server: JudgeServer) -> None:
    """`doctor --ask` says what was sent in place of what is refused."""
    judge_server.faults(refuses=CURRENT)
    told = asyncio.run(probe_judge(settings(judge_server), ask=True))
    assert told.endswith(f"answered with judge ({CHANGES})")


def test_doctor_does_not_ask_for_ever(judge_server: JudgeServer) -> None:
    """A server that refuses everything is told in its own words."""
    judge_server.faults(refuses=["*"])
    with pytest.raises(Exception, match="This model takes no requests today"):
        asyncio.run(probe_judge(settings(judge_server), ask=True))
    assert judge_server.stats()["requests"] == 1


def test_a_rejection_is_not_its_own_cause(judge_server: JudgeServer) -> None:
    """What prints a chain of causes would print for ever."""
    judge_server.faults(refuses=["*"])
    chosen = settings(judge_server)

    async def rejected() -> BaseException:
        judge = LiveJudge(find_access(chosen, chosen.base_url, None), chosen)
        (found,) = await asyncio.gather(judge.reply(ask(1), 0), return_exceptions=True)
        await judge.close()
        assert isinstance(found, JudgeError)
        return found

    assert asyncio.run(rejected()).__cause__ is None


def test_an_endpoint_that_rejects_everything_ends_the_run(judge_server: JudgeServer) -> None:
    """After ten rejections without an answer, and those that were under way, in one sentence."""
    judge_server.faults(refuses=["*"])
    with pytest.raises(JudgeRefused, match=r"errors only: .*This model takes no requests today"):
        scored(judge_server, rows=400)
    assert judge_server.stats()["requests"] < 20  # of 400


def test_a_translation_is_asked_without_it(judge_server: JudgeServer) -> None:
    """Prompts are translated by a model that refuses the same parameters."""
    judge_server.faults(refuses=CURRENT)
    chosen = make_settings({"judge": settings(judge_server).model_dump(exclude_unset=True)})
    translate(chosen, [GRADE], "de")
    assert "200" in judge_server.stats()["by_status"]


LUNA = "max_completion_tokens in place of max_tokens, reasoning_effort none"
SOL = "max_completion_tokens in place of max_tokens, reasoning_effort low, no temperature"


@pytest.mark.parametrize("judge", ["openai", "openai-batch"])
def test_the_default_model_scores_every_row(judge_server: JudgeServer, judge: str) -> None:
    """At the default settings, live and in batches, with nothing refused: it is known to reason."""
    result = scored(judge_server, judge, model="gpt-6-luna")
    assert result.manifest.metrics[0].scored == 40
    assert result.manifest.changed_parameters == {"openai:gpt-6-luna": LUNA}
    assert not result.manifest.usage.failures
    assert result.manifest.usage.reasoning_tokens == 0


@pytest.mark.parametrize("judge", ["openai", "openai-batch"])
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "an-alias-of-ours"])
def test_the_least_effort_is_what_a_refusal_names(
    judge_server: JudgeServer, judge: str, model: str
) -> None:
    """A model that lacks `none`, and refuses a temperature with any other effort. An alias is known
    to reason by what it refuses.
    """
    judge_server.faults(efforts=["low", "medium", "high"])
    result = scored(judge_server, judge, model=model)
    assert result.manifest.metrics[0].scored == 40
    assert result.manifest.changed_parameters == {f"openai:{model}": SOL}
    usage = result.manifest.usage
    assert usage.reasoning_tokens == 256 * 40
    assert usage.completion_tokens > usage.reasoning_tokens


def test_the_nearest_effort_is_sent(judge_server: JudgeServer) -> None:
    """In place of one that the model lacks, at least as much where there is."""
    judge_server.faults(efforts=["none", "low", "high"])
    result = scored(judge_server, model="gpt-6-luna", reasoning_effort="medium", rows=3)
    assert "reasoning_effort high" in result.manifest.changed_parameters["openai:gpt-6-luna"]
    assert result.manifest.metrics[0].scored == 3


def test_an_old_model_takes_no_effort(judge_server: JudgeServer) -> None:
    """A chat model without `reasoning_effort` is asked without it, though the settings want one."""
    result = scored(judge_server, model="gpt-4.1-mini", reasoning_effort="low", rows=3)
    assert result.manifest.changed_parameters == {"openai:gpt-4.1-mini": "no reasoning_effort"}
    assert result.manifest.metrics[0].scored == 3


@pytest.mark.parametrize("judge", ["openai", "openai-batch"])
def test_a_reply_cut_by_reasoning_gets_more_room(judge_server: JudgeServer, judge: str) -> None:
    """Its reasoning used all tokens: it is asked again with more, and others with as much."""
    judge_server.faults(efforts=["medium"], extra_tokens=9_000)
    result = scored(judge_server, judge, rows=8)
    assert result.manifest.metrics[0].scored == 8
    assert 1 <= result.manifest.usage.failures["cut_by_reasoning"] <= 8


def test_reasoning_without_end_is_told_as_that(judge_server: JudgeServer) -> None:
    """No room is enough: the row says what used the tokens, and which settings to change."""
    judge_server.faults(efforts=["medium"], extra_tokens=500_000)
    result = scored(judge_server, rows=2)
    (summary,) = result.manifest.metrics
    assert summary.status == {"unreadable": 2}
    why = "reasoning used 101,000 tokens and left too few for the reply; lower `judge: "
    assert why in next(iter(summary.unanswered))


def test_a_cut_reply_of_a_model_that_does_not_reason_is_told_otherwise() -> None:
    """Nothing is said of reasoning where there was none."""
    assert not Reply("{", completion_tokens=9, cut_off=True).cut_by_reasoning
    assert Reply("", completion_tokens=9, reasoning_tokens=9, cut_off=True).cut_by_reasoning


def test_doctor_says_how_much_a_model_reasons(judge_server: JudgeServer) -> None:
    """`doctor --ask` has the effort, and the tokens of its one reply."""
    judge_server.faults(efforts=["low", "high"])
    told = asyncio.run(probe_judge(settings(judge_server), ask=True))
    assert told.endswith(f"answered with judge ({SOL}, 256 tokens of reasoning)")


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "gpt-4o", "gpt-oss-20b", "qwen3-8b", "m"])
def test_fingerprints_of_chat_models_do_not_change(model: str) -> None:
    """A model that is not known to reason has the fingerprint of earlier versions."""
    chosen = JudgeSettings(name="openai", model=model, prompt_layout="task_first")
    assert chat_fingerprint(chosen, "u") == fingerprint("openai", model, "u", 0.1, 1_000)


def test_an_effort_is_another_fingerprint() -> None:
    """The effort of the settings, and the one that a model that reasons is asked for."""
    efforts = [None, "none", "low"]
    prints = [
        chat_fingerprint(JudgeSettings.model_validate({"model": "gpt-6-luna", **more}), "u")
        for more in ({"reasoning_effort": effort} for effort in efforts)
    ]
    assert prints[0] == prints[1] != prints[2]


def test_a_batch_of_a_known_model_fails_at_most_once(judge_server: JudgeServer) -> None:
    """A model that lacks `none` refuses a temperature too: both are learned from one batch."""
    result = scored(judge_server, "openai-batch", model="gpt-6.1-sol", rows=5)
    assert result.manifest.metrics[0].scored == 5
    assert judge_server.batch_stats()["sizes"] == [5, 5]


def test_an_effort_of_the_settings_goes_without_a_temperature(judge_server: JudgeServer) -> None:
    """A model that is known to reason would refuse it: nothing is refused."""
    result = scored(judge_server, model="gpt-6-luna", reasoning_effort="low", rows=3)
    assert result.manifest.metrics[0].scored == 3
    assert "400" not in judge_server.stats()["by_status"]
