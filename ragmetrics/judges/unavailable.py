"""Panel members without credentials: cached replies are used, new requests raise JudgeRefused.

The other judges of the panel continue.
"""

from __future__ import annotations

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Embedder, Judge, Reply
from ragmetrics.model import Ask, Vector


class UnavailableJudge:
    """Replaces `judge`, which lacks its key, with the same name and fingerprint."""

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
        """None."""

    async def close(self) -> None:
        """Close the replaced one."""
        await self._judge.close()


class UnavailableEmbedder:
    """Replaces `embedder`, which lacks its key, with the same name and fingerprint."""

    def __init__(self, embedder: Embedder, refusal: JudgeRefused) -> None:
        self.name, self.fingerprint = embedder.name, embedder.fingerprint
        self.concurrency, self.keeps = embedder.concurrency, embedder.keeps
        self.refusal = refusal
        self._embedder = embedder

    async def embed(self, text: str) -> Vector:
        """Raises JudgeRefused."""
        raise JudgeRefused(str(self.refusal))

    async def close(self) -> None:
        """Close the replaced one."""
        await self._embedder.close()
