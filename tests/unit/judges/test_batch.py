"""The batch judge, against the fake judge's Batch API over HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch import BatchJudge
from ragmetrics.judges.batch_api import BatchApi
from ragmetrics.judges.client_base import UsageCounter
from ragmetrics.storage import Files
from tests.fakes.batch_judging import (
    answer,
    asks,
    grades,
    make_judge,
    paid_once,
    run,
)
from tests.fakes.clients import JudgeServer


@pytest.fixture
def make(judge_server: JudgeServer, tmp_path: Path) -> Callable[..., BatchJudge]:
    """Makes a judge that polls often, with a store in a folder."""
    return lambda **changes: make_judge(judge_server, Files(str(tmp_path)), **changes)


def test_a_wave_of_requests_is_one_batch_and_each_gets_its_own_reply(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """What is asked together goes in one batch; output comes in no order and finds its request."""
    requests = asks(40)
    replies = run(answer(make(), requests))
    assert judge_server.batch_stats()["sizes"] == [40]
    assert grades(requests, replies) == [0, 2] * 20
    assert all(reply.prompt_tokens and reply.completion_tokens for reply in replies)


def test_the_same_request_asked_twice_is_in_the_batch_once(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Two parts that ask the same wait for one answer; another attempt is another request."""
    judge, (request,) = make(), asks(1)

    async def ask() -> list[Reply]:
        twice = [judge.reply(request, 0), judge.reply(request, 0), judge.reply(request, 1)]
        replies = await asyncio.gather(*twice)
        await judge.close()
        return replies

    assert len(run(ask())) == 3
    assert judge_server.batch_stats()["sizes"] == [2]


def test_waves_are_successive_batches(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """A second wave, asked when the first is answered, is a second batch."""
    judge = make()

    async def play(number: int) -> None:
        for note in ("first", "second"):
            await judge.reply(asks(number + 1, note)[number], 0)

    async def waves() -> None:
        await asyncio.gather(*(play(number) for number in range(5)))
        await judge.close()

    run(waves())
    assert judge_server.batch_stats()["sizes"] == [5, 5]


def test_files_stay_within_the_limits(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """More requests, or bytes, than a file may hold go in several batches."""
    replies = run(answer(make(most_requests=4), asks(10)))
    assert sorted(judge_server.batch_stats()["sizes"]) == [2, 4, 4]
    assert grades(asks(10), replies) == [0, 2] * 5

    run(answer(make(), requests := asks(10, "all at once")))
    (*_, together) = judge_server.batch_stats()["bytes"]
    judge_server.reset()
    run(answer(make(most_bytes=together // 3), asks(10, "bit by bit.")))
    told = judge_server.batch_stats()
    assert sum(told["sizes"]) == len(requests)
    assert len(told["bytes"]) == 4
    assert max(told["bytes"]) <= together // 3


def test_a_request_longer_than_a_file_may_be_fails_alone(
    make: Callable[..., BatchJudge],
) -> None:
    """The others are answered; that one says why it is not."""
    long, short = asks(1, "x" * 5_000), asks(1)
    failed, good = run(answer(make(most_bytes=2_000), long + short))
    assert isinstance(failed, JudgeError)
    assert "longer than a batch may be (2,000 bytes)" in str(failed)
    assert grades(short, [good]) == [0]


HOSTILE = [
    "line\nbreak\r\n",
    "\u2028\u2029\x85\x0b\x0c\x1c",
    "\x00\x1b[31m",
    '"}\n{"custom_id": "x"}',
    "</script>\ud83d\ude00",
    "\ud800 lone",
    "مرحبا 你好",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_in_its_line(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, text: str
) -> None:
    """Whatever a text holds, a request is one line, and its neighbours are answered too."""
    requests = [*asks(2, text), *asks(1)]
    replies = run(answer(make(), requests))
    assert grades(requests, replies) == [0, 2, 0]
    assert judge_server.batch_stats()["sizes"] == [3]


def test_error_lines_and_missing_lines_are_asked_again_and_counted(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Rate limits, errors of the server and lines in neither file cost a further batch, no row."""
    judge_server.faults(fail={"429": 0.2, "500": 0.2, "drop": 0.2}, fail_attempts=1)
    requests = asks(60)
    replies = run(answer(make(), requests))
    assert grades(requests, replies) == [0, 2] * 30
    first, second = judge_server.batch_stats()["sizes"]
    failures = Counter(kind for reply in replies for kind in reply.failures)
    assert first == 60
    assert second == failures.total()
    assert set(failures) == {"rate_limited", "server_error"}
    assert paid_once(judge_server, 60)


def test_a_request_that_always_fails_is_given_up(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """After `retries` further batches it is an error that says what happened, and how often."""
    judge_server.faults(fail={"500": 1})
    (error,) = run(answer(make(), asks(1)))
    assert isinstance(error, JudgeError)
    assert error.transient
    assert error.failures == {"server_error": 3}
    assert "the judge answered 500: fault 500 (after 3 batches)" in str(error)
    assert judge_server.batch_stats()["created"] == 3


def test_what_an_expired_batch_answered_is_used_and_the_rest_asked_again(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Partial output is paid for, so it is read; the other requests go in a further batch."""
    judge_server.batch_faults(expire_at=0.5, expire_batches=1)
    requests = asks(20)
    replies = run(answer(make(), requests))
    assert grades(requests, replies) == [0, 2] * 10
    assert judge_server.batch_stats()["sizes"] == [20, 10]
    assert Counter(kind for reply in replies for kind in reply.failures) == {"expired": 10}
    assert paid_once(judge_server, 20)


async def cancel_at_work(judge: BatchJudge, server: JudgeServer) -> list[Any]:
    """Ask, and cancel the batch when the judge waits for it."""
    asked = asyncio.create_task(answer(judge, asks(10)))
    while server.batch_stats()["steps"].get("look", 0) < 2:
        await asyncio.sleep(0.02)
    (record,) = await asyncio.to_thread(judge._records.refresh)
    await judge._api.cancel(record.batch or "")
    return await asked


def test_a_batch_cancelled_under_a_waiting_run_is_not_asked_again_by_it(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Who cancels wants no more of it: the run gives the requests up; a later one asks them."""
    judge_server.batch_faults(delay_seconds=30)
    replies = run(cancel_at_work(make(), judge_server))
    assert all(isinstance(reply, JudgeError) for reply in replies)
    assert {tuple(reply.failures) for reply in replies} == {("cancelled",)}
    assert judge_server.batch_stats()["created"] == 1
    judge_server.batch_faults(delay_seconds=0)
    assert grades(asks(10), run(answer(make(), asks(10)))) == [0, 2] * 5
    assert judge_server.batch_stats()["sizes"] == [10, 10]


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("model_not_found", "The provided model is not supported by the Batch API.", JudgeRefused),
        ("insufficient_quota", "You exceeded your current quota.", JudgeRefused),
        ("billing_hard_limit_reached", "Billing hard limit.", JudgeRefused),
        ("invalid_json_line", "This line is not parseable as valid JSON.", JudgeError),
    ],
)
def test_a_batch_that_fails_validation_says_the_reason(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, code: str, message: str, kind: type
) -> None:
    """The API's words are told; those about the model or the account end the run."""
    judge_server.batch_faults(invalid={"code": code, "message": message})
    replies = run(answer(make(), asks(3)))
    assert {type(reply) for reply in replies} == {kind}
    assert f"the batch failed: {message}" in str(replies[0])
    assert judge_server.batch_stats()["created"] == 1


def test_a_wrong_key_and_an_endpoint_without_batches_are_refused(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Both are told in one message, and nothing stays on record that a later run would look for."""
    judge_server.faults(api_key="another")
    (error,) = run(answer(judge := make(), asks(1)))
    assert isinstance(error, JudgeRefused)
    assert str(error) == "the judge refused the key: Incorrect API key provided."
    root = judge_server.base_url.removesuffix("/v1")
    (error,) = run(answer(make(base_url=f"{root}/nothing"), asks(1)))
    assert isinstance(error, JudgeRefused)
    assert f"{root}/nothing/ has no Batch API" in str(error)
    assert judge._records.refresh() == []


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
def test_a_host_that_is_not_there_is_refused_at_once(
    make: Callable[..., BatchJudge], host: str
) -> None:
    """With the address."""
    url = f"http://{host}:9/v1"
    (error,) = run(answer(make(base_url=url, sdk_retries=6), asks(1)))
    assert isinstance(error, JudgeRefused)
    assert str(error).startswith(f"no connection to {url}/: ")


@pytest.mark.parametrize(("fails", "tries"), [("ConnectError", 2), ("ReadError", 4)])
def test_only_what_was_reached_is_tried_as_often_as_the_settings_say(
    fails: str, tries: int
) -> None:
    """A wrong address is told after a second try; a connection that broke is no wrong address."""
    import openai

    tried = 0
    # httpx or httpx2, by the SDK's version.
    httpx: Any = import_module(
        openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]
    )

    def fail(_: Any) -> None:
        nonlocal tried
        tried += 1
        raise getattr(httpx, fails)("no")

    async def look() -> None:
        http = openai.DefaultAsyncHttpxClient(transport=httpx.MockTransport(fail))
        client = openai.AsyncOpenAI(
            api_key="testing", base_url="http://x/v1", max_retries=2, http_client=http
        )
        with pytest.raises(JudgeError, match="no connection to http://x/v1/: no"):
            await BatchApi(client).look("batch_1")
        await client.close()

    run(look())
    assert tried == tries


def test_a_wrong_model_is_named(make: Callable[..., BatchJudge], judge_server: JudgeServer) -> None:
    """And the setting that holds it."""
    judge_server.batch_faults(invalid={"code": "model_not_found", "message": "No."})
    (error,) = run(answer(make(model="mine"), asks(1)))
    told = "the judge has no model 'mine' (`judge: model:`): the batch failed: No."
    assert str(error) == told


def test_what_was_cancelled_or_has_expired_is_no_request() -> None:
    """It was neither answered nor paid for; it counts as a failure all the same."""
    tally = UsageCounter()
    tally.add(Reply(failures={"cancelled": 1, "expired": 2, "server_error": 1}))
    tally.fail({"cancelled": 1})
    usage = tally.usage()
    assert usage.requests == 2
    assert usage.failures == {"cancelled": 2, "expired": 2, "server_error": 1}


def test_too_many_waiting_tokens_make_smaller_batches_one_after_another(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """The account's limit of enqueued tokens is met by halving, not by giving up."""
    judge_server.batch_faults(enqueued_limit=6, delay_seconds=0.05)
    replies = run(answer(make(), asks(20)))
    assert grades(asks(20), replies) == [0, 2] * 10
    assert judge_server.batch_stats()["sizes"] == [5, 5, 5, 5]


def test_a_server_without_json_schema_is_asked_in_the_next_form(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """A refused form costs one batch, is no failure of a request, and is not tried again."""
    judge_server.faults(json_schema=False)
    judge = make()
    replies = run(answer(judge, asks(4)))
    assert grades(asks(4), replies) == [0, 2] * 2
    assert not any(reply.failures for reply in replies)
    assert judge_server.batch_stats()["sizes"] == [4, 4]


def test_a_cut_off_reply_says_so(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Where the tokens ran out, the reply is marked; asked again, it is a batch of its own."""
    judge_server.faults(fail={"truncated": 1}, fail_attempts=1)
    judge = make()

    async def ask() -> list[Reply]:
        replies = [await judge.reply(asks(1)[0], attempt) for attempt in (0, 1)]
        await judge.close()
        return replies

    first, second = run(ask())
    assert first.cut_off
    assert not second.cut_off
    assert judge_server.batch_stats()["sizes"] == [1, 1]
