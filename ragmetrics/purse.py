"""The purse: what a part of a run may still spend on judges.

Whoever sends a request takes an attempt out of the purse first, its retries too, so that the limit
on requests holds exactly. Tokens and money are known afterwards: they are set aside as expected
while a request is on its way, and settled by its reply.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ragmetrics.errors import OverBudget


@dataclass
class Purse:
    """What is left of requests, tokens and US dollars; without limits, all of it."""

    requests: float = math.inf
    tokens: float = math.inf
    usd: float = math.inf
    _aside: list[Bill] = field(default_factory=list, init=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, init=False)

    def attempt(self) -> None:
        """Take out one attempt. Raises OverBudget where there is none left."""
        if self.requests < 1:
            raise OverBudget("the budget's requests are used up")
        self.requests -= 1

    @asynccontextmanager
    async def set_aside(self, expect: Callable[[], tuple[float, float]]) -> AsyncIterator[Bill]:
        """Keep the tokens and the money that a request is expected to cost, and then pay what its
        bill says.

        Waits for others that may turn out cheaper, and then expects anew. Raises OverBudget where
        not enough is left.
        """
        while not self._has(*expect()):
            if not self._aside:
                tokens, _ = expect()
                what = "tokens are" if self.tokens < tokens else "money is"
                raise OverBudget(f"the budget's {what} used up")
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting
        bill = Bill(*expect())
        self._aside.append(bill)
        try:
            yield bill
        finally:
            self._aside = [one for one in self._aside if one is not bill]
            self.tokens -= bill.paid_tokens
            self.usd -= bill.paid_usd
            self._wake()

    def _has(self, tokens: float, usd: float) -> bool:
        tokens += sum(bill.tokens for bill in self._aside)
        return tokens <= self.tokens and usd + sum(bill.usd for bill in self._aside) <= self.usd

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)


@dataclass
class Bill:
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


_in_use: ContextVar[Purse | None] = ContextVar("purse", default=None)


@contextmanager
def spending(purse: Purse | None) -> Iterator[None]:
    """What is sent meanwhile, by tasks that begin meanwhile, is paid from this purse."""
    token = _in_use.set(purse)
    try:
        yield
    finally:
        _in_use.reset(token)


def attempt() -> None:
    """Called before anything is sent: an attempt of the purse in use. Raises OverBudget."""
    if purse := _in_use.get():
        purse.attempt()


def purse_in_use() -> Purse | None:
    """The purse that pays for what is sent here; None: there is no budget."""
    return _in_use.get()
