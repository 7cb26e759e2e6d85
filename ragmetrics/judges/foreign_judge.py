"""A judge of another package: whatever its code does, it costs only its own verdicts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused, RagmetricsError
from ragmetrics.http import LoopThread
from ragmetrics.judges.base import Judge, JudgeParts, Reply, only_of
from ragmetrics.plugins import TookTooLong, in_time
from ragmetrics.records import Ask, explain_validation_error, fingerprint
from ragmetrics.text import shorten

log = logging.getLogger(__name__)
Result = TypeVar("Result")
_TURN_SECONDS = 1.0
"""Seconds in which a loop that is not blocked comes to each of its tasks."""


def make_foreign(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    """The judge of another package, made in a thread within `deadline_seconds`.

    Raises JudgeRefused in place of any error that is not of this project.
    """
    seconds = judge.deadline_seconds
    try:
        return ForeignJudge(in_time(lambda: judge.kind.make(judge, parts), seconds), seconds)
    except RagmetricsError:
        raise
    except TookTooLong:
        raise JudgeRefused(f"the judge {judge.name} took over {seconds:g} s to be made") from None
    except Exception as error:
        raise JudgeRefused(f"the judge {judge.name} failed: {shorten(repr(error))}") from error


class ForeignJudge:
    """A judge of another package, each of whose calls may take so many seconds.

    It runs on an event loop of its own: code that blocks it holds up no other judge.
    """

    def __init__(self, judge: Judge, seconds: float) -> None:
        self.name, self.note = judge.name, judge.note
        self.fingerprint, self.cacheable = judge.fingerprint, judge.cacheable
        self.concurrency, self.only = judge.concurrency, only_of(judge)
        self._judge, self._seconds = judge, seconds
        self._thread: LoopThread | None = None
        self._stuck = ""
        """Why it is asked nothing more; empty while its loop goes on."""
        self._is_mute = False

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Its reply. Raises JudgeError in place of any other error, and JudgeRefused once its code
        has blocked its loop.
        """
        try:
            reply = await self._call(lambda: self._judge.reply(request, attempt))
        except JudgeError:
            raise
        except TookTooLong:
            raise JudgeError(
                f"the judge {self.name} gave no reply in {self._seconds:g} s"
            ) from None
        except Exception as error:
            raise JudgeError(f"the judge {self.name} failed: {shorten(repr(error))}") from error
        if not isinstance(reply, Reply):
            raise JudgeError(f"the judge {self.name} gave {type(reply).__name__} and no Reply")
        return self._checked(reply)

    def _checked(self, reply: Reply) -> Reply:
        values = {field.name: getattr(reply, field.name) for field in fields(Reply)}
        try:
            return _replies().validate_python(values)
        except ValidationError as error:
            reason = shorten(explain_validation_error(error))
            raise JudgeError(f"the judge {self.name} gave a malformed Reply: {reason}") from None

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """Its confidence in each item of the verdict; None where its code fails, and for good once
        it took too long.
        """
        if self._is_mute:
            return None
        try:
            return in_time(lambda: self._judge.evidence(request), self._seconds)
        except TookTooLong:
            self._is_mute = True
            log.warning("the judge %s gave no evidence in %g s", self.name, self._seconds)
        except Exception as error:
            log.warning("the evidence of the judge %s failed: %r", self.name, error)
        return None

    async def close(self) -> None:
        """Close its connections; where that fails, a warning says so."""
        try:
            await self._call(self._judge.close)
        except Exception as error:
            log.warning("the judge %s cannot be closed: %r", self.name, error)
        if self._thread:
            await asyncio.to_thread(self._thread.stop)

    async def _call(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """The result of its code.

        Raises TookTooLong, JudgeRefused if it blocks its loop, and RuntimeError where it cancels
        itself. Code that does not let itself be cancelled is left alone.
        """
        if self._stuck:
            raise JudgeRefused(self._stuck)
        self._thread = self._thread or LoopThread("ragmetrics-judge")
        work = asyncio.run_coroutine_threadsafe(_without_exit(call), self._thread.loop)
        result = asyncio.wrap_future(work)
        try:
            done, _ = await asyncio.wait({result}, timeout=self._seconds)
        finally:
            result.cancel()
        if not done:
            await self._check_loop(self._thread)
            raise TookTooLong
        if result.cancelled():
            raise RuntimeError("it cancelled its request")
        return result.result()

    async def _check_loop(self, thread: LoopThread) -> None:
        """Raise JudgeRefused if nothing else runs on its loop, as nothing ever may."""
        turn = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_a_turn(), thread.loop))
        done, _ = await asyncio.wait({turn}, timeout=_TURN_SECONDS)
        if not done:
            turn.cancel()
            self._stuck = f"the judge {self.name} has blocked its event loop"
            raise JudgeRefused(self._stuck)


class UnmadeJudge:
    """In place of a judge that cannot be made: nothing of it is known but its name."""

    def __init__(self, name: str) -> None:
        self.name, self.note = name, ""
        self.fingerprint, self.cacheable = fingerprint("unmade", name), False
        self.concurrency = 1

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Raises JudgeRefused."""
        raise JudgeRefused(f"the judge {self.name} cannot be made")

    def evidence(self, request: Ask) -> None:
        """None."""

    async def close(self) -> None:
        """There is nothing to close."""


@cache
def _replies() -> TypeAdapter[Reply]:
    return TypeAdapter(Reply)


async def _without_exit(call: Callable[[], Awaitable[Result]]) -> Result:
    try:
        return await call()
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(repr(error)) from None


async def _a_turn() -> None:
    """Nothing: it ends when the loop comes to it."""
