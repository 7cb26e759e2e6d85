"""Stand-ins for those of a panel who lack their key: what the store has of them is found, and
whatever they are asked, they refuse. The others go on.
"""

from __future__ import annotations

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Embedder, Judge, Reply
from ragmetrics.model import Ask, Vector


class UnavailableJudge:
    """A judge that cannot be asked, as `judge` would have been."""

    def __init__(self, judge: Judge, refusal: JudgeRefused) -> None:
        self.name, self.note = judge.name, judge.note
        self.fingerprint, self.keeps = judge.fingerprint, judge.keeps
        self.concurrency = judge.concurrency
        self.refusal = refusal
        self._judge = judge

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Raises JudgeRefused."""
        raise JudgeRefused(str(self.refusal))

    def evidence(self, request: Ask) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Give back what it has."""
        await self._judge.close()


class UnavailableEmbedder:
    """An embedder that cannot be asked, as `embedder` would have been."""

    def __init__(self, embedder: Embedder, refusal: JudgeRefused) -> None:
        self.name, self.fingerprint = embedder.name, embedder.fingerprint
        self.concurrency, self.keeps = embedder.concurrency, embedder.keeps
        self.refusal = refusal
        self._embedder = embedder

    async def embed(self, text: str) -> Vector:
        """Raises JudgeRefused."""
        raise JudgeRefused(str(self.refusal))

    async def close(self) -> None:
        """Give back what it has."""
        await self._embedder.close()
