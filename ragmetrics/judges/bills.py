"""What requests cost: each attempt is charged when it is sent, and corrected by its answer.

An attempt whose answer is lost, late or cancelled may be on the endpoint's bill, and so may one of
which the endpoint does not say the tokens. It stays charged as expected: by the length of its own
prompt and the usual length of a reply. Reports count it as unknown. An attempt that the endpoint
answers with an error, or that never reached it, costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.base import Judge, Reply
from ragmetrics.judges.run_limits import Expectation, Forecast, Reservation, SpendLimiter, use
from ragmetrics.records import Ask

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
        amounts = [one.forecast.amount() for one in (self, *self.carried)]
        prompt = sum(amount.prompt_tokens for amount in amounts)
        completion = sum(amount.completion_tokens for amount in amounts)
        before = self.unknown
        self.unknown = Unknown(
            before.requests + 1,
            before.prompt_tokens + prompt,
            before.completion_tokens + completion,
        )
        reservation = self._open.pop()
        if self.budget and reservation:
            self.budget.charge(reservation, prompt + completion, sum(one.usd for one in amounts))

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


def _no_price(prompt_tokens: float, completion_tokens: float) -> float | None:
    return None


@dataclass
class MeteredJudge:
    """Keeps the bills of a judge's requests, and learns from its replies what to expect."""

    budget: SpendLimiter | None = None
    settings: JudgeSettings | None = None

    def __post_init__(self) -> None:
        own: defaultdict[Hashable, Expectation] = defaultdict(Expectation)
        # Parts with one budget learn from each other, as they spend from it together.
        self._expected = self.budget.expectations if self.budget else own

    def bill(self, request: Ask) -> Bill:
        """The bill of a request that is about to be sent."""
        chosen = self.settings
        kind = self._expected[(chosen.model if chosen else "", request.prompt.name)]
        if chosen and not chosen.kind.writes:
            kind.completion = 0.0
        forecast = Forecast(
            kind,
            len(request.prompt.system) + len(request.text),
            chosen.usd if chosen else _no_price,
            first_alone=chosen is not None and chosen.live,
        )
        return Bill(forecast, self.budget)

    async def reply(self, judge: Judge, request: Ask, attempt: int, bill: Bill) -> Reply:
        """The judge's reply. Raises OverBudget if the budget is too low, and JudgeError."""
        with bill.in_use():
            await bill.set_aside()
            reply = await judge.reply(request, attempt)
            prompt, completion = reply.prompt_tokens, reply.completion_tokens
            if prompt or completion or not bill.sent:
                price = self._price(prompt, completion, reply.cached_tokens)
                bill.pay(prompt + completion, price)
                bill.forecast.kind.learn(bill.forecast.characters, prompt, completion)
            else:
                bill.forecast.kind.learn_nothing()
        return reply

    def _price(self, prompt: int, completion: int, cached: int) -> float:
        return (self.settings.usd(prompt, completion, cached) or 0.0) if self.settings else 0.0
