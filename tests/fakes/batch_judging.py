"""Work for a batch judge: requests, a judge that polls often, and what its server was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.batch import BatchJudge
from ragmetrics.records import Ask, Prompt
from ragmetrics.storage import Files
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer

T = TypeVar("T")

_LIMITS = ("most_requests", "most_bytes", "quiet_seconds", "settle_seconds")


class Verdict(BaseModel):
    """A grade."""

    grade: int


PROMPT = Prompt("grade", 1, Verdict, "Grade the context.")


def asks(number: int, note: str = "") -> list[Ask]:
    """Distinct requests; of every other one the context says nothing."""
    return [
        Ask(PROMPT, {"question": f"mast {n}?", "context": f"mast {n}." * (n % 2), "note": note})
        for n in range(number)
    ]


def make_judge(
    server: JudgeServer, files: Files | None, *, sdk_retries: int = 0, **changes: Any
) -> BatchJudge:
    """A judge that polls often; `changes` are of its settings or of its limits."""
    from openai import AsyncOpenAI

    limits = {name: changes.pop(name) for name in _LIMITS if name in changes}
    values = judge_at(server, name="openai-batch", poll_seconds=0.02, retries=2) | changes
    settings = JudgeSettings(**values)
    client = AsyncOpenAI(api_key="testing", base_url=settings.base_url, max_retries=sdk_retries)
    return BatchJudge(
        client, settings, files, **{"quiet_seconds": 0.05, "settle_seconds": 0.2, **limits}
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run one coroutine to its end."""
    return asyncio.run(work)


async def answer(judge: BatchJudge, requests: list[Ask], attempt: int = 0) -> list[Any]:
    """The replies in order, errors among them; the judge is closed."""
    try:
        return await asyncio.gather(
            *(judge.reply(request, attempt) for request in requests), return_exceptions=True
        )
    finally:
        await judge.close()


def grades(requests: list[Ask], replies: list[Any]) -> list[int]:
    """What the replies say; an error among them is raised."""
    for answered in replies:
        if isinstance(answered, BaseException):
            raise answered
    pairs = zip(requests, replies, strict=True)
    return [PROMPT.parse(reply.text, request.data).grade for request, reply in pairs]


def records(judge: BatchJudge, folder: Path) -> list[Path]:
    """The files of the batches on record."""
    return list((folder / "batches" / f"judge={judge.fingerprint}").glob("*.json"))


def paid_once(server: JudgeServer, number: int) -> bool:
    """Whether so many requests were answered, each once."""
    answered = server.batch_stats()["answered"]
    return len(answered) == number and set(answered.values()) == {1}
