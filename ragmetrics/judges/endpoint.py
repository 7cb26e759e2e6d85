"""Asks an OpenAI-compatible endpoint until it answers: when, how often, and when to give up.

What passes (a lost connection, a server's error, no answer in time) is tried again a bounded number
of times; a rate limit is waited for until the request's deadline; what no request can succeed with
is JudgeRefused.

The deadline counts from when a request is planned: waits for a place, for a limit and between
attempts are part of it. A queue that moves is no reason to give up: a request that waits for its
first place behind others has all of its time again with each usable reply. Where no such reply
comes, the breaker refuses everything.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import spend_limit as purse
from ragmetrics.judges.circuit_breaker import SILENCE, Breaker
from ragmetrics.judges.deadline import seconds_left
from ragmetrics.judges.http_errors import (
    UNREADABLE,
    Oversized,
    RetryableError,
    error_from_response,
    error_of,
    incompatible,
    retry_after,
    used_up,
)
from ragmetrics.judges.quota_sharing import Heartbeat, join_quota
from ragmetrics.judges.rate_limiter import RateLimiter, shared_rate_limiter
from ragmetrics.judges.reported_usage import tokens_of
from ragmetrics.judges.response_body import TooLarge
from ragmetrics.judges.transport import Answer, Dropped, Transport, Unreachable
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from ragmetrics.config import JudgeSettings
    from ragmetrics.judges.endpoint_config import Access
    from ragmetrics.storage import Files

T = TypeVar("T")

_FIRST_PAUSE = 0.25  # seconds
_LONGEST_PAUSE = 20.0
_VAIN_TRIES = 2  # to connect, where nothing was ever reached
_FORBIDDEN = 20  # answers 403 in a row after which it is the key that is refused


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request: where it goes, its kind (requests of a kind take alike long), and its body.

    `read` takes the answer's JSON; it raises one of UNREADABLE where that is none to this request.
    """

    path: str
    kind: str
    body: bytes
    read: Callable[[dict[str, Any]], T]


@dataclass(eq=False, slots=True)
class _Patience:
    """How long a request on its way is waited for."""

    kind: str
    sent: float
    limit: float
    times: int
    """The usual patience, for one that hung before."""
    knows: bool = False
    """Whether it goes by known latencies."""
    scope: asyncio.Timeout | None = None

    def seconds(self, gate: RateLimiter) -> float:
        """Seconds from when it was sent."""
        usual = gate.timeout(self.kind)
        self.knows = usual < math.inf
        return min(usual * self.times, self.limit)


class Endpoint:
    """One endpoint, asked for one model as its gate allows.

    Its limits are shared with other processes by means of `files`, their store.
    """

    def __init__(
        self,
        access: Access,
        settings: JudgeSettings,
        model: str,
        files: Files | None = None,
        *,
        transport: Transport | None = None,
        gate: RateLimiter | None = None,
    ) -> None:
        self.address = access.address
        self._transport = transport or Transport(access, settings.max_reply_bytes)
        self._settings, self._model = settings, model
        self._key = (self.address, model, access.key)
        self._files = files
        self._gate = gate
        self._breaker: Breaker | None = None
        self._presence: Heartbeat | None = None
        self._reached = False
        """Whether there is a server at the address,"""
        self._proven = False
        """and whether it has answered well."""
        self._replied_at = 0.0  # when it last answered well, on the gate's clock
        self._forbidden = 0  # answers 403 since
        self._refusal: JudgeRefused | None = None
        """Why no request can succeed: those who wait for a place then are not sent."""
        self._patient: set[_Patience] = set()  # requests on their way
        self._completion = 0.0  # tokens of a typical answer

    async def ask(self, call: Call[T]) -> tuple[T, Counter[str]]:
        """The answer, and the attempts before it that came to nothing, by kind.

        Raises JudgeError where it is given up, JudgeRefused where no request can succeed.
        """
        gate = self._gate or self._find_gate()
        breaker = self._breaker or self._find_breaker()
        failures: Counter[str] = Counter()
        try:
            async with breaker.passage():
                return await self._ask(gate, call, failures), failures
        except JudgeError as error:
            error.failures = dict(failures)
            if isinstance(error, JudgeRefused):
                self._refusal = error
            raise

    async def _ask(self, gate: RateLimiter, call: Call[T], failures: Counter[str]) -> T:
        """Attempt it until it is answered or given up."""
        planned, deadline = gate.clock(), math.inf
        while True:
            tokens = len(call.body) / 4 + self._completion
            purse.attempt(embeds=call.kind == "embedding")
            sent = await self._enter(gate, tokens, deadline, again=bool(failures))
            if self._refusal:
                gate.lost()
                raise JudgeRefused(str(self._refusal))
            if deadline == math.inf:
                deadline = max(planned, self._replied_at) + self._settings.deadline_seconds
            if sent >= deadline:
                gate.lost()
                raise self._out_of_time("the judge had no place for a request")
            try:
                answer = await self._attempt(gate, call, sent, deadline - sent, failures)
                return self._read(gate, call, answer, tokens)
            except RetryableError as setback:
                failures[setback.kind] += 1
                pause = self._pause(gate, setback, failures)
                self._give_up(setback, failures, pause, left=deadline - gate.clock())
                await asyncio.sleep(pause)

    async def _enter(
        self, gate: RateLimiter, tokens: float, deadline: float, *, again: bool
    ) -> float:
        """Wait for a place of the gate; before the second attempt not beyond the deadline."""
        if deadline == math.inf:
            return await gate.enter(tokens, again=again)
        try:
            async with asyncio.timeout(max(deadline - gate.clock(), 0.0)) as scope:
                return await gate.enter(tokens, again=again)
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._out_of_time("the judge had no place for another attempt") from None

    async def close(self) -> None:
        """Give back connections, and its part of the limits."""
        if self._presence and self._gate:
            self._presence.leave(self._gate)
        self._presence = None
        await self._transport.close()

    def _find_gate(self) -> RateLimiter:
        settings = self._settings
        limits = (settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
        self._gate = shared_rate_limiter(self._key, *limits)
        if self._files:
            self._presence = join_quota(self._files, self._key, self._gate)
        return self._gate

    def _find_breaker(self) -> Breaker:
        patience = SILENCE * self._settings.deadline_seconds
        self._breaker = Breaker(self._key, self.address, patience, self._settings.timeout_seconds)
        return self._breaker

    async def _attempt(
        self, gate: RateLimiter, call: Call[T], sent: float, left: float, failures: Counter[str]
    ) -> Answer:
        """Send once, and tell the gate what became of it."""
        limit = min(self._settings.timeout_seconds, max(left, 1.0))
        patience = _Patience(call.kind, sent, limit, 2 ** failures["timeout"])
        try:
            async with asyncio.timeout(patience.seconds(gate)) as patience.scope:
                self._patient.add(patience)
                try:
                    answer = await self._transport.post(call.path, call.body)
                finally:
                    self._patient.discard(patience)
        except TimeoutError as error:
            gate.late(sent)
            message = f"the judge did not answer in time ({gate.clock() - sent:.3g} s)"
            raise RetryableError("timeout", message) from error
        except Unreachable as error:
            gate.lost()
            raise self._unreachable(error, failures) from error
        except Dropped as error:
            gate.lost()
            self._reached = True
            raise RetryableError(
                "dropped", f"the connection to the judge broke: {error}"
            ) from error
        except TooLarge as error:
            gate.lost()
            self._reached = True
            raise self._note_given_up(_oversized(error, failures)) from None
        except BaseException:
            gate.lost()
            raise
        self._reached = True
        if answer.status == 200:
            gate.answered(sent, call.kind)
            self._lose_patience(gate)
        elif answer.status in (429, 503):
            gate.refused(sent, retry_after(answer.headers, datetime.now(UTC)))
        else:
            gate.lost()
        if wait := used_up(answer.headers):
            gate.pause(wait)
        return answer

    def _lose_patience(self, gate: RateLimiter) -> None:
        """What was sent before latencies were known hangs no longer than what was sent after."""
        for one in [one for one in self._patient if not one.knows]:
            seconds = one.seconds(gate)
            if one.knows and one.scope:
                one.scope.reschedule(gate.loop.time() + one.sent + seconds - gate.clock())

    def _read(self, gate: RateLimiter, call: Call[T], answer: Answer, estimated: float) -> T:
        if answer.status != 200:
            raise self._problem(answer)
        try:
            payload = json.loads(answer.body)
            result = call.read(payload)
        except UNREADABLE as error:
            # A login page or a proxy says 200 too, and some servers put their errors there.
            if said := error_of(answer.body):
                told = f"the judge answered 200 with an error: {shorten(said['message'])}"
                raise RetryableError("server_error", told) from error
            told = incompatible(self.address, 200, answer.body.decode("utf-8", "replace"))
            if self._proven:
                raise RetryableError("server_error", told) from error
            raise JudgeRefused(told) from error
        self._note_reply(gate)
        if self._settings.tokens_per_minute:
            self._account(gate, payload, call, estimated)
        return result

    def _problem(self, answer: Answer) -> RetryableError | JudgeError:
        """What a status other than 200 means."""
        now = datetime.now(UTC)
        self._forbidden += answer.status == 403
        # One 403 may be about one request's text; so many in a row are about the key.
        is_of_text = self._proven and self._forbidden < _FORBIDDEN
        proven = is_of_text if answer.status == 403 else self._proven
        return error_from_response(answer, self._model, self.address, now, proven=proven)

    def _note_reply(self, gate: RateLimiter) -> None:
        """Note that a usable reply came."""
        self._proven, self._forbidden = True, 0
        self._replied_at = gate.clock()
        if self._breaker:
            self._breaker.replied()

    def _account(
        self, gate: RateLimiter, payload: Mapping[str, Any], call: Call[Any], estimated: float
    ) -> None:
        said = tokens_of(payload)
        # A token has a byte at least: a server that says more must not make others wait for it.
        prompt = min(said.prompt, len(call.body))
        completion = min(said.completion, self._settings.max_tokens)
        gate.spent(estimated, prompt + completion)
        self._completion += (completion - self._completion) / 16

    def _unreachable(
        self, error: Unreachable, failures: Counter[str]
    ) -> RetryableError | JudgeRefused:
        message = f"no connection to {self.address}: {error}"
        hope = not error.in_vain and failures["dropped"] + 1 < _VAIN_TRIES
        return (
            RetryableError("dropped", message) if self._reached or hope else JudgeRefused(message)
        )

    def _pause(self, gate: RateLimiter, setback: RetryableError, failures: Counter[str]) -> float:
        """Seconds before the next attempt; none of it is spent in a place of the gate."""
        tries = min(failures[setback.kind] - 1, 16)
        if setback.kind != "rate_limited":
            own = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
            return max(_between(0, own), setback.wait)
        if setback.wait:
            return setback.wait + _between(0, gate.latency)
        return min(gate.latency * 2.0**tries, _LONGEST_PAUSE) * _between(0.5, 1.5)

    def _give_up(
        self, setback: RetryableError, failures: Counter[str], pause: float, *, left: float
    ) -> None:
        """Raise JudgeError where there is no attempt left, or no time: of the request's own, or of
        its run. JudgeRefused where the breaker opens with it.
        """
        spoilt = failures.total() - failures["rate_limited"]
        message = str(setback)
        if pause > left:
            message += f"; given up after {self._settings.deadline_seconds:g} s"
        elif pause > seconds_left():
            message += "; given up: the run's deadline comes before the next attempt"
        elif setback.kind == "rate_limited" or spoilt <= self._settings.retries:
            return
        raise self._note_given_up(JudgeError(message, transient=True)) from setback

    def _out_of_time(self, what: str) -> JudgeError:
        seconds = self._settings.deadline_seconds
        message = f"{what} within {seconds:g} s (`deadline_seconds`)"
        return self._note_given_up(JudgeError(message, transient=True))

    def _note_given_up(self, error: JudgeError) -> JudgeError:
        """The error, after the breaker knows of it. Raises JudgeRefused where it opens."""
        if self._breaker:
            self._breaker.given_up(error)
        return error


def _oversized(error: TooLarge, failures: Counter[str]) -> Oversized:
    failures["too_large"] += 1
    return Oversized(
        f"a reply of the judge is larger than `judge: max_reply_bytes:`, {error.most:,} bytes"
    )


def _between(low: float, high: float) -> float:
    return random.uniform(low, high)  # noqa: S311 - spreads retries, keeps no secret
