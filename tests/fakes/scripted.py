"""A judge and an embedder that do as they are told, and count what they are asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import EmbeddingClient, JudgeClient
from ragmetrics.judges.base import Reply
from ragmetrics.records import Ask, Vector
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import Panel

GOOD, BAD = '{"grade": 2}', "I would rather not."


@dataclass
class ScriptedJudge:
    """Replies as told: `answer` gets the request and the attempt; counts what it is asked."""

    answer: Callable[[Ask, int], str] = lambda request, attempt: GOOD
    concurrency: int = 4
    cacheable: bool = False
    pause: Callable[[Ask], float] = lambda request: 0
    """Seconds until the reply."""
    name: str = "scripted"
    note: str = ""
    fingerprint: str = "f00d"
    asked: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The scripted reply, after the pause."""
        self.asked[request.key] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.pause(request))
            return Reply(self.answer(request, attempt), prompt_tokens=10, completion_tokens=3)
        finally:
            self.in_flight -= 1

    def evidence(self, request: Ask) -> None:
        """Nothing: its verdict is all it says."""

    async def close(self) -> None:
        """Nothing to give back."""


@dataclass
class CountingEmbedder:
    """The vector of a text is its length and 1; counts what it is asked."""

    name: str = "counting"
    fingerprint: str = "beef"
    concurrency: int = 4
    cacheable: bool = False
    down: bool = False
    refusal: JudgeRefused | None = None
    asked: Counter[str] = field(default_factory=Counter)

    async def embed(self, text: str) -> Vector:
        """The text's vector."""
        self.asked[text] += 1
        if self.refusal:
            raise self.refusal
        if self.down:
            raise JudgeError("embedder is down", transient=True)
        return np.array([len(text), 1], dtype=np.float32)

    async def close(self) -> None:
        """Nothing to give back."""


def alone(broker: JudgeClient) -> Panel:
    """A panel of one judge."""
    return Panel([Member(broker)])


def a_broker(
    judge: ScriptedJudge, embedder: CountingEmbedder | None = None, **more: Any
) -> JudgeClient:
    """A broker for a judge; `kept_vectors` are those of its embedder."""
    vectors = EmbeddingClient(embedder or CountingEmbedder(), more.pop("kept_vectors", None))
    return JudgeClient(judge, vectors, **more)
