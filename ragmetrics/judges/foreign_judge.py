"""A judge of another package: whatever its code does, it costs only its own verdicts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import fields
from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused, RagmetricsError
from ragmetrics.judges.base import Judge, JudgeParts, Reply, fingerprint, only_of
from ragmetrics.plugins import TookTooLong, in_time
from ragmetrics.records import Ask, explain_validation_error
from ragmetrics.text import shorten

log = logging.getLogger(__name__)
Result = TypeVar("Result")


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
    """A judge of another package, each of whose calls may take so many seconds."""

    def __init__(self, judge: Judge, seconds: float) -> None:
        self.name, self.note = judge.name, judge.note
        self.fingerprint, self.cacheable = judge.fingerprint, judge.cacheable
        self.concurrency, self.only = judge.concurrency, only_of(judge)
        self._judge, self._seconds = judge, seconds

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Its reply. Raises JudgeError in place of any other error."""
        try:
            reply = await _awaited(self._judge.reply(request, attempt), self._seconds)
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
        """Its confidence in each item of the verdict; None where its code fails."""
        try:
            return self._judge.evidence(request)
        except Exception as error:
            log.warning("the evidence of the judge %s failed: %r", self.name, error)
            return None

    async def close(self) -> None:
        """Close its connections; where that fails, a warning says so."""
        try:
            await _awaited(self._judge.close(), self._seconds)
        except Exception as error:
            log.warning("the judge %s cannot be closed: %r", self.name, error)


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


async def _awaited(work: Awaitable[Result], seconds: float) -> Result:
    """The result of foreign code. Raises TookTooLong, and RuntimeError where it cancels itself.

    Code that does not let itself be cancelled is left alone.
    """
    task = asyncio.ensure_future(_without_exit(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
    if not done:
        raise TookTooLong
    if task.cancelled():
        raise RuntimeError("it cancelled its request")
    return task.result()


async def _without_exit(work: Awaitable[Result]) -> Result:
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(repr(error)) from None
