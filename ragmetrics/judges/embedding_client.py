"""The embedder at work, shared by all judges: each distinct text is embedded once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import numpy as np

from ragmetrics.config import EmbeddingSettings
from ragmetrics.errors import (
    Declined,
    JudgeError,
    JudgeRefused,
    OverBudget,
    OverDeadline,
    Unanswered,
)
from ragmetrics.judges.base import Embedded, Embedder, Metered
from ragmetrics.judges.cache.judgements import EMBEDDING, CachedReply, ReplyCache
from ragmetrics.judges.deadline import before_deadline
from ragmetrics.judges.single_flight import SingleFlight, SingleFlightScope
from ragmetrics.judges.spend_limit import Spend, budget_in_use
from ragmetrics.judges.usage_counter import UsageCounter, UsageCounters
from ragmetrics.judges.vector_checks import VectorChecks
from ragmetrics.model import Answer, Embed, Status, Vector

TEXTS_PER_REQUEST = 16
"""Of those that are asked for at about the same time; 128 at most."""
_ATTEMPTS = 2
"""Times that a text is sent whose vector is of no use."""


def expected_of(text: str, prices: EmbeddingSettings) -> Spend:
    """What the vector of a text is expected to cost, of a request its share."""
    tokens = -(-len(text) // 4)
    return Spend(1 / TEXTS_PER_REQUEST, tokens, prices.usd(tokens) or 0.0)


class EmbeddingClient:
    """Stands between metrics and an embedder; `once` is shared by all who use that embedder."""

    def __init__(
        self,
        embedder: Embedder,
        kept: ReplyCache | None = None,
        once: SingleFlight | None = None,
        prices: EmbeddingSettings | None = None,
    ) -> None:
        self.tallies = UsageCounters()
        self.refusal: JudgeRefused | None = None
        """Why nothing can be embedded: after it, nothing more is asked for."""
        self.overdue: OverDeadline | None = None
        """Set where the run's deadline ended a request."""
        self._embedder, self._prices = embedder, prices or EmbeddingSettings()
        self._kept = kept if embedder.keeps else None
        self._embedding = asyncio.Semaphore(embedder.concurrency)
        self._asker = SingleFlightScope(once)
        self._checks = VectorChecks(self._kept.vector_sizes() if self._kept else None)

    def begin(self, row_key: str, request: Embed, metric: str) -> Awaitable[Answer]:
        """Put a text on its way at once; what is returned waits for its vector, or says why there
        is none.
        """
        key, text = request.key, request.input
        self.tallies[metric].shared += self._asker.is_asked(key)
        return self._asker.ask(key, lambda: self._find(row_key + key, text, self.tallies[metric]))

    async def _find(self, key: str, text: str, tally: UsageCounter) -> Answer:
        try:
            return await self._vector(key, text, tally)
        except JudgeError as error:
            tally.fail(error.failures)
            error.failures = {}  # texts that went in one request share its error: counted once
            if isinstance(error, JudgeRefused):
                self.refusal = error
                raise JudgeRefused(f"embeddings: {error}") from error
            if isinstance(error, OverDeadline):
                self.overdue = error
            if isinstance(error, OverBudget):
                return Unanswered(Status.OVER_BUDGET, str(error))
            if isinstance(error, Declined):
                tally.failures["refusal"] += 1
                return Unanswered(Status.REFUSED, str(error))
            tally.failures["judge_failed"] += 1
            return Unanswered(Status.JUDGE_FAILED, str(error))

    def _known(self, key: str, tally: UsageCounter) -> Vector | None:
        """The vector that the store has; one that is of no use is asked for again."""
        vector = self._kept.find_vector(key) if self._kept else None
        if vector is None:
            return None
        if self._checks.problem(vector, counted=True):
            tally.failures["unreadable_in_store"] += 1
            return None
        tally.answered_from_store += 1
        return vector

    async def _vector(self, key: str, text: str, tally: UsageCounter) -> Vector | Unanswered:
        if (known := self._known(key, tally)) is not None:
            return known
        async with self._embedding:
            if self.refusal:
                raise JudgeRefused(str(self.refusal))
            if self._kept:
                await self._kept.prepare()
            async with before_deadline():
                return await self._asked(key, text, tally)

    async def _asked(self, key: str, text: str, tally: UsageCounter) -> Vector | Unanswered:
        """The embedder's vector, which is kept, or why it sends none that can be used."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            found = await self._embed(text, tally)
            # As it is kept: a later run scores by the same numbers.
            vector: Vector = np.asarray(found.vector, dtype=np.float32)
            problem = found.problem or self._checks.problem(vector, counted=attempt > 0)
            if not problem:
                if self._kept:
                    await self._kept.keep(CachedReply(key, EMBEDDING, vector))
                return vector
            if not isinstance(self._embedder, Metered):  # computed here: the text has no words
                return Unanswered(Status.NOT_APPLICABLE, f"embedding: {problem}")
            tally.failures["unreadable"] += 1
        return Unanswered(Status.UNREADABLE, f"embedding: {problem}")

    async def _embed(self, text: str, tally: UsageCounter) -> Embedded:
        if not isinstance(self._embedder, Metered):
            return Embedded(await self._embedder.embed(text))
        found = await self._embedder.embed_metered(text)
        if purse := budget_in_use():
            paid = self._prices.usd(found.tokens) or 0.0
            purse.embedded(expected_of(text, self._prices), found.tokens, paid)
        tally.add_embedded(found)
        return found

    @property
    def has_answered(self) -> bool:
        """Whether any vector came."""
        return self._asker.has_answered

    async def stop(self) -> None:
        """Give up what is still waiting for a vector."""
        await self._asker.stop()
