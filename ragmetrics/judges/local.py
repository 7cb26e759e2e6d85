"""Local embeddings: sentence vectors computed on this machine, and a judge that uses them.

They need the extra `local`, which includes the weights of the default model.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Reply
from ragmetrics.judges.lexical_judge import BaselineJudge
from ragmetrics.judges.word_frequencies import Corpus
from ragmetrics.judges.word_overlap import VERSION as OVERLAP_VERSION, Overlap
from ragmetrics.records import Ask, Vector, fingerprint
from ragmetrics.version import install_extra

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MODEL = "all-MiniLM-L6-v2"
INSTALL = install_extra("local")

VERSION = 2

# Chosen on labelled sets: see docs/how-to/judges.md.
_MEANING = 0.4
_NEAR = 0.6

_BATCH = 64
_KEPT = 8_192
_WINDOW = 800  # characters: about 200 of the 256 word pieces that the model reads
ENDS = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])\s*|\n+")


class Encoder(Protocol):
    """A loaded model: turns texts into vectors of length one."""

    name: str
    digest: str
    """Digest of the weights and of all else that affects a vector."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector per text, in order."""


@lru_cache(maxsize=4)
def load_encoder(model: str, threads: int) -> Encoder:
    """Load a model once per process: that of the extra, or one of sentence-transformers by name.

    `threads` applies to the model of the extra; sentence-transformers has its own environment
    variables. Raises JudgeRefused if the model is not available.
    """
    if model.removeprefix("sentence-transformers/") == MODEL:
        try:
            from ragmetrics.judges.minilm import MiniLM
        except ImportError as error:
            raise JudgeRefused(f"local embeddings are an extra: {INSTALL} ({error})") from error
        return MiniLM(threads)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise JudgeRefused(
            f"the local model {model!r} needs sentence-transformers: "
            f"pip install sentence-transformers, or use {MODEL} ({error})"
        ) from error
    try:
        return _SentenceEncoder(model, SentenceTransformer(model))
    except (OSError, ValueError) as error:
        raise JudgeRefused(f"the local model {model!r} cannot be loaded: {error}") from error


class _SentenceEncoder:
    """A model of sentence-transformers, which may download it unless it is set to offline."""

    def __init__(self, name: str, model: SentenceTransformer) -> None:
        self.name = name
        self._model: Any = model
        digest = hashlib.blake2b(str(model).encode(), digest_size=8)
        for layer, weights in sorted(self._model.state_dict().items()):
            digest.update(layer.encode())
            digest.update(weights.detach().cpu().float().numpy().tobytes())
        self.digest = digest.hexdigest()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(vectors, dtype=np.float32)


class LocalEmbedder:
    """Vectors from a model on this machine; texts that wait together share a run."""

    concurrency = 2 * _BATCH
    # To recompute a vector takes about 10 ms; to cache it takes 2 KB of the store per night.
    cacheable = False

    def __init__(self, model: str = MODEL, threads: int = 1) -> None:
        self._encoder = load_encoder(model, threads)
        self.name = f"local:{self._encoder.name}"
        self.fingerprint = fingerprint("local", self.name, self._encoder.digest)
        self._waiting: list[tuple[str, asyncio.Future[Vector]]] = []
        self._running = asyncio.Lock()

    async def embed(self, text: str) -> Vector:
        """The vector of one text."""
        future: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, future))
        await asyncio.sleep(0)  # tasks that ask at the same time share the first run
        async with self._running:
            while not future.done():
                await self._run()
        return await future

    async def _run(self) -> None:
        batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
        try:
            vectors = await asyncio.to_thread(self._encoder.encode, [text for text, _ in batch])
        except asyncio.CancelledError:
            self._waiting = batch + self._waiting  # one waiter was cancelled; the others still wait
            raise
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), vector in zip(batch, vectors, strict=True):
            if not future.done():
                future.set_result(vector)

    async def close(self) -> None:
        """Nothing to close: the whole process shares the model."""


class EmbeddingLexicon:
    """Overlap of words; for relevance also similarity of embeddings."""

    def __init__(self, corpus: Corpus, encoder: Encoder) -> None:
        self._overlap = Overlap(corpus)
        self._encoder = encoder
        self._vectors: dict[str, Vector] = {}

    def coverage(self, claim: str, *passages: str) -> float:
        """Share of the claim's word weight that the passages hold, as in the lexical judge.

        Similarity is not used: a passage on the same subject is as similar whether it supports the
        claim or not. On labelled sets similarity makes the accuracy lower.
        """
        return self._overlap.coverage(claim, *passages)

    def relevance(self, question: str, *passages: str) -> float:
        """Share of the question's subject that the passages cover, by words and by similarity.

            relevance = overlap + 0.4 (max over windows w of cos(question, w) - 0.6)

        Clipped to [0, 1]. A cosine of 0.6 leaves the overlap unchanged; most passages lie below.
        So the thresholds chosen for words alone hold here too. 0 for a question or a passage
        without words. Words that repeat the question do not count as part of the passage.
        """
        passage = self._overlap.without_question(question, " ".join(passages))
        parts = windows(passage)
        if not parts or not _has_words(question):
            return 0.0
        asked, *others = self._embed([question, *parts])
        nearest = max(float(asked @ one) for one in others)
        overlap = self._overlap.relevance(question, passage)
        return min(max(overlap + _MEANING * (nearest - _NEAR), 0.0), 1.0)

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        # Only `get`, because `evidence` may run concurrently with a reply in a thread.
        known = {text: self._vectors.get(text) for text in texts}
        vectors = {text: vector for text, vector in known.items() if vector is not None}
        if lacking := [text for text in known if text not in vectors]:
            vectors |= zip(lacking, self._encoder.encode(lacking), strict=True)
            if len(self._vectors) + len(lacking) > _KEPT:
                self._vectors.clear()
            self._vectors |= vectors
        return [vectors[text] for text in texts]


def windows(text: str) -> list[str]:
    """Split a text into pieces that fit the model, at ends of sentences if possible.

    Pieces without a letter or digit are dropped.
    """
    parts = [""]
    for part in ENDS.split(text):
        for start in range(0, len(part), _WINDOW):
            piece = part[start : start + _WINDOW]
            if len(parts[-1]) + len(piece) >= _WINDOW:
                parts.append("")
            parts[-1] = f"{parts[-1]} {piece}".strip()
    return [window for window in parts if _has_words(window)]


def _has_words(text: str) -> bool:
    return any(sign.isalnum() for sign in text)


class LocalJudge(BaselineJudge):
    """Answers each request by its prompt's baseline, with similarity beside words."""

    note = "a baseline of words and embeddings: good for trends, not for absolute quality"

    def __init__(self, corpus: Corpus, model: str = MODEL) -> None:
        encoder = load_encoder(model, 1)
        super().__init__(EmbeddingLexicon(corpus, encoder))
        self.name = f"local:{encoder.name}"
        self.fingerprint = fingerprint("local-judge", VERSION, OVERLAP_VERSION, encoder.digest)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The baseline's verdict, computed in a thread."""
        return Reply(verdict=await asyncio.to_thread(self.verdict, request))
