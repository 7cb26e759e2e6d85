"""Embeddings: hashed (no network), or any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ragmetrics.judges.base import fingerprint
from ragmetrics.judges.corpus import Corpus, words
from ragmetrics.judges.live import told
from ragmetrics.protocol import Vector

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_MODEL = "text-embedding-3-small"

_DIMENSIONS = 4_096
_BATCH = 128


class HashedEmbedder:
    """Words and character trigrams, weighted by rarity, hashed into a fixed number of places.

    A stand-in beside the embedded judge: texts are close when they share words, or parts of words.
    """

    name = "hashed"
    concurrency = 1
    keeps = False

    def __init__(self, corpus: Corpus) -> None:
        self.fingerprint = fingerprint("hashed", 2)
        self._corpus = corpus

    async def embed(self, text: str) -> Vector:
        """The vector of one text; zero for a text without words."""
        vector = np.zeros(_DIMENSIONS, dtype=np.float32)
        for feature, weight in self._features(text):
            vector[zlib.crc32(feature.encode("utf-8", "surrogatepass")) % _DIMENSIONS] += weight
        return vector

    def _features(self, text: str) -> Iterator[tuple[str, float]]:
        for word in words(text):
            weight = self._corpus.weight(word)
            yield word, weight
            padded = f"<{word}>"
            grams = [padded[i : i + 3] for i in range(len(padded) - 2)]
            for gram in grams:
                yield f"#{gram}", 0.5 * weight / len(grams)

    async def close(self) -> None:
        """Nothing to give back."""


class OpenAIEmbedder:
    """An OpenAI-compatible embeddings endpoint; texts that wait together go in one request."""

    concurrency = 256
    keeps = True

    def __init__(self, client: AsyncOpenAI, model: str) -> None:
        self.name = f"openai:{model}"
        self.fingerprint = fingerprint("openai-embedding", model, str(client.base_url))
        self._client = client
        self._model = model
        self._waiting: list[tuple[str, asyncio.Future[Vector]]] = []

    async def embed(self, text: str) -> Vector:
        """The vector of one text; raises JudgeError like a judge."""
        future: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, future))
        # Whoever waits longest sends for all: others join while the loop is busy elsewhere.
        await asyncio.sleep(0.01)
        if not future.done() and self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            await self._send(batch)
        return await future

    async def _send(self, batch: list[tuple[str, asyncio.Future[Vector]]]) -> None:
        try:
            with told(self._model):
                response = await self._client.embeddings.create(
                    model=self._model, input=[text or " " for text, _ in batch]
                )
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), item in zip(batch, response.data, strict=True):
            if not future.done():
                future.set_result(np.asarray(item.embedding, dtype=np.float32))

    async def close(self) -> None:
        """Give back connections."""
        await self._client.close()
