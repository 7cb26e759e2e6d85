"""Budget of a run, and what its requests to judges, embedders and retrievers cost.

It is passed to requests in a context variable, so that requests of different runs can share
clients and connections.

Each attempt, also a retry, takes one request from the budget before it is sent, so the
limit on requests holds exactly. Tokens and money are known only afterwards: the expected amount is
set aside while an attempt is in flight, and replaced by the amount of the reply. A part of the
budget is reserved for embeddings, which come last, so that no judged question lacks them.

An attempt whose answer is lost, late or cancelled may be on the endpoint's bill, and so may one of
which the endpoint does not say the tokens. It stays charged as expected: by the length of its own
prompt and the usual length of a reply. Reports count it as unknown. An attempt that the endpoint
answers with an error, or that never reached it, costs nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ragmetrics.errors import OverBudget

T = TypeVar("T")
_budget_in_use: ContextVar[SpendLimiter | None] = ContextVar("budget", default=None)


@dataclass(frozen=True)
class Spend:
    """An amount of requests, tokens and US dollars."""

    requests: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0

    def __add__(self, more: Spend) -> Spend:
        """The sum."""
        return Spend(self.requests + more.requests, self.tokens + more.tokens, self.usd + more.usd)

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
    expectations: defaultdict[tuple[str, str], Expectation] = field(
        default_factory=lambda: defaultdict(Expectation), init=False
    )
    """Expected cost by model and kind, learned by all parts that share this budget."""
    _reserved: list[Reservation] = field(default_factory=list, init=False)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list, init=False)

    @property
    def limits_spend(self) -> bool:
        """Whether tokens or money are limited, which are known only after a request."""
        return math.isfinite(self.tokens) or math.isfinite(self.usd)

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

    async def reserve(self, forecast: Forecast, *, again: bool = False) -> Reservation:
        """Set aside the expected cost of a request.

        Waits for requests in flight: they may cost less than expected, and the first one of a kind
        shows what the others cost. With `again`, for a request that was sent before, it does not
        wait, because others may wait for that request. Raises OverBudget if too little is left.
        """
        while True:
            waits = not again and self._waits_for_first(forecast)
            amount = forecast.amount()
            if not waits:
                if self._has(amount):
                    break
                if again or not self._reserved:
                    left = self.tokens - self.for_embeddings.tokens
                    what = "tokens are" if left < amount.tokens else "money is"
                    raise OverBudget(f"the budget's {what} used up")
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]
        self._reserved.append(Reservation(forecast, amount))
        return self._reserved[-1]

    def charge(self, reservation: Reservation, tokens: float, usd: float) -> None:
        """Take what a request used, in place of what was set aside for it."""
        self.tokens -= tokens
        self.usd -= usd
        self.release(reservation)

    def release(self, reservation: Reservation) -> None:
        """Return what was set aside."""
        self._reserved = [one for one in self._reserved if one is not reservation]
        self._wake()

    def _waits_for_first(self, forecast: Forecast) -> bool:
        """Whether a request has to wait for the first one of its kind, or of a model. Nobody knows
        yet how long a model's replies are: a first wave could cost many times a small budget.
        """
        kind = forecast.kind
        if not (self.limits_spend and forecast.first_alone) or kind.known:
            return False
        kinds = self.expectations.items()
        known = [one.completion for (of, _), one in kinds if one.known and of == forecast.model]
        if known and kind.completion:  # it may write as much as any other kind of the model
            kind.completion = max(kind.completion, *known)
        sent = [reserved.forecast for reserved in self._reserved if reserved.forecast.first_alone]
        return any(one.kind is kind or not (known or one.kind.known) for one in sent)

    def _has(self, amount: Amount) -> bool:
        tokens = self.for_embeddings.tokens + sum(one.amount.tokens for one in self._reserved)
        usd = self.for_embeddings.usd + sum(one.amount.usd for one in self._reserved)
        return tokens + amount.tokens <= self.tokens and usd + amount.usd <= self.usd

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


@dataclass
class Expectation:
    """Expected cost of requests of one kind, learned from their replies."""

    per_character: float = 0.25
    """Tokens per character of a prompt; one quarter until the first reply."""
    completion: float = 100.0
    """Mean tokens of a reply; 100 until the first reply."""
    known: bool = field(default=False, init=False)
    """Whether there was a reply: the next one would tell no more."""
    _characters: float = field(default=0.0, init=False)
    _prompt: float = field(default=0.0, init=False)
    _completion: float = field(default=0.0, init=False)
    _replies: int = field(default=0, init=False)

    def learn(self, characters: int, prompt_tokens: int, completion_tokens: int) -> None:
        """Update with a reply."""
        self.known = True
        self._characters += characters
        self._prompt += prompt_tokens
        self._completion += completion_tokens
        self._replies += 1
        if self._characters and self._prompt:
            self.per_character = self._prompt / self._characters
        self.completion = self._completion / self._replies


class Amount(NamedTuple):
    """Tokens and US dollars of one request."""

    prompt_tokens: float
    completion_tokens: float
    usd: float

    @property
    def tokens(self) -> float:
        """Tokens of prompt and reply together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Forecast:
    """What one request is expected to cost, as far as its kind is known."""

    kind: Expectation
    characters: int = 0
    """Characters of its prompt."""
    price: Callable[[float, float], float | None] | None = None
    """US dollars of prompt and completion tokens; None: nothing is known."""
    first_alone: bool = False
    """Whether the first request of the kind goes alone, under a budget of tokens or money."""
    model: str = ""

    def amount(self) -> Amount:
        """The expected amount, by what is known now."""
        tokens = self.characters * self.kind.per_character, self.kind.completion
        return Amount(*tokens, usd=(self.price(*tokens) or 0.0) if self.price else 0.0)


@dataclass(frozen=True)
class Reservation:
    """What is set aside for one request."""

    forecast: Forecast
    amount: Amount


@contextmanager
def use(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a variable in this context, and in tasks started in it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def use_budget(budget: SpendLimiter | None) -> AbstractContextManager[None]:
    """Charge the requests made in this context, and in tasks started in it, to a budget."""
    return use(_budget_in_use, budget)


def budget_in_use() -> SpendLimiter | None:
    """The budget of the current context; None if there is none."""
    return _budget_in_use.get()


def take_attempt(*, embeds: bool = False) -> None:
    """Take one attempt from the current budget, before sending. Raises OverBudget."""
    if budget := _budget_in_use.get():
        budget.attempt(embeds=embeds)


_bill_in_use: ContextVar[Bill | None] = ContextVar("bill", default=None)


class Unknown(NamedTuple):
    """Attempts that may have been charged, with the tokens that they are expected to have used."""

    requests: int = 0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0


@dataclass
class Bill:
    """The attempts of one request: those that are set aside, sent, answered, and lost."""

    forecast: Forecast = field(default_factory=lambda: Forecast(Expectation()))
    budget: SpendLimiter | None = None
    """Set asides are taken from it. None: nothing is set aside."""
    carried: Sequence[Bill] = ()
    """Bills of other texts that the same request carries."""
    is_proven: Callable[[], bool] = bool
    """Whether the judge has answered anything, cached replies included."""
    sent: int = 0
    unknown: Unknown = field(default_factory=Unknown)
    _open: list[Reservation | None] = field(default_factory=list, init=False)
    _spare: Reservation | None = field(default=None, init=False)

    async def set_aside(self) -> None:
        """Set aside the expected cost of the next attempt. Raises OverBudget."""
        if self.budget and self._spare is None:
            self._spare = await self.budget.reserve(self.forecast, again=self.sent > 0)

    def send(self) -> None:
        """An attempt is sent."""
        self.sent += 1
        self._open.append(self._spare)
        self._spare = None

    def free(self) -> None:
        """An attempt costs nothing: what was set aside for it is there for the next one."""
        reservation = self._open.pop() if self._open else None
        if self.budget and reservation:
            if self._spare is None:
                self._spare = reservation
            else:
                self.budget.release(reservation)

    def lose(self) -> None:
        """Nobody will say what an attempt cost: it is charged as expected.

        Nothing happens after the bill is closed: all open attempts are lost by then.
        """
        if not self._open:
            return
        amounts = [bill.forecast.amount() for bill in (self, *self.carried)]
        lost = Amount(*map(sum, zip(*amounts, strict=True)))
        sent, prompt, reply = self.unknown
        prompt, reply = prompt + lost.prompt_tokens, reply + lost.completion_tokens
        self.unknown = Unknown(sent + 1, prompt, reply)
        reservation = self._open.pop()
        if self.budget and reservation:
            self.budget.charge(reservation, lost.tokens, lost.usd)

    def pay(self, tokens: float, usd: float) -> None:
        """Charge what the answer says that the request cost."""
        reservation = self._open.pop() if self._open else self._spare
        self._spare = None if reservation is self._spare else self._spare
        if self.budget and reservation:
            self.budget.charge(reservation, tokens, usd)

    def close(self) -> None:
        """The request has ended: attempts without an answer are lost."""
        while self._open:
            self.lose()
        if self.budget and self._spare:
            self.budget.release(self._spare)
            self._spare = None

    @contextmanager
    def in_use(self) -> Iterator[Bill]:
        """Put the attempts that are sent in this context on the bill, and close it at the end."""
        try:
            with use(_bill_in_use, self):
                yield self
        finally:
            self.close()


def bill_in_use() -> Bill:
    """The bill of the current context; one that nobody reads if there is none."""
    return _bill_in_use.get() or Bill()


@contextmanager
def shared_bill(bills: Sequence[Bill]) -> Iterator[None]:
    """Put the attempts of a request on the bill of the first of the texts that it carries."""
    first, *others = bills
    first.carried = others
    with use(_bill_in_use, first):
        yield
