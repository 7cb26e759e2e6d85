"""Embeddings: the client of an embedder, and an embedder at any OpenAI-compatible endpoint.

The client requests each distinct text once, checks each vector and caches it. A valid vector is
one-dimensional and finite, has a length above 0, and the size of the model's other vectors.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ragmetrics.config import EmbeddingSettings, JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused, Unanswered
from ragmetrics.judges.base import Access, Embedded, Embedder, EmbedsAtOnce, Metered
from ragmetrics.judges.client_base import ClientBase, PendingAnswer, SingleFlight, UsageCounter
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.gathering import SECONDS, Divided, Gathering, Waiting
from ragmetrics.judges.reply_cache import EMBEDDING, ReplyCache
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.judges.responses import NO_VECTOR, RequestRejected, read_vectors
from ragmetrics.judges.spending import (
    Bill,
    Expectation,
    Forecast,
    Spend,
    SpendLimiter,
    budget_in_use,
)
from ragmetrics.records import (
    Answer,
    Embed,
    Status,
    Vector,
    before_deadline,
    check_deadline,
    fingerprint,
)

_EMBEDDED = Expectation(completion=0.0)
"""Nobody learns from vectors: a token is four characters."""
_PATH = "/embeddings"
_BATCH = 128
_SPARING_SECONDS = 0.5  # for which texts are gathered if the budget limits requests
_ATTEMPTS = 2
"""Attempts for a text whose vector is not usable."""


class EmbeddingClient(ClientBase):
    """Client of the embedder, shared by all judges: each distinct text is embedded once."""

    prompt = EMBEDDING
    """The name under which its vectors are cached."""
    texts_per_request = 16
    """Expected number of texts that share a request; at most 128 do."""

    def __init__(
        self,
        embedder: Embedder,
        cache: ReplyCache | None = None,
        single_flight: SingleFlight | None = None,
        prices: EmbeddingSettings | None = None,
    ) -> None:
        super().__init__(embedder, cache, single_flight)
        self._embedder, self._prices = embedder, prices or EmbeddingSettings()
        self._at_once = embedder if isinstance(embedder, EmbedsAtOnce) else None
        self._checks = VectorChecks(self._cache.vector_sizes() if self._cache else None)

    @classmethod
    def expected_of(cls, text: str, prices: EmbeddingSettings) -> Spend:
        """Expected cost of the vector of a text, with its share of a request."""
        tokens = -(-len(text) // 4)
        return Spend(1 / cls.texts_per_request, tokens, prices.usd(tokens) or 0.0)

    def begin(self, row_key: str, request: Embed, metric: str) -> Answer | PendingAnswer:
        """The vector of a text, or a failure, if it takes no waiting; else it is requested now."""
        key, text, counter = request.key, request.input, self.counters[metric]
        counter.shared += self._flight.is_asked(key)
        if (known := self._flight.known(key)) is not None:
            return known
        if self._at_once:
            answer = self._compute(self._at_once, text, counter)
            self._flight.remember(key, answer)
            return answer
        return self._requests.ask(key, lambda: self._find(row_key + key, text, counter))

    def _compute(self, embedder: EmbedsAtOnce, text: str, counter: UsageCounter) -> Answer:
        try:
            self._check_refusal()
            check_deadline()
        except JudgeError as error:
            return self._failed_answer(error, counter)
        vector = embedder.embed_at_once(text)
        problem = self._checks.problem(vector)
        return _no_direction(problem) if problem else vector

    async def _find(self, key: str, text: str, counter: UsageCounter) -> Answer:
        try:
            return await self._vector(key, text, counter)
        except JudgeError as error:
            counter.fail(error.failures)
            error.failures = {}  # texts of one request share its error: count it once
            if isinstance(error, JudgeRefused):
                self.refusal = error
                raise JudgeRefused(f"embeddings: {error}") from error
            return self._failed_answer(error, counter)

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
        async with self._slots:
            await self._prepare()
            async with before_deadline():
                return await self._request(key, text, counter)

    async def _request(self, key: str, text: str, counter: UsageCounter) -> Vector | Unanswered:
        """Request the vector and cache it; or why no usable vector came."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            embedded = await self._embed(text, counter)
            # As it is stored: a later run scores with the same numbers.
            vector: Vector = np.asarray(embedded.vector, dtype=np.float32)
            problem = embedded.problem or self._checks.problem(vector, counted=attempt > 0)
            if not problem:
                if self._cache:
                    await self._cache.add(CachedReply(key, EMBEDDING, vector))
                return vector
            if not isinstance(self._embedder, Metered):  # computed locally: the text has no words
                return _no_direction(problem)
            counter.failures["unreadable"] += 1
        return Unanswered(Status.UNREADABLE, f"embedding: {problem}")

    async def _embed(self, text: str, counter: UsageCounter) -> Embedded:
        if not isinstance(self._embedder, Metered):
            return Embedded(await self._embedder.embed(text))
        bill, counted = Bill(Forecast(_EMBEDDED, len(text))), 0
        bill.is_proven = lambda: self.has_answered
        embedded = Embedded(NO_VECTOR)
        try:
            with bill.in_use():
                embedded = await self._embedder.embed_metered(text)
                if embedded.tokens or not bill.sent:
                    bill.pay(embedded.tokens, 0)
            counted = counter.add_embedded(embedded)
        except JudgeError as error:
            counted = counter.fail(error.failures)
            error.failures = {}
            raise
        finally:
            counter.add_sent(bill, counted)
            self._charge(text, embedded.tokens + bill.unknown.prompt_tokens, vector=embedded.vector)
        return embedded

    def _charge(self, text: str, tokens: float, *, vector: Vector) -> None:
        if budget := budget_in_use():
            expected = self.expected_of(text, self._prices) if vector.size else Spend()
            budget.charge_embedding(expected, tokens, self._prices.usd(tokens) or 0.0)


def _no_direction(problem: str) -> Unanswered:
    """The answer for a text without words, for which no vector can be computed."""
    return Unanswered(Status.NOT_APPLICABLE, f"embedding: {problem}")


class VectorChecks:
    """Checks of one embedder's vectors; `known` has the number of cached vectors by size.

    The expected size is the most frequent one so far.
    """

    def __init__(self, known: Counter[int] | None = None) -> None:
        self._sizes = Counter(known or {})

    def problem(self, vector: Vector, *, counted: bool = False) -> str:
        """Why a vector is invalid; empty if it is valid.

        `counted`: its size is counted already, as for a cached vector.
        """
        if vector.ndim != 1:
            return f"it has {vector.ndim} dimensions, and a vector has one"
        if not vector.size:
            return "it is empty"
        if not np.isfinite(vector).all():
            return "it holds NaN or infinity"
        if not 0 < np.linalg.norm(vector) < np.inf:
            return "it has no direction: its length is 0 or infinite"
        if not counted:
            self._sizes[vector.size] += 1
        (usual, times), *_ = self._sizes.most_common(1)
        if vector.size != usual and self._sizes[vector.size] < times:
            return f"it has {vector.size:,} numbers, and the model's vectors have {usual:,}"
        return ""


class OpenAIEmbedder:
    """An OpenAI-compatible embeddings endpoint; texts that wait together share a request."""

    concurrency = 256
    cacheable = True

    def __init__(self, access: Access, model: str, settings: JudgeSettings) -> None:
        self.name = f"openai:{model}"
        self.fingerprint = fingerprint("openai-embedding", model, access.address)
        self._endpoint = Endpoint(access, settings, model)
        self._model = model
        asked = Divided(self._endpoint, _BATCH, self._call, self._settle)
        self._gathering: Gathering[str, str, Embedded] = Gathering(asked.send, _gathering_seconds)

    async def embed(self, text: str) -> Vector:
        """The vector of one text. Raises JudgeError like a judge."""
        return (await self.embed_metered(text)).vector

    async def embed_metered(self, text: str) -> Embedded:
        """The vector and its cost; the first text of a request carries the request."""
        return await self._gathering.ask("", text)

    def _call(
        self, _: str, texts: Sequence[str]
    ) -> tuple[Call[list[Embedded]], Callable[[RequestRejected], bool]]:
        sent = [text or " " for text in texts]
        body = json.dumps({"model": self._model, "input": sent, "encoding_format": "base64"})
        read = partial(read_vectors, sent)
        return Call(_PATH, "embedding", body.encode("ascii"), read), lambda error: False

    def _settle(
        self,
        waiting: list[Waiting[str, Embedded]],
        embedded: list[Embedded],
        failures: Mapping[str, int],
    ) -> None:
        embedded[0] = replace(embedded[0], requests=1, failures=dict(failures))
        for text, answer in zip(waiting, embedded, strict=True):
            text.answer(answer)

    async def close(self) -> None:
        """Close the connections."""
        self._gathering.close()
        await self._endpoint.close()


def _gathering_seconds(budget: SpendLimiter | None) -> float:
    return _SPARING_SECONDS if budget and math.isfinite(budget.requests) else SECONDS
