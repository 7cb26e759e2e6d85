"""Embeddings: hashed (no network), or any OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from ragmetrics.judges.base import Embedded, fingerprint
from ragmetrics.judges.deadline import Deadline, deadline_in_use, use_deadline
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.http_errors import UNREADABLE, Oversized, RequestRejected
from ragmetrics.judges.reported_usage import count, mapping
from ragmetrics.judges.spend_limit import SpendLimiter, budget_in_use, use_budget
from ragmetrics.judges.word_frequencies import Corpus, words
from ragmetrics.model import Vector
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from ragmetrics.config import JudgeSettings
    from ragmetrics.judges.endpoint_config import Access
    from ragmetrics.storage import Files

_Waiting: TypeAlias = tuple[str, asyncio.Future[Embedded]]
_Run: TypeAlias = tuple[SpendLimiter | None, Deadline | None]

OPENAI_MODEL = "text-embedding-3-small"

_DIMENSIONS = 4_096
_NONE: Vector = np.empty(0, dtype=np.float32)
_PATH = "/embeddings"
_BATCH = 128
_GATHERING_SECONDS = 0.01  # texts requested within it share a request
_SPARING_SECONDS = 0.5  # the same, if the budget limits requests


class HashedEmbedder:
    """Words and character trigrams, weighted by rarity, hashed into a fixed number of dimensions.

    The default beside the embedded judge: texts are similar if they share words or parts of words.
    """

    name = "hashed"
    concurrency = 1
    keeps = False

    def __init__(self, corpus: Corpus) -> None:
        self.fingerprint = fingerprint("hashed", 2)
        self._corpus = corpus

    async def embed(self, text: str) -> Vector:
        """The vector of one text; zeros for a text without words."""
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
        """Nothing to close."""


class OpenAIEmbedder:
    """An OpenAI-compatible embeddings endpoint; texts that wait together share a request."""

    concurrency = 256
    keeps = True

    def __init__(
        self, access: Access, model: str, settings: JudgeSettings, files: Files | None = None
    ) -> None:
        self.name = f"openai:{model}"
        self.fingerprint = fingerprint("openai-embedding", model, access.address)
        self._endpoint = Endpoint(access, settings, model, files)
        self._model = model
        self._waiting: list[tuple[_Run, _Waiting]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._most_texts = _BATCH

    async def embed(self, text: str) -> Vector:
        """The vector of one text. Raises JudgeError like a judge."""
        return (await self.embed_metered(text)).vector

    async def embed_metered(self, text: str) -> Embedded:
        """The vector and its cost; the first text of a request carries the request."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Embedded] = loop.create_future()
        budget = budget_in_use()
        self._waiting.append(((budget, deadline_in_use()), (text, future)))
        if len(self._waiting) == 1:
            sparing = budget is not None and math.isfinite(budget.requests)
            loop.call_later(_SPARING_SECONDS if sparing else _GATHERING_SECONDS, self._send_all)
        return await future

    def _send_all(self) -> None:
        # In separate tasks: cancelling one waiter does not cancel the others.
        waiting, self._waiting = self._waiting, []
        # Texts of runs with different budgets or deadlines do not share a request.
        runs = {(id(budget), deadline): (budget, deadline) for (budget, deadline), _ in waiting}
        for budget, deadline in runs.values():
            texts = [one for of, one in waiting if of[0] is budget and of[1] == deadline]
            for start in range(0, len(texts), self._most_texts):
                with use_budget(budget), use_deadline(deadline):
                    task = asyncio.create_task(self._send(texts[start : start + self._most_texts]))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _send(self, batch: list[_Waiting]) -> None:
        texts = [text or " " for text, _ in batch]
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "base64"})
        try:
            embedded, failures = await self._endpoint.ask(
                Call(_PATH, "embedding", body.encode("ascii"), partial(_embedded, texts))
            )
        except RequestRejected as error:
            if len(batch) > 1:  # perhaps one text alone is too long
                half = len(batch) // 2
                if isinstance(error, Oversized):
                    self._most_texts = min(self._most_texts, half)
                await asyncio.gather(self._send(batch[:half]), self._send(batch[half:]))
            else:
                _fail(batch, error)
        except Exception as error:
            _fail(batch, error)
        else:
            embedded[0] = replace(embedded[0], requests=1, failures=dict(failures))
            for (_, future), one in zip(batch, embedded, strict=True):
                if not future.done():
                    future.set_result(one)

    async def close(self) -> None:
        """Close the connections."""
        for task in self._sending:
            task.cancel()
        await self._endpoint.close()


def _fail(batch: list[_Waiting], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)


def _embedded(texts: Sequence[str], answer: dict[str, Any]) -> list[Embedded]:
    """A vector for each text, or why there is none. Raises one of UNREADABLE if the vectors cannot
    be matched to the texts.
    """
    items = _in_order([mapping(item) for item in answer["data"]])
    if len(items) != len(texts):
        raise ValueError(f"{len(items)} vectors for {len(texts)} texts")
    tokens = count(mapping(answer.get("usage")).get("prompt_tokens"))
    shares = _shares(tokens, [len(text) for text in texts])
    return [_item(one, share) for one, share in zip(items, shares, strict=True)]


def _in_order(items: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The items by index; in their own order if the server sends no distinct indexes."""
    places = [item.get("index") for item in items]
    if all(place == places[0] for place in places):
        return items
    by_place = {place: item for place, item in zip(places, items, strict=True) if _whole(place)}
    if sorted(by_place) != list(range(len(items))):
        raise ValueError("the indexes of the vectors do not match the texts")
    return [by_place[place] for place in range(len(items))]


def _whole(place: Any) -> TypeGuard[int]:
    return isinstance(place, int) and not isinstance(place, bool)


def _item(item: Mapping[str, Any], tokens: int) -> Embedded:
    try:
        return Embedded(_vector(item["embedding"]), tokens=tokens)
    except UNREADABLE as error:
        return Embedded(_NONE, tokens=tokens, problem=f"it is not a vector: {shorten(error)}")


def _shares(tokens: int, lengths: Sequence[int]) -> list[int]:
    """Split tokens by the length of each text, in whole numbers with the same sum."""
    ends = [tokens * end // (sum(lengths) or 1) for end in accumulate(lengths)]
    return [end - start for start, end in pairwise([0, *ends])]


def _vector(said: Any) -> Vector:
    """A vector as numbers or as base64, which is requested but not supported everywhere."""
    if isinstance(said, str):
        return np.frombuffer(base64.b64decode(said), dtype="<f4")
    with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite, which is rejected
        vector: Vector = np.asarray(said, dtype=np.float32)
    return vector
