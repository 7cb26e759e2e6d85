"""Sends requests to an OpenAI-compatible endpoint, with retries, rate limits and deadlines.

A transient failure (a lost connection, a server error, a timeout) is retried a bounded number of
times. A rate limit is waited for until the request's deadline. A failure that hits all requests
raises JudgeRefused.

The deadline counts from when a request is planned. It includes the waits for a slot, for a limit
and between attempts. A queue that moves does not end a request: while a request waits for its first
slot, each usable reply to another one renews its deadline. When no usable reply comes, the circuit
breaker refuses all requests.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.http import Answer, HttpClient, RetryableError, TooLarge, error_of
from ragmetrics.judges.adaptive_concurrency import first_in_flight
from ragmetrics.judges.attempts import Attempts
from ragmetrics.judges.base import HEDGED, Access, JudgeParts, Reply, Tokens
from ragmetrics.judges.rate_limiter import SILENCE, Breaker, RateLimiter, shared_rate_limiter
from ragmetrics.judges.request_parameters import MOST_ROOM
from ragmetrics.judges.responses import (
    UNREADABLE,
    Oversized,
    RequestRejected,
    Unserved,
    count,
    error_from_response,
    incompatible,
    tokens_of,
)
from ragmetrics.judges.spending import bill_in_use, take_attempt
from ragmetrics.records import seconds_left
from ragmetrics.text import shorten

T = TypeVar("T")

_CHANCE = random.SystemRandom()  # forked processes that shared a state would retry at once
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_FIRST_PAUSE = 0.25  # seconds
_LONGEST_PAUSE = 20.0
_FORBIDDEN = 20  # answers 403 in a row that mean that the key is refused


def json_body(value: Any) -> bytes:
    """The JSON of a body: ASCII, so that a lone surrogate of a broken log does not fail it."""
    return _ENCODER.encode(value).encode("ascii")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request: its path after the address (`/judge`), its kind (requests of a kind take about
    as long: the name of the prompt), and its body.

    `read` takes the JSON of the answer. It raises one of UNREADABLE if that does not fit.
    """

    path: str
    kind: str
    body: bytes
    read: Callable[[dict[str, Any]], T]
    unserved: Sequence[int] = ()
    """Statuses that mean that the endpoint lacks this path, and may have another one."""


class Endpoint:
    r"""One model of an endpoint, asked within the limits of this process.

    A judge that sends the text of one prompt in its own protocol has

        self._endpoint = Endpoint.of(settings, parts)

    in its `make` or its class, and this as its whole `reply`:

        messages = request.prompt.messages(request.data)
        body = {"task": "\n\n".join(message["content"] for message in messages)}
        return await self._endpoint.reply("/judge", request.prompt.name, body, read)

    `read` makes the Reply from the JSON of the answer, and raises KeyError, TypeError or ValueError
    where it cannot. Numbers of tokens that are impossible count as 0.
    """

    @classmethod
    def of(cls, settings: JudgeSettings, parts: JudgeParts) -> Endpoint:
        """The endpoint at `base_url`, with the key in `api_key_env` if there is one.

        Raises JudgeRefused without an address, and for a malformed key.
        """
        if settings.base_url is None:  # else the key would go to OpenAI
            raise JudgeRefused(f"the judge {settings.name} needs `judge: base_url:`, its server")
        return cls(parts.access(settings), settings, settings.model)

    def __init__(
        self,
        access: Access,
        settings: JudgeSettings,
        model: str,
        *,
        limiter: RateLimiter | None = None,
        client: HttpClient | None = None,
    ) -> None:
        self.address = access.address
        self._client = client or HttpClient(
            access.address,
            access.headers,
            secrets=[access.key],  # replies are stored and shown
            most_bytes=settings.max_reply_bytes,
        )
        self._settings, self._model = settings, model
        self._key = (self.address, model, access.key)
        self._limiter = limiter
        self._breaker: Breaker | None = None
        self._proven = False
        """Whether it has sent a usable reply."""
        self._replied_at = 0.0  # time of the last usable reply, on the limiter's clock
        self._forbidden = 0  # answers 403 since the last usable reply
        self._refusal: JudgeRefused | None = None
        """Why no request can succeed. Requests that wait for a slot are then not sent."""
        self._attempts = Attempts(self._client, model, settings)
        self._completion = 0.0  # tokens of a typical answer

    @property
    def in_parallel(self) -> int:
        """Number of requests that the endpoint is sent at a time, as known so far."""
        return (self._limiter or self._make_limiter()).concurrency.limit

    async def ask(self, call: Call[T]) -> tuple[T, Counter[str]]:
        """The answer, and the number of failed attempts before it, by kind.

        Raises JudgeError if the request is given up, JudgeRefused if no request can succeed.
        """
        limiter = self._limiter or self._make_limiter()
        breaker = self._breaker or self._make_breaker()
        failures: Counter[str] = Counter()
        try:
            async with breaker.passage():
                return await self._ask(limiter, call, failures), failures
        except JudgeError as error:
            error.failures = dict(failures)
            if isinstance(error, JudgeRefused):
                self._refusal = error
            raise

    async def reply(
        self, path: str, kind: str, body: Mapping[str, Any], read: Callable[[dict[str, Any]], Reply]
    ) -> Reply:
        """The reply to a request that can be sent in one way only, with its failed attempts.

        `path` comes after the address. Requests of a kind take about as long: it is the name of
        the prompt. Raises as `ask` does.
        """
        try:
            reply, failures = await self.ask(Call(path, kind, json.dumps(body).encode(), read))
        except RequestRejected as error:  # the endpoint accepts others
            raise self.note_rejected(error) from error
        tokens = Tokens(*map(count, reply.tokens))  # a server may have made them up
        return replace(reply.with_tokens(tokens), failures=failures)

    async def _ask(self, limiter: RateLimiter, call: Call[T], failures: Counter[str]) -> T:
        """Repeat attempts until the request is answered or given up."""
        planned, deadline = limiter.clock(), math.inf
        while True:
            tokens = len(call.body) / 4 + self._completion
            await bill_in_use().set_aside()
            take_attempt(embeds=call.kind == "embedding")
            sent = await self._enter(limiter, tokens, deadline, again=bool(failures))
            if self._refusal:
                limiter.lost()
                raise JudgeRefused(str(self._refusal))
            if deadline == math.inf:
                deadline = max(planned, self._replied_at) + self._settings.deadline_seconds
            if sent >= deadline:
                limiter.lost()
                raise self._out_of_time("the judge had no free slot for a request")
            try:
                answer = await self._attempts.send(limiter, call, tokens, sent, deadline, failures)
                return self._read(limiter, call, answer, tokens)
            except TooLarge as error:
                raise self._note_given_up(_oversized(error, failures)) from None
            except RetryableError as failure:
                failures[failure.kind] += 1
                pause = self._pause(limiter, failure, failures)
                self._give_up(failure, failures, pause, left=deadline - limiter.clock())
                await asyncio.sleep(pause)

    async def _enter(
        self, limiter: RateLimiter, tokens: float, deadline: float, *, again: bool
    ) -> float:
        """Wait for a slot of the limiter. From the second attempt on, only until the deadline."""
        if deadline == math.inf:
            return await limiter.enter(tokens, again=again)
        try:
            async with asyncio.timeout(max(deadline - limiter.clock(), 0.0)) as scope:
                return await limiter.enter(tokens, again=again)
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._out_of_time("the judge had no free slot for another attempt") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _make_limiter(self) -> RateLimiter:
        settings = self._settings
        limits = (settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
        self._limiter = shared_rate_limiter(self._key, *limits, start=first_in_flight(self.address))
        return self._limiter

    def _make_breaker(self) -> Breaker:
        request_timeout = SILENCE * self._settings.deadline_seconds
        self._breaker = Breaker(
            self._key, self.address, request_timeout, self._settings.timeout_seconds
        )
        return self._breaker

    def _read(self, limiter: RateLimiter, call: Call[T], answer: Answer, estimated: float) -> T:
        if answer.status != 200:
            if answer.status in call.unserved:
                text = shorten(answer.body.decode("utf-8", "replace"))
                raise Unserved(f"{answer.status} at {call.path}: {text}")
            raise self._error_from(answer)
        try:
            payload = json.loads(answer.body)
            result = call.read(payload)
        except UNREADABLE as error:
            # A login page or a proxy answers 200 too. Some servers send errors with status 200.
            if refusal := error_of(answer.body):
                bill_in_use().free()
                message = f"the judge answered 200 with an error: {shorten(refusal['message'])}"
                raise RetryableError("server_error", message) from error
            bill_in_use().lose()
            message = incompatible(self.address, 200, answer.body.decode("utf-8", "replace"))
            if self._proven:
                raise RetryableError("server_error", message) from error
            raise JudgeRefused(message) from error
        self._note_reply(limiter)
        if self._settings.tokens_per_minute:
            self._correct_tokens(limiter, payload, call, estimated)
        return result

    def _error_from(self, answer: Answer) -> RetryableError | JudgeError:
        """The error for a status other than 200."""
        now = datetime.now(UTC)
        self._forbidden += answer.status == 403
        # One 403 may concern the text of one request. Many in a row concern the key.
        is_of_text = self._proven and self._forbidden < _FORBIDDEN
        proven = is_of_text if answer.status == 403 else self._proven
        return error_from_response(answer, self._model, self.address, now, proven=proven)

    def _note_reply(self, limiter: RateLimiter) -> None:
        """Record that a usable reply came."""
        self._proven, self._forbidden = True, 0
        self._replied_at = limiter.clock()
        if self._breaker:
            self._breaker.replied()

    def _correct_tokens(
        self, limiter: RateLimiter, payload: Mapping[str, Any], call: Call[Any], estimated: float
    ) -> None:
        usage = tokens_of(payload)
        # A token has at least one byte. A larger count by the server must not delay other requests.
        prompt = min(usage.prompt, len(call.body))
        reasoning = min(usage.reasoning, MOST_ROOM)
        completion = min(usage.completion, self._settings.max_tokens + reasoning)
        limiter.correct_tokens(estimated, prompt + completion)
        self._completion += (completion - self._completion) / 16

    def _pause(
        self, limiter: RateLimiter, failure: RetryableError, failures: Counter[str]
    ) -> float:
        """Seconds before the next attempt; the request holds no slot meanwhile."""
        tries = min(failures[failure.kind] - 1, 16)
        if failure.kind != "rate_limited":
            pause = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
            return max(_between(0, pause), failure.wait)
        if failure.wait:
            return failure.wait + _between(0, limiter.latency)
        return min(limiter.latency * 2.0**tries, _LONGEST_PAUSE) * _between(0.5, 1.5)

    def _give_up(
        self, failure: RetryableError, failures: Counter[str], pause: float, *, left: float
    ) -> None:
        """Raise JudgeError if no attempt is left, or if the deadline of the request or of the run
        comes before the next one. JudgeRefused if the circuit breaker opens.
        """
        failed = failures.total() - failures["rate_limited"] - failures[HEDGED]
        message = str(failure)
        if pause > left:
            message += f"; given up after {self._settings.deadline_seconds:g} s"
        elif pause > seconds_left():
            message += "; given up: the run's deadline comes before the next attempt"
        elif failure.kind == "rate_limited" or failed <= self._settings.retries:
            return
        raise self._note_given_up(JudgeError(message, transient=True)) from failure

    def _out_of_time(self, what: str) -> JudgeError:
        seconds = self._settings.deadline_seconds
        message = f"{what} within {seconds:g} s (`deadline_seconds`)"
        return self._note_given_up(JudgeError(message, transient=True))

    def note_rejected(self, error: RequestRejected) -> JudgeError:
        """The error for a rejected request that cannot be sent in another way.

        JudgeRefused if no request can succeed: the endpoint refuses a parameter by name, or it has
        answered none, in earlier runs either, and rejected a hundred, or ten in the same words.
        """
        if self._proven or isinstance(error, Oversized):
            return error
        if not error.parameter or error.parameter.startswith("messages"):
            try:
                return error if bill_in_use().is_proven() else self._note_given_up(error)
            except JudgeRefused as refusal:
                return refusal
        message = f"{error} (nothing else can be sent in place of {shorten(error.parameter)!r})"
        self._refusal = JudgeRefused(message, failures=error.failures)
        return self._refusal

    def _note_given_up(self, error: JudgeError) -> JudgeError:
        """Report the error to the breaker and return it. Raises JudgeRefused if that opens it."""
        if self._breaker and self._limiter:
            self._limiter.pause(self._breaker.given_up(error))
        return error


def _oversized(error: TooLarge, failures: Counter[str]) -> Oversized:
    failures["too_large"] += 1
    return Oversized(
        f"a reply of the judge is larger than `judge: max_reply_bytes:`, {error.most:,} bytes"
    )


def _between(low: float, high: float) -> float:
    return _CHANCE.uniform(low, high)
