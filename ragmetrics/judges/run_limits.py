"""Limits of a run on its requests to judges, embedders and retrievers: budget and deadline.

Both are passed to requests in context variables, so that requests of different runs can share
clients and connections.

Budget: each attempt, also a retry, takes one request from the budget before it is sent, so the
limit on requests holds exactly. Tokens and money are known only afterwards: the expected amount is
reserved while a request is in flight, and replaced by the amount of the reply. A part of the budget
is reserved for embeddings, which come last, so that no judged question lacks them.

Deadline: one absolute time for all parts of a run, on all machines. No request continues after it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import OverBudget, OverDeadline
from ragmetrics.judges.base import Judge, Reply
from ragmetrics.model import Ask

T = TypeVar("T")
_budget_in_use: ContextVar[SpendLimiter | None] = ContextVar("budget", default=None)
_deadline_in_use: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@dataclass(frozen=True)
class Spend:
    """An amount of requests, tokens and US dollars."""

    requests: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        """The sum."""
        return Spend(
            self.requests + other.requests, self.tokens + other.tokens, self.usd + other.usd
        )

    def less(self, other: Spend) -> Spend:
        """The difference, at least 0 of each."""
        return Spend(
            max(0.0, self.requests - other.requests),
            max(0.0, self.tokens - other.tokens),
            max(0.0, self.usd - other.usd),
        )


@dataclass
class SpendLimiter:
    """Remaining requests, tokens and US dollars; infinite without limits."""

    requests: float = math.inf
    tokens: float = math.inf
    usd: float = math.inf
    for_embeddings: Spend = Spend()
    """Part that is reserved for embeddings."""
    _reserved: list[Reservation] = field(default_factory=list, init=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, init=False)

    def add(self, more: Spend, for_embeddings: Spend) -> None:
        """Add to the budget, and to the part of it for embeddings."""
        self.requests += more.requests
        self.tokens += more.tokens
        self.usd += more.usd
        self.for_embeddings += for_embeddings
        self._wake()

    def attempt(self, *, embeds: bool = False) -> None:
        """Take one attempt from the budget. Raises OverBudget if there is none left."""
        if self.requests - (0 if embeds else self.for_embeddings.requests) < 1:
            raise OverBudget("the budget's requests are used up")
        self.requests -= 1

    def charge_embedding(self, expected: Spend, tokens: float, usd: float) -> None:
        """Charge an embedded text, and release its reservation. The charge never fails: without
        the vector, the requests before it would be wasted.
        """
        self.tokens -= tokens
        self.usd -= usd
        self.for_embeddings = self.for_embeddings.less(expected)
        self._wake()

    @asynccontextmanager
    async def reserve(
        self, expect: Callable[[], tuple[float, float]]
    ) -> AsyncIterator[Reservation]:
        """Reserve the expected tokens and money of a request, then charge what it used.

        Waits for requests in flight that may cost less than expected. Raises OverBudget if too
        little is left.
        """
        while not self._has(*expect()):
            if not self._reserved:
                tokens, _ = expect()
                what = (
                    "tokens are"
                    if self.tokens - self.for_embeddings.tokens < tokens
                    else "money is"
                )
                raise OverBudget(f"the budget's {what} used up")
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        reservation = Reservation(*expect())
        self._reserved.append(reservation)
        try:
            yield reservation
        finally:
            self._reserved = [one for one in self._reserved if one is not reservation]
            self.tokens -= reservation.paid_tokens
            self.usd -= reservation.paid_usd
            self._wake()

    def _has(self, tokens: float, usd: float) -> bool:
        tokens += self.for_embeddings.tokens + sum(
            reservation.tokens for reservation in self._reserved
        )
        usd += self.for_embeddings.usd + sum(reservation.usd for reservation in self._reserved)
        return tokens <= self.tokens and usd <= self.usd

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)


@dataclass
class Reservation:
    """Expected and actual cost of a request."""

    tokens: float
    usd: float
    paid_tokens: float = 0.0
    paid_usd: float = 0.0


@dataclass
class Expectation:
    """Expected cost of requests of one kind, learned from their replies."""

    per_character: float = 0.25
    """Tokens per character of a prompt; one quarter until the first reply."""
    completion: float = 100.0
    """Mean tokens of a reply; 100 until the first reply."""
    _characters: float = field(default=0.0, init=False)
    _prompt: float = field(default=0.0, init=False)
    _completion: float = field(default=0.0, init=False)
    _replies: int = field(default=0, init=False)

    def learn(self, characters: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Update with a reply."""
        self._characters += characters
        self._prompt += prompt_tokens
        self._completion += completion_tokens
        self._replies += 1
        if self._characters and self._prompt:
            self.per_character = self._prompt / self._characters
        self.completion = self._completion / self._replies


class MeteredJudge:
    """Reserves the expected cost of each request, and charges the cost of its reply."""

    def __init__(self, budget: SpendLimiter, settings: JudgeSettings) -> None:
        self._budget, self._settings = budget, settings
        self._expected: defaultdict[str, Expectation] = defaultdict(Expectation)

    async def reply(self, judge: Judge, request: Ask, attempt: int) -> Reply:
        """The judge's reply. Raises OverBudget if the budget is too low, and JudgeError."""
        expected = self._expected[request.prompt.name]
        characters = len(request.prompt.system) + len(request.text)

        def expect() -> tuple[float, float]:
            tokens = characters * expected.per_character, expected.completion
            return sum(tokens), self._settings.usd(*tokens) or 0.0

        async with self._budget.reserve(expect) as reservation:
            reply = await judge.reply(request, attempt)
            tokens = reply.prompt_tokens, reply.completion_tokens
            reservation.paid_tokens = sum(tokens)
            reservation.paid_usd = self._settings.usd(*tokens, cached=reply.cached_tokens) or 0.0
        expected.learn(characters, *tokens)
        return reply


@contextmanager
def _using(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def use_budget(budget: SpendLimiter | None) -> AbstractContextManager[None]:
    """Charge the requests made in this context, and in tasks started in it, to a budget."""
    return _using(_budget_in_use, budget)


def budget_in_use() -> SpendLimiter | None:
    """The budget of the current context; None if there is none."""
    return _budget_in_use.get()


def take_attempt(*, embeds: bool = False) -> None:
    """Take one attempt from the current budget, before sending. Raises OverBudget."""
    if budget := _budget_in_use.get():
        budget.attempt(embeds=embeds)


@dataclass(frozen=True)
class Deadline:
    """A time on a clock, and the same time as text."""

    at: float
    text: str
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds left; negative after the deadline."""
        return self.at - self.clock()

    def error(self) -> OverDeadline:
        """The error for a request that the deadline ends."""
        return OverDeadline(f"the run's deadline, {self.text}, has passed")


def deadline_at(until: datetime | None) -> Deadline | None:
    """The deadline at an absolute time; None if there is none."""
    if until is None:
        return None
    left = (until - datetime.now(UTC)).total_seconds()
    return Deadline(time.monotonic() + left, f"{until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


def use_deadline(deadline: Deadline | None) -> AbstractContextManager[None]:
    """Apply a deadline to the requests made in this context, and in tasks started in it."""
    return _using(_deadline_in_use, deadline)


def deadline_in_use() -> Deadline | None:
    """The deadline of the current context; None if there is none."""
    return _deadline_in_use.get()


def seconds_left() -> float:
    """Seconds until the deadline of the current context; inf if there is none."""
    deadline = _deadline_in_use.get()
    return deadline.left if deadline else math.inf


def check_deadline() -> None:
    """Raise OverDeadline if the deadline has passed."""
    deadline = _deadline_in_use.get()
    if deadline and deadline.left <= 0:
        raise deadline.error()


def before_deadline() -> AbstractAsyncContextManager[None]:
    """Run the body before the deadline. Raises OverDeadline when it passes."""
    deadline = _deadline_in_use.get()
    return _before(deadline) if deadline else nullcontext()


@asynccontextmanager
async def _before(deadline: Deadline) -> AsyncIterator[None]:
    if deadline.left <= 0:
        raise deadline.error()
    try:
        async with asyncio.timeout(deadline.left) as scope:
            yield
    except TimeoutError:
        if not scope.expired():
            raise
        raise deadline.error() from None
