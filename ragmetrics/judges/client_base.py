"""What the clients of judges and of embedders share.

Concurrent and repeated requests are de-duplicated (single flight, and an LRU cache of answers);
requests, tokens and failures are counted by metric; an error becomes the status of a row.

"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Generator, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import Field

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.errors import (
    Declined,
    JudgeError,
    JudgePending,
    JudgeRefused,
    OverBudget,
    OverDeadline,
    Unanswered,
)
from ragmetrics.judges.base import HEDGED, Embedded, Embedder, JoinsRequests, Judge, Reply
from ragmetrics.judges.reply_cache import ReplyCache
from ragmetrics.judges.reply_reading import UnreadableStreak
from ragmetrics.judges.spending import Bill, Expectation, Forecast, SpendLimiter
from ragmetrics.records import Answer, Ask, Prompt, Status, Usage
from ragmetrics.text import SizedCache

REMEMBERED = 4_096
"""Most answers in the LRU cache."""
Find = Callable[[], Coroutine[Any, Any, Answer]]
_NEVER_ANSWERED = ("cancelled", "expired")
"""Kinds of failures of batches: these requests were neither processed nor charged."""


class ClientBase:
    """Client of one judge or embedder; all clients of it in this process share `single_flight`."""

    def __init__(
        self,
        asked: Judge | Embedder,
        cache: ReplyCache | None = None,
        single_flight: SingleFlight | None = None,
    ) -> None:
        self.counters = UsageCounters()
        self.refusal: JudgeRefused | None = None
        """Why the endpoint refuses. Once this is set, no request is sent."""
        self.overdue: OverDeadline | None = None
        """Set when the run's deadline ended a request."""
        self._cache = cache if asked.cacheable else None
        # Requests that share one may wait for each other: none of them is left for the next one.
        self._joins = asked.joins if isinstance(asked, JoinsRequests) else 1
        self._slots = asyncio.Semaphore(asked.concurrency * self._joins)
        self._requests = SingleFlightScope(single_flight)
        self._flight = self._requests.flight

    @property
    def has_answered(self) -> bool:
        """Whether there was any answer."""
        return self._flight.has_answered

    async def stop(self) -> None:
        """Cancel the requests that have no answer yet."""
        await self._requests.stop()

    async def _prepare(self) -> None:
        """Check that a request may be sent. Raises JudgeRefused and StoreError."""
        self._check_refusal()
        if self._cache:
            await self._cache.prepare()

    def _check_refusal(self) -> None:
        """Raise JudgeRefused if the endpoint refuses."""
        if self.refusal:
            raise JudgeRefused(str(self.refusal))

    def _failed_answer(self, error: JudgeError, counter: UsageCounter) -> Unanswered:
        """The status of a row without an answer. Raises what ends the run."""
        if isinstance(error, JudgeRefused):
            self.refusal = error
        if isinstance(error, OverDeadline):
            self.overdue = error
        if isinstance(error, JudgeRefused | JudgePending):
            raise error
        if isinstance(error, OverBudget):
            return Unanswered(Status.OVER_BUDGET, str(error))
        if isinstance(error, Declined):
            counter.failures["refusal"] += 1
            return Unanswered(Status.REFUSED, str(error))
        counter.failures["judge_failed"] += 1
        return Unanswered(Status.JUDGE_FAILED, str(error))


class SingleFlight:
    """Pending and recent answers of one judge, shared by all its clients.

    Failures are not cached, so that a later request is sent again.
    """

    def __init__(self) -> None:
        self.pending: dict[Hashable, asyncio.Future[Answer]] = {}
        self._recent: SizedCache[Hashable, Answer] = SizedCache(REMEMBERED)
        self._streaks: dict[str, UnreadableStreak] = {}
        self.has_answered = False
        """Whether there was any answer."""

    def streak(self, prompt: Prompt[Any]) -> UnreadableStreak:
        """The unreadable replies to a prompt, of all clients."""
        return self._streaks.setdefault(prompt.digest, UnreadableStreak(prompt))

    def known(self, key: Hashable) -> Answer | None:
        """The cached answer to a key."""
        return self._recent.get(key)

    def put(self, key: Hashable, future: asyncio.Future[Answer]) -> None:
        """Register the pending answer to a key."""
        self.pending[key] = future
        future.add_done_callback(lambda done: self._settle(key, done))

    def remember(self, key: Hashable, answer: Answer) -> None:
        """Cache an answer, unless it is a failure."""
        if not isinstance(answer, Unanswered):
            self._recent.put(key, answer, 1)
            self.has_answered = True

    def is_asked(self, key: Hashable) -> bool:
        """Whether an answer is pending or cached."""
        return key in self.pending or self.known(key) is not None

    def _settle(self, key: Hashable, done: asyncio.Future[Answer]) -> None:
        if self.pending.get(key) is done:
            del self.pending[key]
        # `exception()` marks it as retrieved: the first row that awaits it ends the run.
        if not done.cancelled() and not done.exception():
            self.remember(key, done.result())


class SingleFlightScope:
    """One user of a shared SingleFlight; when it stops, it cancels its own requests only."""

    def __init__(self, single_flight: SingleFlight | None = None) -> None:
        self.flight = single_flight or SingleFlight()
        self._own: set[asyncio.Future[Answer]] = set()

    def ask(self, key: Hashable, find: Find) -> PendingAnswer:
        """Start a request now; awaiting the result gives its answer. `find` is called if the answer
        is neither pending nor cached.
        """

        def begin() -> asyncio.Future[Answer]:
            if (known := self.flight.known(key)) is not None:
                answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
                answered.set_result(known)
                return answered
            future = self.flight.pending.get(key)
            if future is None:
                future = asyncio.ensure_future(find())
                self.put(key, future)
            return future

        return PendingAnswer(begin(), begin)

    def put(self, key: Hashable, future: asyncio.Future[Answer]) -> None:
        """Register a pending answer, which is cancelled when this scope stops."""
        self.flight.put(key, future)
        self._own.add(future)
        future.add_done_callback(self._own.discard)

    async def stop(self) -> None:
        """Cancel the pending requests of this scope; others that await them send them again."""
        waiting = [future for future in self._own if not future.done()]
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class PendingAnswer:
    """Awaits an answer; sends the request again if the scope that sent it stops."""

    def __init__(
        self, future: asyncio.Future[Answer], again: Callable[[], asyncio.Future[Answer]]
    ) -> None:
        self._future, self._again = future, again

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def _wait(self) -> Answer:
        while True:
            if self._future.done() and not self._future.cancelled():
                return self._future.result()
            try:
                return await asyncio.shield(self._future)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not self._future.cancelled() or (task and task.cancelling()):
                    raise
                self._future = self._again()


class UsageCounter(Usage, frozen=False):
    """Usage that grows; equal requests of several metrics count for the first."""

    failures: Counter[str] = Field(default_factory=Counter)
    __setattr__ = object.__setattr__  # quick: a night has millions of replies

    def add(self, reply: Reply) -> int:
        """Count a reply, and the failed attempts before it; return the number of requests."""
        requests = int(not (reply.known or reply.shares_request)) + reply.more_requests
        self.requests += requests
        self.shared += reply.shares_request
        self.answered_from_store += reply.known
        self.prompt_tokens += reply.prompt_tokens
        self.cached_tokens += reply.cached_tokens
        self.completion_tokens += reply.completion_tokens
        self.reasoning_tokens += reply.reasoning_tokens
        return requests + self.fail(reply.failures)

    def add_sent(self, bill: Bill, counted: int) -> None:
        """Count the attempts that a closed bill has beyond the `counted` ones, such as those that a
        deadline cut, and the expected tokens of those that nobody will say.
        """
        requests, prompt, completion = bill.unknown
        self.requests += max(0, bill.sent - counted)
        self.prompt_tokens += round(prompt)
        self.completion_tokens += round(completion)
        self.unknown_requests += requests
        self.unknown_prompt_tokens += round(prompt)
        self.unknown_completion_tokens += round(completion)

    def fail(self, failures: Mapping[str, int]) -> int:
        """Count failed attempts and hedged requests, by kind; return the number of requests."""
        if not failures:
            return 0
        requests = sum(times for kind, times in failures.items() if kind not in _NEVER_ANSWERED)
        self.requests += requests
        self.hedged += failures.get(HEDGED, 0)
        self.failures.update({kind: n for kind, n in failures.items() if kind != HEDGED})
        return requests

    def add_embedded(self, embedded: Embedded) -> int:
        """Count a text's share of a request for vectors; return the number of requests."""
        self.requests += embedded.requests
        self.prompt_tokens += embedded.tokens
        return embedded.requests + self.fail(embedded.failures)

    def usage(self) -> Usage:
        """The counts as a record."""
        return Usage(**vars(self) | {"failures": dict(sorted(self.failures.items()))})


class UsageCounters(defaultdict[str, UsageCounter]):
    """The counters of one judge by metric."""

    def __init__(self) -> None:
        super().__init__(UsageCounter)

    def usage(self) -> Usage:
        """The sum over all metrics."""
        return sum((counter.usage() for counter in self.values()), Usage())


def _no_price(*tokens: float) -> float | None:
    return None


@dataclass
class MeteredJudge:
    """Keeps the bills of a judge's requests, and learns from its replies what to expect."""

    budget: SpendLimiter | None = None
    settings: JudgeSettings | None = None

    def __post_init__(self) -> None:
        expectations: defaultdict[tuple[str, str], Expectation] = defaultdict(Expectation)
        # Parts with one budget learn from each other, as they spend from it together.
        self._expected = self.budget.expectations if self.budget else expectations

    @cached_property
    def _usd(self) -> Callable[..., float | None]:
        # Kept, like the kind of the judge: a night has millions of requests.
        return self.settings.prices.usd if self.settings else _no_price

    @cached_property
    def _kind(self) -> JudgeKind | None:
        return self.settings.kind if self.settings else None

    def bill(self, request: Ask) -> Bill:
        """The bill of a request that is about to be sent."""
        chosen = self.settings
        model = chosen.model if chosen else ""
        kind = self._expected[(model, request.prompt.name)]
        if chosen and self._kind and not (self._kind.writes or kind.known):
            kind.completion = float(chosen.writes)  # one token, or none
        characters = len(request.prompt.system) + len(request.text)
        is_live = self._kind is not None and self._kind.live
        forecast = Forecast(kind, characters, self._usd, first_alone=is_live, model=model)
        return Bill(forecast, self.budget)

    async def reply(self, judge: Judge, request: Ask, attempt: int, bill: Bill) -> Reply:
        """The judge's reply. Raises OverBudget if the budget is too low, and JudgeError."""
        with bill.in_use():
            await bill.set_aside()
            reply = await judge.reply(request, attempt)
            prompt, completion = reply.prompt_tokens, reply.completion_tokens
            if prompt or completion or not bill.sent:
                price = self._usd(prompt, completion, reply.cached_tokens)
                bill.pay(prompt + completion, price or 0.0)
                bill.forecast.kind.learn(bill.forecast.characters, prompt, completion)
            else:
                bill.forecast.kind.known = True  # the endpoint does not say the tokens
        return reply
