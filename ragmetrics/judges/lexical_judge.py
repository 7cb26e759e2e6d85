"""The lexical judge and its embedder: lexical baselines without network, key or model weights.

The judge answers a request by the prompt's own `baseline`, from the weighted overlap of words
alone; docs/how-to/judges.md states its accuracy. It serves to try out the product, and where no LLM
may be called.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Reply
from ragmetrics.judges.word_frequencies import Corpus, words
from ragmetrics.judges.word_overlap import VERSION, Overlap
from ragmetrics.records import Ask, Lexicon, Vector, fingerprint

_DIMENSIONS = 4_096


class BaselineJudge:
    """Answers each request by its prompt's baseline."""

    name: str
    note: str
    fingerprint: str
    concurrency = 1
    cacheable = False

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def verdict(self, request: Ask) -> BaseModel:
        """The baseline's verdict. Raises JudgeRefused for a prompt without a baseline."""
        baseline = request.prompt.baseline
        if baseline is None:
            kind = self.name.partition(":")[0]
            raise JudgeRefused(
                f"the {kind} judge cannot answer the prompt {request.prompt.name!r}: "
                "it has no baseline; choose another judge"
            )
        verdict: BaseModel = baseline(request.data, self._lexicon)
        return verdict

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The baseline's values before thresholding; None for a prompt without any."""
        evidence = request.prompt.evidence
        return evidence(request.data, self._lexicon) if evidence else None

    async def close(self) -> None:
        """Nothing to close."""


class InstantJudge(BaselineJudge):
    """A judge whose verdicts take no waiting."""

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The verdict. Raises JudgeRefused for a prompt that it cannot answer."""
        return self.reply_at_once(request)

    def reply_at_once(self, request: Ask) -> Reply:
        """The same without an event loop."""
        return Reply(verdict=self.verdict(request))


class LexicalJudge(InstantJudge):
    """The baseline by the overlap of words."""

    name = "lexical"
    note = "a word-matching baseline: good for trends, not for absolute quality"

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(Overlap(corpus))
        # By its former name: cached replies and trends go on.
        self.fingerprint = fingerprint("embedded", VERSION)


class HashedEmbedder:
    """Words and character trigrams, weighted by rarity, hashed into a fixed number of dimensions.

    The default beside the lexical judge: texts are similar if they share words or parts of words.
    """

    name = "hashed"
    concurrency = 1
    cacheable = False

    def __init__(self, corpus: Corpus) -> None:
        self.fingerprint = fingerprint("hashed", 2)
        self._weight = lru_cache(maxsize=50_000)(corpus.weight)

    async def embed(self, text: str) -> Vector:
        """The vector of one text; zeros for a text without words."""
        return self.embed_at_once(text)

    def embed_at_once(self, text: str) -> Vector:
        """The same without an event loop."""
        vector = np.zeros(_DIMENSIONS, dtype=np.float32)
        tokens = words(text)
        if tokens:
            features = [_features(word) for word in tokens]
            slots = np.concatenate([places for places, _ in features])
            lengths = [len(places) for places, _ in features]
            weights = np.repeat([self._weight(word) for word in tokens], lengths)
            shares = weights / np.concatenate([divisors for _, divisors in features])
            # One after the other: the order of a sum of floats changes its last bit.
            np.add.at(vector, slots, shares.astype(np.float32))
        return vector

    async def close(self) -> None:
        """Nothing to close."""


@lru_cache(maxsize=50_000)
def _features(word: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The dimensions of a word and of its trigrams, and what divides its weight in each."""
    padded = f"<{word}>"
    grams = [padded[i : i + 3] for i in range(len(padded) - 2)]
    features = [word, *(f"#{gram}" for gram in grams)]
    slots = [zlib.crc32(one.encode("utf-8", "surrogatepass")) % _DIMENSIONS for one in features]
    return np.array(slots), np.array([1.0, *[2.0 * len(grams)] * len(grams)])
