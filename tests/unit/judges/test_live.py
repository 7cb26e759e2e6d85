"""The live judge against a real server: what is sent, what is read, what is tried again."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import SecretStr

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.config.base import make_section
from ragmetrics.errors import JudgeError, JudgeRefused, SettingsError
from ragmetrics.http import Answer, RetryableError, error_of, retry_after
from ragmetrics.http.client import proxy_of
from ragmetrics.judges.base import Reply, find_access
from ragmetrics.judges.embeddings import OpenAIEmbedder
from ragmetrics.judges.live import Envelope, LiveJudge, request_body
from ragmetrics.judges.responses import error_from_response, seconds_of, used_up
from ragmetrics.metrics import GRADE, NEEDED
from ragmetrics.records import Ask, Prompt, Text
from ragmetrics.text import shorten
from tests.fakes.clients import JudgeServer
from tests.fakes.verdicts import embedding

NOW = datetime(2026, 11, 19, tzinfo=UTC)
VERBATIM = Prompt("old", 1, Text, "Grade {text}, please.", verbatim=True)


def make_ask(number: int = 7) -> Ask:
    """A question whose context answers it."""
    context = f"The height of tower {number} is 107 metres."
    return Ask(GRADE, {"question": f"What is the height of tower {number}?", "context": context})


def settings(base_url: str, **more: Any) -> JudgeSettings:
    """A judge at an address."""
    return JudgeSettings(name="openai", model="judge", base_url=base_url, **more)


def replies(base_url: str, asks: list[Ask], **more: Any) -> list[Reply | BaseException]:
    """The replies of one judge to requests put at once, or the errors in their place."""

    async def put() -> list[Reply | BaseException]:
        chosen = settings(base_url, **more)
        judge = LiveJudge(find_access(chosen, base_url, SecretStr("testing")), chosen)
        try:
            answers = (judge.reply(ask, 0) for ask in asks)
            return await asyncio.gather(*answers, return_exceptions=True)
        finally:
            await judge.close()

    return asyncio.run(put())


def reply(base_url: str, ask: Ask | None = None, **more: Any) -> Reply:
    """One reply; raises what the judge raises."""
    (answer,) = replies(base_url, [ask or make_ask()], **more)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def test_a_reply_brings_its_text_and_its_tokens(judge_server: JudgeServer) -> None:
    """The second request finds its beginning in the endpoint's cache, and says so."""
    judge_server.faults(prompt_cache="block")
    first, second = (reply(judge_server.base_url, make_ask(number)) for number in (1, 2))
    stats = judge_server.stats()
    assert isinstance(first, Reply) and isinstance(second, Reply)
    assert GRADE.parse(first.text, {}).grade == 2
    assert first.prompt_tokens + second.prompt_tokens == stats["prompt_tokens"]
    assert first.completion_tokens + second.completion_tokens == stats["completion_tokens"]
    assert first.cached_tokens == 0
    assert second.cached_tokens >= len(GRADE.system) // 64 * 16 > 0
    assert not first.failures and not first.cut_off


def test_who_asks_is_said_as_the_sdk_says_it(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key, organisation and project go in the headers, read from where the SDK reads them."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    judge_server.faults(api_key="testing")
    reply(judge_server.base_url)
    headers = judge_server.stats()["headers"]
    assert {"authorization", "openai-organization", "openai-project"} <= set(headers)


def test_the_key_is_not_sent_as_an_empty_header(judge_server: JudgeServer) -> None:
    """What is not set is left out."""
    reply(judge_server.base_url)
    assert not {"openai-organization", "openai-project"} & set(judge_server.stats()["headers"])


@given(text=st.text() | st.just("\ud800"), form=st.integers(0, 2))
def test_an_envelope_is_the_body_written_out(text: str, form: int) -> None:
    """Whatever the data, without bounds what is sent is what `request_body` says, in every
    format.
    """
    chosen = settings("http://localhost")
    for ask in (
        Ask(GRADE, {"question": text, "context": text}),
        Ask(NEEDED, {"question": text, "contexts": [{"1": text}]}),
        Ask(VERBATIM, {"text": text}),
    ):
        unbounded = replace(ask, prompt=replace(ask.prompt, sizes=None))
        body = json.loads(Envelope(chosen, unbounded.prompt, form).fill(unbounded, full=True))
        formats = ("json_schema", "json_object", "text")
        assert body == request_body(chosen, ask, formats[form])


def test_a_cut_reply_says_so(judge_server: JudgeServer) -> None:
    """It ended where its tokens ran out."""
    judge_server.faults(fail={"truncated": 1})
    assert reply(judge_server.base_url).cut_off


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "rate_limited"),
        ("500", "server_error"),
        ("503", "server_error"),
        ("drop", "dropped"),
    ],
)
def test_what_passes_is_tried_again_and_counted(
    judge_server: JudgeServer, fault: str, kind: str
) -> None:
    """The very first request too: a stumbling endpoint is no wrong one."""
    judge_server.faults(fail={fault: 1}, fail_attempts=2)
    assert reply(judge_server.base_url).failures == {kind: 2}


def test_a_hanging_request_is_given_up_and_sent_again(judge_server: JudgeServer) -> None:
    """After `timeout_seconds`."""
    judge_server.faults(fail={"hang": 1}, fail_attempts=1)
    answer = reply(judge_server.base_url, timeout_seconds=3, hedge=False)
    assert set(answer.failures) == {"timeout"}


def test_the_first_requests_hang_no_longer_than_later_ones(judge_server: JudgeServer) -> None:
    """Sent before any latency is known, they are given up as soon as enough others tell: by
    `timeout_seconds` alone this would take an hour."""
    judge_server.faults(fail={"hang": 0.2}, fail_attempts=1)
    asks, hour = [make_ask(number) for number in range(60)], 3_600
    answers = replies(
        judge_server.base_url, asks, timeout_seconds=hour, deadline_seconds=hour, hedge=False
    )
    assert sum("timeout" in answer.failures for answer in answers if isinstance(answer, Reply)) > 3


def test_retries_are_bounded(judge_server: JudgeServer) -> None:
    """The error is transient, says what the endpoint said, and counts what was tried."""
    judge_server.faults(fail={"500": 1})
    with pytest.raises(JudgeError, match="the judge answered 500: The server had an error") as told:
        reply(judge_server.base_url, retries=2)
    assert told.value.transient and not isinstance(told.value, JudgeRefused)
    assert told.value.failures == {"server_error": 3}
    assert judge_server.stats()["requests"] == 3


def test_a_rate_limit_is_waited_for_until_the_deadline(judge_server: JudgeServer) -> None:
    """It is no error to be retried a number of times, but a request to wait."""
    judge_server.faults(fail={"429": 1})
    with pytest.raises(JudgeError, match=r"429.*given up after 10 s") as told:
        reply(judge_server.base_url, retries=0, deadline_seconds=10)
    assert told.value.failures["rate_limited"]


def test_retry_after_is_honoured(judge_server: JudgeServer) -> None:
    """A second is waited, not less; a wait beyond the deadline is not begun."""
    judge_server.faults(fail={"429": 1}, fail_attempts=1, retry_after=1)
    start = time.monotonic()
    assert reply(judge_server.base_url).failures == {"rate_limited": 1}
    assert time.monotonic() - start >= 1
    judge_server.faults(fail={"429": 1}, fail_attempts=None, retry_after=3_600)
    with pytest.raises(JudgeError, match="given up"):
        reply(judge_server.base_url, make_ask(8))


def test_limits_told_in_headers_are_kept_to(judge_server: JudgeServer) -> None:
    """Nothing is sent until a used-up limit is filled again: few are refused."""
    judge_server.faults(rate_limit=[10, 1.0])
    answers = replies(judge_server.base_url, [make_ask(number) for number in range(25)])
    assert all(isinstance(answer, Reply) for answer in answers)
    assert judge_server.stats()["by_status"].get("429", 0) <= 50


def test_a_request_that_is_too_long_fails_alone(judge_server: JudgeServer) -> None:
    """The endpoint's reason is given, it is not tried again, and others are answered."""
    judge_server.faults(max_prompt_chars=5_000)
    long = Ask(GRADE, {"question": "?", "context": "word " * 2_000})
    good, bad = replies(judge_server.base_url, [make_ask(), long])
    assert isinstance(good, Reply)
    assert isinstance(bad, JudgeError) and not isinstance(bad, JudgeRefused)
    assert not bad.transient and "maximum context length is exceeded" in str(bad)
    assert judge_server.stats()["requests"] == 2


def test_the_format_is_learned_once(judge_server: JudgeServer) -> None:
    """Of many requests after the first, none is refused for its format; other prompts know too."""
    judge_server.faults(json_schema=False, json_object=False)

    async def put() -> None:
        chosen = settings(judge_server.base_url)
        judge = LiveJudge(find_access(chosen, chosen.base_url, None), chosen)
        await judge.reply(make_ask(), 0)
        await asyncio.gather(*(judge.reply(make_ask(number), 0) for number in range(10)))
        await judge.reply(Ask(NEEDED, {"question": "?", "contexts": [{"1": "A."}]}), 0)
        await judge.close()

    asyncio.run(put())
    assert judge_server.stats()["by_status"] == {"400": 2, "200": 12}


def test_a_verbatim_prompt_asks_for_no_format(judge_server: JudgeServer) -> None:
    """Its words are all that is sent."""
    reply(judge_server.base_url, Ask(VERBATIM, {"text": "this"}))
    chat = judge_server.stats()["last_chat"]
    assert chat["messages"] == [{"role": "user", "content": "Grade this, please."}]
    assert "response_format" not in chat


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"api_key": "another"}, "the judge refused the key: Incorrect API key provided."),
        (
            {"models": ["gpt"]},
            r"has no model 'judge' \(`judge: model:`\): http.*/v1/: The model `judge`",
        ),
        ({"fail": {"quota": 1}}, "the judge's quota is used up: You exceeded your current quota"),
    ],
)
def test_what_no_request_can_succeed_with_is_refused_at_once(
    judge_server: JudgeServer, behaviour: dict[str, Any], message: str
) -> None:
    """One request is enough."""
    judge_server.faults(**behaviour)
    with pytest.raises(JudgeRefused, match=message):
        reply(judge_server.base_url)
    assert judge_server.stats()["requests"] == 1


def test_who_waits_for_a_place_is_not_sent_after_a_refusal(judge_server: JudgeServer) -> None:
    """A wrong key is asked with once, however many requests stand behind the first."""
    judge_server.faults(api_key="another")
    asks = [make_ask(number) for number in range(20)]
    found = replies(judge_server.base_url, asks, concurrency=1)
    assert all("refused the key" in str(one) and isinstance(one, JudgeRefused) for one in found)
    assert judge_server.stats()["requests"] == 1


def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def black_hole() -> Iterator[int]:
    """A port that takes no further connection: its queue is full and nobody accepts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        yield int(address[1])
        for filler in fillers:
            filler.close()


@pytest.mark.process
@pytest.mark.parametrize("host", ["nowhere.invalid", "127.0.0.1"])
def test_a_host_that_is_not_there_is_refused(host: str) -> None:
    """No such name, or nobody listens: one message with the address."""
    url = f"http://{host}:{closed_port()}/v1"
    with pytest.raises(JudgeRefused, match=f"no connection to {url}/: "):
        reply(url)


@pytest.mark.process
def test_a_host_that_does_not_answer_is_refused() -> None:
    """Where packets vanish, the attempt to connect ends after three seconds, not sixty."""
    with black_hole() as port, pytest.raises(JudgeRefused, match="no connection to"):
        reply(f"http://127.0.0.1:{port}/v1")


def test_a_server_that_is_gone_later_is_waited_for(
    start_judge: Callable[[], JudgeServer],
) -> None:
    """Once something was reached, a lost connection passes."""
    server = start_judge()

    async def put() -> JudgeError:
        chosen = settings(server.base_url, retries=1)
        judge = LiveJudge(find_access(chosen, chosen.base_url, None), chosen)
        await judge.reply(make_ask(), 0)
        judge._endpoint._client.address = f"http://127.0.0.1:{closed_port()}/v1"
        with pytest.raises(JudgeError) as told:
            await judge.reply(make_ask(1), 0)
        await judge.close()
        return told.value

    error = asyncio.run(put())
    assert error.transient and error.failures == {"dropped": 2}


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8801/v1", "localhost:8801/v1", "htp://x/v1", "http:///v1", "http://x:y/v1", "x"],
)
def test_what_is_no_url_is_told_before_anything_is_asked(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the judge, of embeddings, and of the environment; the setting is named."""
    with pytest.raises(SettingsError, match="judge: base_url: "):
        make_section(JudgeSettings, "judge", {"name": "openai", "base_url": url})
    with pytest.raises(SettingsError, match="base_url: "):
        make_settings({"embeddings": {"name": "openai", "base_url": url}})
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL: "):
        find_access(JudgeSettings(name="openai"), None, SecretStr("testing"))


def test_a_host_that_cannot_be_asked_for_is_refused() -> None:
    """What a URL's form does not tell, the first attempt does."""
    with pytest.raises(JudgeRefused, match=r"no connection to http://a\.\.b/v1/: "):
        reply("http://a..b/v1")


def test_an_endpoint_that_answers_nothing_but_errors_ends_the_run(
    judge_server: JudgeServer,
) -> None:
    """After a hundred requests were given up; not all of a night is tried in vain."""
    judge_server.faults(fail={"500": 1})
    answers = replies(judge_server.base_url, [make_ask(number) for number in range(101)], retries=0)
    ended = [answer for answer in answers if isinstance(answer, JudgeRefused)]
    assert len(ended) == 2 and all(isinstance(answer, JudgeError) for answer in answers)
    assert f"the judge at {judge_server.base_url}/ has answered with errors only: " in str(ended[0])
    assert "the judge answered 500: The server had an error" in str(ended[0])
    assert ended[0].failures == {"server_error": 1}


def test_an_endpoint_that_has_answered_once_is_no_wrong_one(judge_server: JudgeServer) -> None:
    """However many requests are given up after it: an outage passes."""

    async def put() -> list[Any]:
        chosen = settings(judge_server.base_url, retries=0)
        judge = LiveJudge(find_access(chosen, chosen.base_url, None), chosen)
        await judge.reply(make_ask(), 0)
        judge_server.faults(fail={"500": 1})
        asked = (judge.reply(make_ask(100 + number), 0) for number in range(101))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        await judge.close()
        return answers

    assert {type(one) for one in asyncio.run(put())} == {JudgeError}


def vectors(server: JudgeServer, texts: list[str], **more: Any) -> list[Any]:
    """The vectors of texts asked for at once, or the errors in their place."""

    async def put() -> list[Any]:
        chosen = settings(server.base_url, **more)
        embedder = OpenAIEmbedder(find_access(chosen, chosen.base_url, None), "e", chosen)
        try:
            asked = (embedder.embed(text) for text in texts)
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await embedder.close()

    return asyncio.run(put())


@pytest.mark.parametrize("fault", ["429", "500", "drop", "hang"])
def test_embeddings_survive_the_same_faults(judge_server: JudgeServer, fault: str) -> None:
    """Each text gets its own vector, and what waits together goes in one request."""
    judge_server.faults(fail={fault: 1}, fail_attempts=1)
    texts = [f"text {number}" for number in range(300)]
    found = vectors(judge_server, texts, timeout_seconds=5 if fault == "hang" else 60)
    for text, vector in zip(texts, found, strict=True):
        assert vector == pytest.approx(embedding(text), abs=1e-6)
    assert len(judge_server.stats()["by_hash"]) == 3


def test_a_text_that_is_too_long_fails_alone(judge_server: JudgeServer) -> None:
    """The others of its request get their vectors."""
    judge_server.faults(max_prompt_chars=500)
    *found, failed = vectors(judge_server, ["a", "b", "c", "d" * 501])
    assert [len(vector) for vector in found] == [len(embedding("a"))] * 3
    assert isinstance(failed, JudgeError)


@given(st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_durations_of_headers(minutes: int, seconds: int, milliseconds: int) -> None:
    """`6m0s`, `1s`, `20ms`, and what they add up to."""
    assert seconds_of(f"{minutes}m{seconds}s") == 60 * minutes + seconds
    assert seconds_of(f"{milliseconds}ms") == pytest.approx(milliseconds / 1000)
    assert seconds_of(f"{seconds}.5s") == seconds + 0.5


@given(st.text())
def test_any_header_is_read(text: str) -> None:
    """Nonsense asks for no wait; nothing that is read is negative or endless."""
    headers = {"retry-after": text, "x-ratelimit-remaining-requests": "0"}
    assert 0 <= retry_after(headers, NOW) < float("inf")
    assert used_up(headers | {"x-ratelimit-reset-requests": text}) >= 0
    assert len(shorten(text * 400)) <= 304 and shorten(text).isprintable()


@pytest.mark.parametrize(
    ("reset", "seconds"), [("1s", 1), ("8h0m0s", 60), ("9999999999999d", 60), ("soon", 0)]
)
def test_a_hint_of_an_answer_keeps_nobody_for_long(reset: str, seconds: float) -> None:
    """An endpoint that answers may say that nothing is left for hours: it is asked in a minute."""
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset}
    assert used_up(headers) == seconds


def test_what_retry_after_may_be() -> None:
    """Seconds, milliseconds, or a date."""
    date = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
    assert retry_after({"retry-after": date}, NOW) == 90
    assert retry_after({"retry-after": "1.5"}, NOW) == 1.5
    assert retry_after({"retry-after": "2", "retry-after-ms": "1500"}, NOW) == 1.5
    assert retry_after({"retry-after": "nan"}, NOW) == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"error": "no"}', "no"),
        (b'{"object": "error", "message": "no"}', "no"),
        (b"<html>no</html>", None),
        (b"[1]", None),
    ],
)
def test_errors_are_read_in_the_forms_that_servers_give_them(
    body: bytes, message: str | None
) -> None:
    """OpenAI's, Ollama's, vLLM's; a page is none."""
    assert error_of(body).get("message") == message


URL = "http://localhost:8000/"


def told(answer: Answer, *, proven: bool = False) -> Exception:
    """What an answer of the endpoint at URL means."""
    return error_from_response(answer, "m", URL, NOW, proven=proven)


def test_a_403_after_good_answers_is_that_requests_own() -> None:
    """A firewall that dislikes one text does not end the night; before, the key is wrong."""
    answer = Answer(403, {}, b"blocked")
    assert isinstance(told(answer), JudgeRefused)
    later = told(answer, proven=True)
    assert isinstance(later, JudgeError) and not isinstance(later, JudgeRefused)


def test_a_redirect_after_good_answers_is_tried_again() -> None:
    """A proxy that is restarted sends one elsewhere; before, the address is wrong."""
    answer = Answer(302, {"Location": "https://login.example.com/"}, b"")
    assert isinstance(told(answer), JudgeRefused)
    assert isinstance(told(answer, proven=True), RetryableError)


def test_a_404_page_asks_about_the_address() -> None:
    """No model can be told to be missing where there is no API."""
    page = told(Answer(404, {}, b"404: Not Found"))
    assert f"is base_url right? ({URL} answered 404: Not Found)" in str(page)
    assert f"is base_url right? ({URL} answered 404 without a message)" in str(
        told(Answer(404, {}, b""))
    )


@pytest.mark.parametrize("status", [400, 401, 402, 403, 429, 500, 503])
def test_an_error_without_a_word_names_the_address(status: int) -> None:
    """There is nothing else to go by."""
    assert str(told(Answer(status, {}, b" \n"))).endswith(f": {URL} gives no reason")


def test_proxies_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not for the hosts it excepts."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert proxy_of("https://api.example.org/v1") == "http://proxy:3128"
    assert proxy_of("https://localhost/v1") is None
