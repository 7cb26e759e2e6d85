"""Asks a retriever with rate limit, retries and deadline.

Temporary errors (a time-out, a server's error, a broken connection) are retried a limited number of
times. A 429 is retried until the question's deadline. A wait that the retriever requests applies to
all questions.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from ragmetrics.config import RetrieverSettings
from ragmetrics.http import RetryableError
from ragmetrics.retriever.questions import NoAnswer, Question

_FIRST_PAUSE = 0.5  # seconds
_LONGEST_PAUSE = 20.0
_SPREAD = 1.0  # seconds over which questions that waited together are sent again


class Retriever(Protocol):
    """A retriever that answers questions."""

    async def ask(
        self, question: Question, parameters: Mapping[str, JsonValue] | None = None
    ) -> Any:
        """The answer to one question, as decoded JSON. The caller enforces the time-out.

        `parameters` replace those of the settings.

        Raises RetryableError, NoAnswer or RetrieverRefused.
        """
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class Rate:
    """Spreads requests evenly over time."""

    def __init__(self, per_second: float | None) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next free place."""
        time = asyncio.get_running_loop().time
        place = max(time(), self._next)
        self._next = place + self._interval
        await asyncio.sleep(place - time())


class RetrieverClient:
    """Asks one retriever, within the limits of the settings."""

    def __init__(self, retriever: Retriever, settings: RetrieverSettings) -> None:
        self.setbacks: Counter[str] = Counter()
        """Failed attempts by kind; most were retried."""
        self._retriever, self._settings = retriever, settings
        self._rate = Rate(settings.requests_per_second)
        self._closed_until = 0.0

    async def ask(
        self, question: Question, parameters: Mapping[str, JsonValue] | None = None
    ) -> Any:
        """The answer. Raises NoAnswer after the last attempt, RetrieverRefused where no question
        can be answered.
        """
        time = asyncio.get_running_loop().time
        tries: Counter[str] = Counter()
        deadline = 0.0
        while True:
            await self._turn()
            # The deadline starts with the first attempt: waiting for a turn does not count.
            deadline = deadline or time() + self._settings.deadline_seconds
            try:
                return await self._attempt(question, parameters, deadline - time())
            except RetryableError as setback:
                tries[setback.kind] += 1
                self.setbacks[setback.kind] += 1
                pause = self._pause(setback, tries)
                self._give_up(setback, tries, late=time() + max(pause, setback.wait) > deadline)
                if setback.wait:
                    self._closed_until = max(self._closed_until, time() + setback.wait)
                await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the retriever's connections."""
        await self._retriever.close()

    async def _attempt(
        self, question: Question, parameters: Mapping[str, JsonValue] | None, left: float
    ) -> Any:
        seconds = min(self._settings.timeout_seconds, max(left, 1.0))
        try:
            async with asyncio.timeout(seconds):
                return await self._retriever.ask(question, parameters)
        except TimeoutError as error:
            message = f"{self._settings.address} did not answer within {seconds:.3g} s"
            raise RetryableError("timeout", message) from error

    async def _turn(self) -> None:
        """Wait for this attempt's turn in the rate, and while the retriever is paused."""
        time = asyncio.get_running_loop().time
        while True:
            while (left := self._closed_until - time()) > 0:
                await asyncio.sleep(left + _between(0, min(left, _SPREAD)))
            await self._rate.turn()
            if time() >= self._closed_until:  # it may have been paused meanwhile
                return

    def _pause(self, setback: RetryableError, tries: Counter[str]) -> float:
        """Seconds before the next attempt, in addition to a wait that the retriever requests."""
        if setback.wait:
            return 0.0
        longest = min(_FIRST_PAUSE * 2.0 ** min(tries.total() - 1, 16), _LONGEST_PAUSE)
        return _between(longest / 2, longest)

    def _give_up(self, setback: RetryableError, tries: Counter[str], *, late: bool) -> None:
        """Raise NoAnswer where there is no attempt left, or no time."""
        message = str(setback)
        if late:
            message += f"; given up after {self._settings.deadline_seconds:g} s"
        elif tries.total() - tries["rate_limited"] <= self._settings.retries:
            return
        raise NoAnswer(setback.kind, message) from setback


async def together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all to the end, or until one raises; then cancel the others."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _between(low: float, high: float) -> float:
    return random.uniform(low, high)  # noqa: S311 - spreads retries, keeps no secret
