"""Gathers what is asked of a judge within a moment, so that it shares one request.

the scores of a row's contexts          one request to a reranker
the questions about a row               one request to a decision model
texts of any rows                       one request for vectors
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeAlias, TypeVar

from ragmetrics.errors import JudgeError
from ragmetrics.judges.base import Reply, Tokens
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.request_parameters import FirstAlone
from ragmetrics.judges.responses import Oversized, RequestRejected
from ragmetrics.judges.spending import (
    Bill,
    SpendLimiter,
    bill_in_use,
    budget_in_use,
    shared_bill,
    use_budget,
)
from ragmetrics.records import Deadline, deadline_in_use, use_deadline

SECONDS = 0.01
"""What is asked within this time shares a request."""
JOINED = 64
"""About how many requests of a row may wait for one that they share."""

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Waiting(Generic[T, R]):
    """What one row waits for: its part of the request, the reply, and the bill."""

    part: T
    future: asyncio.Future[R]
    bill: Bill

    def answer(self, reply: R) -> None:
        """Give the reply, unless nobody waits any more."""
        if not self.future.done():
            self.future.set_result(reply)


class Turns:
    """Lets no more rows be asked at a time than `most` says, in order.

    The requests about a row then follow each other at the server, which still has their beginning.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most, self._busy = most, 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a row, which ends with the block."""
        while self._busy >= self._most():
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            for _ in range(self._most() - self._busy):
                self._wake()

    def _wake(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # one whose task was cancelled is
                place.set_result(None)
                return


_Budgeted: TypeAlias = tuple[K, SpendLimiter | None, Deadline | None]


class Gathering(Generic[K, T, R]):
    """Calls `send` with what is asked under an equal key within `seconds`, in a task with its
    budget and deadline.

    The first call is alone until it ends. An error of `send` is that of all who wait.
    """

    def __init__(
        self,
        send: Callable[[K, list[Waiting[T, R]]], Awaitable[None]],
        seconds: Callable[[SpendLimiter | None], float] = lambda _: SECONDS,
    ) -> None:
        self._send, self._seconds = send, seconds
        self._waiting: dict[Hashable, list[Waiting[T, R]]] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._first = FirstAlone()

    async def ask(self, key: K, part: T) -> R:
        """The reply to one part of a request."""
        loop = asyncio.get_running_loop()
        budget, deadline = budget_in_use(), deadline_in_use()
        place = key, id(budget), deadline  # a budget is compared by identity
        future: asyncio.Future[R] = loop.create_future()
        waiting = self._waiting.setdefault(place, [])
        waiting.append(Waiting(part, future, bill_in_use()))
        if len(waiting) == 1:
            loop.call_later(self._seconds(budget), self._start, place, (key, budget, deadline))
        return await future

    def close(self) -> None:
        """Cancel the requests, and send none that waits."""
        self._waiting.clear()
        for task in self._sending:
            task.cancel()

    def _start(self, place: Hashable, budgeted: _Budgeted[K]) -> None:
        # In a task of its own: cancelling one who waits does not cancel the others.
        key, budget, deadline = budgeted
        waiting = [one for one in self._waiting.pop(place, ()) if not one.future.done()]
        if not waiting:
            return
        with use_budget(budget), use_deadline(deadline):
            task = asyncio.create_task(self._run(key, waiting))

        def end(_: asyncio.Future[R]) -> None:
            if not task.done() and all(one.future.done() for one in waiting):
                task.cancel()  # nobody waits any more: no further request is sent

        for question in waiting:
            question.future.add_done_callback(end)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _run(self, key: K, waiting: list[Waiting[T, R]]) -> None:
        try:
            with shared_bill([one.bill for one in waiting]):
                async with self._first.passage():
                    await self._send(key, waiting)
        except Exception as error:
            fail(waiting, error)


class Divided(Generic[K, T, R, A]):
    """Asks for parts by requests of at most so many: `most`.

    A request that is rejected is sent in halves: it has too many parts, or one that is too long.
    `call` makes a request, and what says whether its rejection makes it be sent otherwise. `settle`
    gives each part its reply by the answer.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        most: int,
        call: Callable[[K, Sequence[T]], tuple[Call[A], Callable[[RequestRejected], bool]]],
        settle: Callable[[list[Waiting[T, R]], A, Mapping[str, int]], None],
    ) -> None:
        self.endpoint = endpoint
        self._most, self._call, self._settle = most, call, settle

    async def send(self, key: K, waiting: list[Waiting[T, R]]) -> None:
        """Ask for all that waits."""
        starts = range(0, len(waiting), self._most)
        parts = [waiting[start : start + self._most] for start in starts]
        await asyncio.gather(*(self._send(key, part) for part in parts))

    async def _send(self, key: K, waiting: list[Waiting[T, R]]) -> None:
        call, turn = self._call(key, [one.part for one in waiting])
        half = len(waiting) // 2
        try:
            with shared_bill([one.bill for one in waiting]):
                answer, failures = await self.endpoint.ask(call)
        except RequestRejected as error:
            if turn(error):
                await self._send(key, waiting)
            elif half:
                if isinstance(error, Oversized):
                    self._most = min(self._most, half)
                halves = waiting[:half], waiting[half:]
                await asyncio.gather(*(self._send(key, part) for part in halves))
            else:
                fail(waiting, self.endpoint.note_rejected(error))
        except Exception as error:
            fail(waiting, error)
        else:
            self._settle(waiting, answer, failures)


def forecast(
    tokens: Callable[[Sequence[Any]], Sequence[int]],
) -> Callable[[Hashable, Any], Awaitable[Reply]]:
    """Replies for a dry run: `tokens` gives those of each request that would be sent."""

    async def send(key: Hashable, waiting: list[Waiting[Any, Reply]]) -> None:
        counted = tokens([one.part for one in waiting])
        for number, one in enumerate(waiting):
            sent = number < len(counted)  # one for each request, whatever part it is of
            reply = Reply(prompt_tokens=counted[number] if sent else 0, shares_request=not sent)
            if one is waiting[-1] and (rest := counted[len(waiting) :]):
                reply = replace(
                    reply, prompt_tokens=reply.prompt_tokens + sum(rest), more_requests=len(rest)
                )
            one.future.set_result(reply)

    gathering: Gathering[Hashable, Any, Reply] = Gathering(send)
    return gathering.ask


def settle(
    waiting: Sequence[Waiting[T, Reply]],
    replies: Sequence[Reply | JudgeError],
    cost: Tokens,
    failures: Mapping[str, int],
) -> None:
    """Give each its reply or its error. The first one carries the failed attempts, the first one
    with a reply the `cost`.
    """
    payer = next((n for n, reply in enumerate(replies) if isinstance(reply, Reply)), None)
    if payer:
        waiting[0].bill.free()  # its attempt is paid by the payer
    for number, (one, reply) in enumerate(zip(waiting, replies, strict=True)):
        met = {} if number else dict(failures)
        if isinstance(reply, JudgeError):
            _fail(one, reply, met)
            continue
        shared = replace(reply, shares_request=number > 0, failures=met)
        if number == payer:
            shared = shared.with_tokens(cost)
        one.answer(shared)


def fail(waiting: Sequence[Waiting[T, R]], error: Exception) -> None:
    """Give the error to all; the first one carries its failed attempts."""
    for number, one in enumerate(waiting):
        met = error.failures if isinstance(error, JudgeError) and not number else {}
        _fail(one, error, met)


def _fail(waiting: Waiting[T, R], error: Exception, failures: Mapping[str, int]) -> None:
    raised = copy(error)  # they must not share a traceback
    if isinstance(raised, JudgeError):
        raised.failures = failures
    if not waiting.future.done():
        waiting.future.set_exception(raised)
