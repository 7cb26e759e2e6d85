"""The purse: what a run may still spend on judges, as far as it runs in this process.

Whoever sends a request takes an attempt out of the purse first, its retries too, so that the limit
on requests holds exactly. Tokens and money are known afterwards: they are set aside as expected
while a request is on its way, and settled by its reply. Embeddings come last and cost next to
nothing: a part of the purse is kept for them, so that no question is asked in vain.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ragmetrics.errors import OverBudget


@dataclass(frozen=True)
class Spend:
    """An amount of each thing that is limited."""

    requests: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        """Both together."""
        return Spend(
            self.requests + other.requests, self.tokens + other.tokens, self.usd + other.usd
        )

    def less(self, other: Spend) -> Spend:
        """What is left of it, never less than nothing."""
        return Spend(
            max(0.0, self.requests - other.requests),
            max(0.0, self.tokens - other.tokens),
            max(0.0, self.usd - other.usd),
        )


@dataclass
class SpendLimiter:
    """What is left of requests, tokens and US dollars; without limits, all of it."""

    requests: float = math.inf
    tokens: float = math.inf
    usd: float = math.inf
    kept: Spend = Spend()
    """Of it, what judges leave for embeddings."""
    _aside: list[Reservation] = field(default_factory=list, init=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, init=False)

    def put_in(self, more: Spend, kept: Spend) -> None:
        """Add what may be spent, and what of it is for embeddings."""
        self.requests += more.requests
        self.tokens += more.tokens
        self.usd += more.usd
        self.kept += kept
        self._wake()

    def attempt(self, *, embeds: bool = False) -> None:
        """Take out one attempt. Raises OverBudget where there is none left."""
        if self.requests - (0 if embeds else self.kept.requests) < 1:
            raise OverBudget("the budget's requests are used up")
        self.requests -= 1

    def embedded(self, expected: Spend, tokens: float, usd: float) -> None:
        """Pay what a text cost, and keep no longer what was kept for it. It is never refused for
        its tokens: what was asked before it would have been paid in vain.
        """
        self.tokens -= tokens
        self.usd -= usd
        self.kept = self.kept.less(expected)
        self._wake()

    @asynccontextmanager
    async def set_aside(
        self, expect: Callable[[], tuple[float, float]]
    ) -> AsyncIterator[Reservation]:
        """Keep the tokens and the money that a request is expected to cost, and then pay what its
        bill says.

        Waits for others that may turn out cheaper, and then expects anew. Raises OverBudget where
        not enough is left.
        """
        while not self._has(*expect()):
            if not self._aside:
                tokens, _ = expect()
                what = "tokens are" if self.tokens - self.kept.tokens < tokens else "money is"
                raise OverBudget(f"the budget's {what} used up")
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        bill = Reservation(*expect())
        self._aside.append(bill)
        try:
            yield bill
        finally:
            self._aside = [one for one in self._aside if one is not bill]
            self.tokens -= bill.paid_tokens
            self.usd -= bill.paid_usd
            self._wake()

    def _has(self, tokens: float, usd: float) -> bool:
        tokens += self.kept.tokens + sum(bill.tokens for bill in self._aside)
        usd += self.kept.usd + sum(bill.usd for bill in self._aside)
        return tokens <= self.tokens and usd <= self.usd

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)


@dataclass
class Reservation:
    """What a request is expected to cost, and what it came to."""

    tokens: float
    usd: float
    paid_tokens: float = 0.0
    paid_usd: float = 0.0


@dataclass
class Expectation:
    """What requests of one kind cost, by those that were answered."""

    per_character: float = 0.25
    """Tokens sent; four characters make one until replies say better."""
    completion: float = 100.0
    """Tokens of a reply."""
    _characters: float = field(default=0.0, init=False)
    _prompt: float = field(default=0.0, init=False)
    _completion: float = field(default=0.0, init=False)
    _replies: int = field(default=0, init=False)

    def learn(self, characters: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Take a reply into account."""
        self._characters += characters
        self._prompt += prompt_tokens
        self._completion += completion_tokens
        self._replies += 1
        if self._characters and self._prompt:
            self.per_character = self._prompt / self._characters
        self.completion = self._completion / self._replies


_in_use: ContextVar[SpendLimiter | None] = ContextVar("purse", default=None)


@contextmanager
def use_budget(purse: SpendLimiter | None) -> Iterator[None]:
    """What is sent meanwhile, by tasks that begin meanwhile, is paid from this purse."""
    token = _in_use.set(purse)
    try:
        yield
    finally:
        _in_use.reset(token)


def attempt(*, embeds: bool = False) -> None:
    """Called before anything is sent: an attempt of the purse in use. Raises OverBudget."""
    if purse := _in_use.get():
        purse.attempt(embeds=embeds)


def budget_in_use() -> SpendLimiter | None:
    """The purse that pays for what is sent here; None: there is no budget."""
    return _in_use.get()
