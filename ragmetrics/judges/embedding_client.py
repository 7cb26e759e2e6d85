"""Client of the embedder, shared by all judges: each distinct text is embedded once."""

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
"""Expected number of texts that share a request; at most 128 do."""
_ATTEMPTS = 2
"""Attempts for a text whose vector is not usable."""


def expected_of(text: str, prices: EmbeddingSettings) -> Spend:
    """Expected cost of the vector of a text, with its share of a request."""
    tokens = -(-len(text) // 4)
    return Spend(1 / TEXTS_PER_REQUEST, tokens, prices.usd(tokens) or 0.0)


class EmbeddingClient:
    """Client of an embedder; all clients of one embedder share `single_flight`."""

    def __init__(
        self,
        embedder: Embedder,
        cache: ReplyCache | None = None,
        single_flight: SingleFlight | None = None,
        prices: EmbeddingSettings | None = None,
    ) -> None:
        self.counters = UsageCounters()
        self.refusal: JudgeRefused | None = None
        """Why the embedder refuses. Once this is set, no request is sent."""
        self.overdue: OverDeadline | None = None
        """Set when the run's deadline ended a request."""
        self._embedder, self._prices = embedder, prices or EmbeddingSettings()
        self._cache = cache if embedder.keeps else None
        self._embedding = asyncio.Semaphore(embedder.concurrency)
        self._flights = SingleFlightScope(single_flight)
        self._checks = VectorChecks(self._cache.vector_sizes() if self._cache else None)

    def begin(self, row_key: str, request: Embed, metric: str) -> Awaitable[Answer]:
        """Start embedding a text now; awaiting the result gives its vector or a failure."""
        key, text = request.key, request.input
        self.counters[metric].shared += self._flights.is_asked(key)
        return self._flights.ask(
            key, lambda: self._find(row_key + key, text, self.counters[metric])
        )

    async def _find(self, key: str, text: str, counter: UsageCounter) -> Answer:
        try:
            return await self._vector(key, text, counter)
        except JudgeError as error:
            counter.fail(error.failures)
            error.failures = {}  # texts of one request share its error: count it once
            if isinstance(error, JudgeRefused):
                self.refusal = error
                raise JudgeRefused(f"embeddings: {error}") from error
            if isinstance(error, OverDeadline):
                self.overdue = error
            if isinstance(error, OverBudget):
                return Unanswered(Status.OVER_BUDGET, str(error))
            if isinstance(error, Declined):
                counter.failures["refusal"] += 1
                return Unanswered(Status.REFUSED, str(error))
            counter.failures["judge_failed"] += 1
            return Unanswered(Status.JUDGE_FAILED, str(error))

    def _cached(self, key: str, counter: UsageCounter) -> Vector | None:
        """The cached vector, if it is usable."""
        vector = self._cache.find_vector(key) if self._cache else None
        if vector is None:
            return None
        if self._checks.problem(vector, counted=True):
            counter.failures["unreadable_in_store"] += 1
            return None
        counter.answered_from_store += 1
        return vector

    async def _vector(self, key: str, text: str, counter: UsageCounter) -> Vector | Unanswered:
        if (known := self._cached(key, counter)) is not None:
            return known
        async with self._embedding:
            if self.refusal:
                raise JudgeRefused(str(self.refusal))
            if self._cache:
                await self._cache.prepare()
            async with before_deadline():
                return await self._request(key, text, counter)

    async def _request(self, key: str, text: str, counter: UsageCounter) -> Vector | Unanswered:
        """Request the vector and cache it; or why no usable vector came."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            found = await self._embed(text, counter)
            # As it is stored: a later run scores with the same numbers.
            vector: Vector = np.asarray(found.vector, dtype=np.float32)
            problem = found.problem or self._checks.problem(vector, counted=attempt > 0)
            if not problem:
                if self._cache:
                    await self._cache.add(CachedReply(key, EMBEDDING, vector))
                return vector
            if not isinstance(self._embedder, Metered):  # computed locally: the text has no words
                return Unanswered(Status.NOT_APPLICABLE, f"embedding: {problem}")
            counter.failures["unreadable"] += 1
        return Unanswered(Status.UNREADABLE, f"embedding: {problem}")

    async def _embed(self, text: str, counter: UsageCounter) -> Embedded:
        if not isinstance(self._embedder, Metered):
            return Embedded(await self._embedder.embed(text))
        found = await self._embedder.embed_metered(text)
        if budget := budget_in_use():
            paid = self._prices.usd(found.tokens) or 0.0
            budget.charge_embedding(expected_of(text, self._prices), found.tokens, paid)
        counter.add_embedded(found)
        return found

    @property
    def has_answered(self) -> bool:
        """Whether there was any vector."""
        return self._flights.has_answered

    async def stop(self) -> None:
        """Cancel the requests that have no vector yet."""
        await self._flights.stop()
