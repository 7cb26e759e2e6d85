"""What a judge is: something that answers a request, and says who it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pydantic import BaseModel

from ragmetrics.model import Ask, Vector


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's answer: text still to be read, or, from a judge of ours, a verdict at once."""

    text: str = ""
    verdict: BaseModel | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cut_off: bool = False
    """Whether it ends where its tokens ran out."""
    refused: bool = False
    """Whether the endpoint says that the model, or a filter, declined to answer."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Attempts before it that came to nothing, by kind."""


class Judge(Protocol):
    """Answers requests for verdicts.

    `reply` raises JudgeError: transient where a later attempt may succeed, JudgeRefused where no
    request can. Its `fingerprint` covers all that may change a reply besides the prompt.
    """

    name: str
    note: str
    fingerprint: str
    concurrency: int
    """Requests it may be given at once."""
    keeps: bool
    """Whether its replies cost enough to be kept in the judgement store."""

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Answer one request; `attempt` counts from 0 and differs where it is asked again."""
        ...

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """How strongly it believes in each item of its verdict; None where it cannot say."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


@runtime_checkable
class TracksRequests(Protocol):
    """A judge that has on record what it asked, until the answer is durable."""

    def settled(self, request: Ask) -> None:
        """Told when a request has its final answer, which is kept if it ever will be."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector, and its share of what the request for it and others came to."""

    vector: Vector
    requests: int = 0
    tokens: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""
    """Why what the endpoint sent for this text is no vector; empty where it is one."""


@runtime_checkable
class Metered(Protocol):
    """An embedder that is paid for."""

    async def embed_metered(self, text: str) -> Embedded:
        """The vector of one text, and what it came to; raises JudgeError like a judge."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors; the cosine of two says how close their meaning is."""

    name: str
    fingerprint: str
    concurrency: int
    keeps: bool

    async def embed(self, text: str) -> Vector:
        """The vector of one text; raises JudgeError like a judge."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


def fingerprint(*parts: object) -> str:
    """A short digest of what makes a judge who it is."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()
