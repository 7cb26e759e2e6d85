"""An endpoint that stops answering: every request ends within a bound, on a clock of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused, Unanswered
from ragmetrics.http import Answer, Dropped
from ragmetrics.judges import Reply, decision, embeddings, rate_limiter as breaker, rerank
from ragmetrics.judges.base import find_access
from ragmetrics.judges.decision import DecisionJudge
from ragmetrics.judges.decision_layout import DecisionLayout
from ragmetrics.judges.embeddings import OpenAIEmbedder
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.kinds.decision import DecisionSettings
from ragmetrics.judges.kinds.rerank import RerankSettings
from ragmetrics.judges.live import PATH, read_reply
from ragmetrics.judges.rate_limiter import MOST_GIVEN_UP, SILENCE, RateLimiter
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.judges.rerank import RerankJudge
from ragmetrics.metrics import GRADE
from ragmetrics.records import Ask, Deadline, LogRow, use_deadline
from tests.fakes.instant import instantly
from tests.fakes.scripted import GOOD, ScriptedJudge, a_broker

DEADLINE = 600.0
BOUND = SILENCE * DEADLINE
REPLY = Answer(200, {}, json.dumps({"choices": [{"message": {"content": GOOD}}]}).encode())
HOURS = 3_600.0


def refusal(status: int, said: str = "no", **headers: str) -> Answer:
    """An error of a server."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, json.dumps({"error": {"message": said}}).encode())


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "_dead", set())


class Server:
    """Answers in half a second, as `said` says: an answer, None for never, or a lost connection."""

    def __init__(self, said: Callable[[int, float], Answer | None], takes: float = 0.5) -> None:
        self.asked = 0
        self._said, self._takes = said, takes

    address = "http://judge.invalid/v1"
    reached = True

    async def send(self, method: str, path: str, *, body: bytes) -> Answer:
        """One request."""
        self.asked += 1
        answer = self._said(self.asked, asyncio.get_running_loop().time())
        if answer is None:
            await asyncio.Event().wait()
            raise Dropped("never")
        await asyncio.sleep(self._takes)
        return answer

    async def aclose(self) -> None:
        """Nothing to give back."""


@asynccontextmanager
async def endpoint(server: Server, **more: Any) -> AsyncIterator[Endpoint]:
    """An endpoint on the running loop's clock."""
    chosen = JudgeSettings(
        name="openai", model="m", base_url="http://judge.invalid/v1", deadline_seconds=DEADLINE
    ).model_copy(update=more)
    gate = RateLimiter(
        chosen.concurrency,
        chosen.requests_per_minute,
        clock=asyncio.get_running_loop().time,
    )
    access = find_access(chosen, chosen.base_url, SecretStr("testing"))
    made = Endpoint(access, chosen, "m", limiter=gate, client=server)  # type: ignore[arg-type]
    yield made
    await made.close()


def call(number: int = 0) -> Call[Any]:
    """One request."""
    return Call(PATH, "grade", f'"{number}"'.encode(), read_reply)


async def put(to: Endpoint, count: int) -> list[Any]:
    """What became of requests that were put at once."""
    asked = (to.ask(call(number)) for number in range(count))
    return await asyncio.gather(*asked, return_exceptions=True)


def outcome(server: Server, count: int = 400, **more: Any) -> tuple[list[Any], float]:
    """What became of requests that were put at once, and the seconds that it took."""

    async def play() -> tuple[list[Any], float]:
        async with endpoint(server, **more) as to:
            found = await put(to, count)
            return found, asyncio.get_running_loop().time()

    return instantly(play())


FAULTS: dict[str, Answer | None] = {
    "hangs": None,
    "429 for ever": refusal(429),
    "503 for ever": refusal(503),
    "500 for ever": refusal(500),
    "429, come back in 8 h": refusal(429, retry_after="28800"),
    "503, come back in 8 h": refusal(503, retry_after="28800"),
}


@pytest.mark.parametrize("good", [0, 200], ids=["from the start", "after 200 answers"])
@pytest.mark.parametrize("fault", list(FAULTS))
def test_every_request_ends_within_a_bound(fault: str, good: int) -> None:
    """400 requests at once, whatever the endpoint does after its last good answer."""
    server = Server(lambda number, now: REPLY if number <= good else FAULTS[fault])
    found, seconds = outcome(server)
    answered = [one for one in found if not isinstance(one, BaseException)]
    assert len(answered) == good
    assert all(isinstance(one, JudgeError | tuple) for one in found)
    assert seconds <= BOUND + 60  # and the time in which it answered


def test_the_time_of_a_request_counts_from_its_planning() -> None:
    """Twenty requests of which few have a place at a time: all end at one deadline, none later."""
    found, seconds = outcome(Server(lambda number, now: None), 20, concurrency=2)
    assert all(isinstance(one, JudgeError) for one in found)
    assert seconds <= DEADLINE + 5


def test_a_slow_allowance_loses_no_request() -> None:
    """A queue that moves is no reason to give up: an hour of requests at one a second."""
    found, seconds = outcome(Server(lambda number, now: REPLY), 3_600, requests_per_minute=60)
    assert not any(isinstance(one, BaseException) for one in found)
    assert seconds > 3_500


def rejected(
    say: Callable[[int, float], Answer], at_once: int = 2, takes: float = 0.5
) -> tuple[int, list[Any], float]:
    """How many requests were sent, some at once, what became of them, and in which time."""
    server = Server(say, takes)

    async def play() -> tuple[list[Any], float]:
        async with endpoint(server, concurrency=at_once) as to:
            asked = (to.reply(PATH, "grade", {"n": n}, read_reply) for n in range(300))
            found = await asyncio.gather(*asked, return_exceptions=True)
            return found, asyncio.get_running_loop().time()

    found, seconds = instantly(play())
    return server.asked, found, seconds


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422, 501])
def test_an_endpoint_that_rejects_all_in_the_same_words_is_soon_given_up(status: int) -> None:
    """About ten requests, within seconds: it is not the rows' fault."""
    asked, found, seconds = rejected(lambda number, now: refusal(status, "not here"))
    assert asked <= 12 and seconds <= 10
    assert sum(isinstance(answer, JudgeRefused) for answer in found) >= 290
    assert "not here" in str(found[-1])


@pytest.mark.parametrize("at_once", [1, 2, 64])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 422, 501])
def test_rejections_that_are_certain_to_repeat_are_waited_for_five_seconds_at_most(
    status: int, at_once: int
) -> None:
    """All that is slept here is a pause by design, as the server takes no time."""
    _, found, slept = rejected(lambda number, now: refusal(status, "not here"), at_once, takes=0)
    assert slept <= 5.0
    assert sum(isinstance(answer, JudgeRefused) for answer in found) >= 300 - 64 - 10


@pytest.mark.parametrize(
    ("kind", "most"), [("rerank", 20), ("decision", 20), ("logprobs", 20), ("embedder", 200)]
)
def test_whoever_asks_an_endpoint_that_rejects_all_is_told_so(
    monkeypatch: pytest.MonkeyPatch, kind: str, most: int
) -> None:
    """Rejections of a reranker's contexts, of decisions and of texts to embed count alike; the
    texts of five requests are sent in halves first.
    """
    server = Server(lambda number, now: refusal(400, "not here"), takes=0)

    async def play() -> tuple[list[Any], float]:
        async with endpoint(server, concurrency=2) as to:
            for module in (decision, embeddings, rerank):
                monkeypatch.setattr(module, "Endpoint", lambda *_: to)
            ask = asker(kind)
            found = await asyncio.gather(*map(ask, range(300)), return_exceptions=True)
            return found, asyncio.get_running_loop().time()

    found, slept = instantly(play())
    assert sum(isinstance(answer, JudgeRefused) for answer in found) >= 280
    assert (
        10 <= server.asked <= most and slept <= 5.5
    )  # with the time for which requests are gathered


def asker(kind: str) -> Callable[[int], Awaitable[Any]]:
    """Asks an endpoint something about the row of a number."""
    address = {"base_url": "http://judge.invalid/v1"}
    if kind == "embedder":
        chosen = JudgeSettings.model_validate(address)
        embedder = OpenAIEmbedder(find_access(chosen, chosen.base_url, None), "m", chosen)
        return lambda number: embedder.embed(f"text {number}")
    judge: RerankJudge | DecisionJudge
    if kind == "rerank":
        chosen = RerankSettings.model_validate(address | {"thresholds": (0.3, 0.7)})
        judge = RerankJudge(find_access(chosen, chosen.base_url, None), chosen)
    else:
        api = "auto" if kind == "decision" else kind
        deciding = DecisionSettings.model_validate(address | {"api": api})
        judge = DecisionJudge(find_access(deciding, deciding.base_url, None), deciding)

    def ask(number: int) -> Awaitable[Any]:
        question, context = f"{number}?", f"text {number}"
        asks = [Ask(GRADE, {"question": question, "context": context})]
        if kind != "rerank":
            row = LogRow(id=f"{number}", user_input=question, retrieved_contexts=(context,))
            asks = DecisionLayout().arrange(row, asks)
        return judge.reply(asks[0], 0)

    return ask


@pytest.mark.parametrize(
    "say",
    [
        lambda number: f"request {number} is not valid",
        lambda number: "the request exceeds the available context size",
        lambda number: "Input validation error: `inputs` must have less than 512 tokens",
    ],
)
def test_rows_that_are_rejected_for_their_own_sake_do_not_end_a_run_so_soon(
    say: Callable[[int], str],
) -> None:
    """The first fifty may be too long, and the others are answered."""
    asked, found, _ = rejected(lambda n, now: refusal(400, say(n)) if n <= 50 else REPLY)
    assert asked == 300
    assert sum(isinstance(answer, JudgeError) for answer in found) == 50


@pytest.mark.parametrize("status", [400, 501])
def test_a_gateway_that_is_starting_ends_no_run(status: int) -> None:
    """It rejects whatever comes in its first seconds, and then it answers."""
    starting = refusal(status, "no such model")
    asked, found, seconds = rejected(lambda n, now: starting if now < 4.5 else REPLY, at_once=16)
    lost = [answer for answer in found if isinstance(answer, BaseException)]
    assert asked == 300 and 7 <= len(lost) <= 7 + 16 and seconds < 30
    assert not any(isinstance(error, JudgeRefused) for error in lost)


class Remote(ScriptedJudge):
    """Asks an endpoint."""

    to: Endpoint

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The reply of the endpoint."""
        return await self.to.reply(PATH, "grade", {}, read_reply)


class FirstKept:
    """A cache of the reply to the first of the requests."""

    def __init__(self, first: Ask) -> None:
        self.find = {first.key: GOOD}.get

    async def prepare(self) -> None:
        """Nothing to wait for."""

    async def add(self, reply: CachedReply) -> None:
        """No other one is kept."""


@pytest.mark.parametrize("kept", [True, False])
def test_a_judge_whose_replies_are_cached_is_asked_on(kept: bool) -> None:
    """On a second night the rows that a guardrail rejects come before all that is new."""
    asks = [Ask(GRADE, {"question": "Why?", "context": str(number)}) for number in range(60)]
    guarded = refusal(400, "Violated guardrail policy")
    server = Server(lambda number, now: guarded if number <= 40 else REPLY)

    async def play() -> list[Any]:
        async with endpoint(server, concurrency=2) as to:
            judge = Remote(concurrency=2, cacheable=True)
            judge.to = to
            client = a_broker(judge, cache=FirstKept(asks[0]) if kept else None)
            asked = (client.answer("", ask) for ask in asks)
            return await asyncio.gather(*asked, return_exceptions=True)

    found = instantly(play())
    assert any(isinstance(answer, JudgeRefused) for answer in found) is not kept
    if kept:
        assert [isinstance(answer, Unanswered) for answer in found].count(True) == 40


def test_an_endpoint_that_has_answered_is_asked_on() -> None:
    """Its rejections are about the rows, in whatever words."""
    asked, found, _ = rejected(lambda n, now: REPLY if n == 1 else refusal(400, "not this"))
    assert asked == 300
    assert not any(isinstance(answer, JudgeRefused) for answer in found)


def test_an_outage_costs_no_more_than_what_is_under_way() -> None:
    """After a hundred requests given up one is tried at a time, and the others wait for it."""

    async def play() -> tuple[int, int]:
        loop, lost = asyncio.get_running_loop(), 0
        down = (60.0, 360.0)
        server = Server(lambda number, now: refusal(500) if down[0] < now < down[1] else REPLY)
        async with endpoint(server, concurrency=8) as to:
            free = asyncio.Semaphore(32)

            async def one(number: int) -> bool:
                async with free:
                    try:
                        await to.ask(call(number))
                    except JudgeError:
                        return False
                    return True

            found = await asyncio.gather(*(one(number) for number in range(3_000)))
            lost = found.count(False)
            assert loop.time() > down[1]
            return lost, len(found)

    lost, count = instantly(play())
    assert count == 3_000
    assert MOST_GIVEN_UP <= lost <= MOST_GIVEN_UP + 32 + 30  # at work, and tried one at a time


def test_the_next_judge_of_a_dead_endpoint_tries_one_request() -> None:
    """With the patience for one attempt; where it is answered, all go on."""

    async def play() -> tuple[list[Any], float, list[Any], list[Any]]:
        loop = asyncio.get_running_loop()
        alive = False
        server = Server(lambda number, now: REPLY if alive else None)
        async with endpoint(server) as to:
            first = await put(to, 1_000)
        asked, since = server.asked, loop.time()
        async with endpoint(server) as to:
            second = await put(to, 1_000)
        took = loop.time() - since
        assert server.asked == asked + 1
        alive = True
        async with endpoint(server) as to:
            third = await put(to, 1_000)
        return first, took, second, third

    first, took, second, third = instantly(play())
    assert any(isinstance(one, JudgeRefused) for one in first)
    assert all(isinstance(one, JudgeRefused) for one in second)
    assert took <= 61  # timeout_seconds
    assert not any(isinstance(one, BaseException) for one in third)


def test_time_in_which_nothing_was_asked_is_no_silence() -> None:
    """A judge that nobody needs for an hour is not refused afterwards."""

    async def play() -> list[Any]:
        server = Server(lambda number, now: refusal(500) if number == 1 else REPLY)
        async with endpoint(server) as to:
            before = await put(to, 1)
            await asyncio.sleep(HOURS)
            return before + await put(to, 20)

    assert not any(isinstance(one, BaseException) for one in instantly(play()))


def test_many_403_in_a_row_refuse_the_key() -> None:
    """One is about one request's text; a key that lost its rights says so to all."""
    server = Server(lambda number, now: REPLY if number <= 50 else refusal(403, "no access"))
    found, _ = outcome(server, 500, concurrency=4)
    refused = [one for one in found if isinstance(one, JudgeRefused)]
    alone = [one for one in found if isinstance(one, JudgeError) and one not in refused]
    assert 19 <= len(alone) <= 23  # the last good answers came among the first of them
    assert len(refused) == 500 - 50 - len(alone)
    assert "the judge refused the key: no access" in str(refused[0])


def test_a_wait_beyond_the_runs_deadline_is_not_begun() -> None:
    """It is given up at once, and says why."""

    async def play() -> tuple[Any, float]:
        loop = asyncio.get_running_loop()
        server = Server(lambda number, now: refusal(429, retry_after="300"))
        with use_deadline(Deadline(120.0, "then", loop.time)):
            async with endpoint(server) as to:
                (found,) = await put(to, 1)
                return found, loop.time()

    found, seconds = instantly(play())
    assert "the run's deadline comes before the next attempt" in str(found)
    assert seconds < 2
