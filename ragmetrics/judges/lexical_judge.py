"""The embedded judge and its embedder: lexical baselines without network, key or model weights.

The judge answers a request by the prompt's own `baseline`, from the weighted overlap of words
alone; docs/judges.md states its accuracy. It serves to try out the product, and where no LLM may be
called.

The overlap is that of the words of a claim or a question with a passage, in any language. A word
that is not in the passage may be there in another form: inflected, compounded, or with an article
or particle attached. Its match is the share of its letter 4-grams that the passage has, squared, so
that a few chance matches count for little. This replaces a stemmer for any script.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Reply, fingerprint
from ragmetrics.judges.word_frequencies import Corpus, is_unspaced, words
from ragmetrics.model import Ask, Lexicon, Vector

_START = "\0"
_KEPT = 64
_SENTENCE = 5
"""Words from which a query counts as a sentence. A shorter query, such as `Opening hours`, may be
the beginning of any passage; it is removed only from a passage that has no other words."""
VERSION = 3
_DIMENSIONS = 4_096


class EmbeddedJudge:
    """Answers each request by its prompt's baseline."""

    name = "embedded"
    note = "a lexical baseline, not an LLM: trust its changes more than its values"
    concurrency = 1
    cacheable = False

    def __init__(self, corpus: Corpus) -> None:
        self.fingerprint = fingerprint("embedded", VERSION)
        self._lexicon: Lexicon = Overlap(corpus)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The baseline's verdict. Raises JudgeRefused for a prompt without a baseline."""
        return self._answer(request)

    def _answer(self, request: Ask) -> Reply:
        baseline = request.prompt.baseline
        if baseline is None:
            kind = self.name.partition(":")[0]
            raise JudgeRefused(
                f"the {kind} judge cannot answer the prompt {request.prompt.name!r}: "
                "it has no baseline; choose another judge"
            )
        return Reply(verdict=baseline(request.data, self._lexicon))

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The baseline's values before thresholding; None for a prompt without any."""
        evidence = request.prompt.evidence
        return evidence(request.data, self._lexicon) if evidence else None

    async def close(self) -> None:
        """Nothing to close."""


class HashedEmbedder:
    """Words and character trigrams, weighted by rarity, hashed into a fixed number of dimensions.

    The default beside the embedded judge: texts are similar if they share words or parts of words.
    """

    name = "hashed"
    concurrency = 1
    cacheable = False

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


class Tuning(NamedTuple):
    """Constants, chosen on labelled sets: see docs/judges.md."""

    part: int = 4
    """Length of a letter n-gram."""
    power: int = 2
    """Exponent of the share of matching n-grams."""
    doubt: float = 2.0
    """Smoothing of relevance, in weights of an unseen word."""


TUNING = Tuning()


class Overlap:
    """Lexicon of the embedded judge; weights are the rarity of words in a corpus."""

    def __init__(self, corpus: Corpus, tuning: Tuning = TUNING) -> None:
        self._tuning = tuning
        self._said = _weighing(corpus.weight)
        self._asked = _weighing(corpus.subject_weight)
        self._unseen = corpus.subject_weight(None)
        self._typical_length = corpus.contexts.typical_length
        self._read = lru_cache(maxsize=_KEPT)(partial(read, part=tuning.part))

    def coverage(self, claim: str, passage: str) -> float:
        """Share of the claim's word weight that the passage holds.

            coverage = sum of w(t) match(t) / sum of w(t)   for the words t of the claim

        Range [0, 1]; 0 for a claim without words.
        """
        weights = self._said(claim)
        return self._match(weights, self._read(passage)) / (sum(weights.values()) or 1.0)

    def relevance(self, question: str, passage: str) -> float:
        """Share of the question's subject that the passage holds, allowing for chance.

            relevance = sum of w(t) match(t) / (sum of w(t) + u (1 + l))

        u is the weight of an unseen word, or half that of the question if that is less; l is the
        length of the passage over that of a typical context. A short question is weak evidence,
        and a long passage has more words by chance. Words that repeat the question do not count
        as part of the passage. Range [0, 1); 0 for a question without words.
        """
        weights = self._asked(question)
        total = sum(weights.values())
        if not total:
            return 0.0
        there = self._read(self.without_question(question, passage))
        length = len(there.words) / self._typical_length
        doubt = self._tuning.doubt * min(self._unseen, total / 2) * (1 + length) / 2
        return self._match(weights, there) / (total + doubt)

    def without_question(self, question: str, passage: str) -> str:
        """The passage, without a repetition of the question."""
        left = without_question(question, self._read(passage))
        return passage if left is None else left

    def _match(self, weights: Mapping[str, float], passage: Passage) -> float:
        tuning = self._tuning
        return sum([weight * word_match(word, passage, tuning) for word, weight in weights.items()])


def _weighing(weight: Callable[[str], float]) -> Callable[[str], Mapping[str, float]]:
    """A function from a text to the weights of its distinct words.

    They are in the order of the text: the order of a set would change the last bit of a sum.
    """
    weigh = lru_cache(maxsize=50_000)(weight)

    @lru_cache(maxsize=_KEPT)
    def weights(text: str) -> Mapping[str, float]:
        return {word: weigh(word) for word in words(text)}

    return weights


class Passage(NamedTuple):
    """A text as its words between marks; its distinct words and n-grams."""

    text: str
    words: frozenset[str]
    parts: frozenset[str]


def read(text: str, part: int) -> Passage:
    """The words and n-grams of a text; the start of a word counts as a letter."""
    found = words(text)
    joined = _START + _START.join(found)
    return Passage(
        joined + _START,
        frozenset(found),
        frozenset([joined[i : i + part] for i in range(len(joined) - part + 1)]),
    )


def without_question(question: str, passage: Passage) -> str | None:
    """The words of a passage without a verbatim repetition of the question; None if it has none.

    A short question may occur in any passage on its subject: it counts as repeated only if the
    passage has no other words.
    """
    asked = words(question)
    marked = f"{_START}{_START.join(asked)}{_START}"
    if not asked or marked not in passage.text:
        return None
    rest = passage.text
    while marked in rest:
        rest = rest.replace(marked, _START)
    left = rest.replace(_START, " ").strip()
    length = sum(0.5 if is_unspaced(word) else 1.0 for word in asked)
    return None if left and length < _SENTENCE else left


def word_match(word: str, passage: Passage, tuning: Tuning) -> float:
    """Match of a word with a passage: 1 if it is there, else by its n-grams.

    Numbers, and words too short for two n-grams, match completely or not at all.
    """
    if word in passage.words:
        return 1.0
    parts = _parts(word, tuning.part)
    if not parts:
        return 0.0
    return (sum(map(passage.parts.__contains__, parts)) / len(parts)) ** tuning.power


@lru_cache(maxsize=50_000)
def _parts(word: str, size: int) -> tuple[str, ...]:
    """The n-grams of a word; none for numbers and short words."""
    if len(word) < size or word[0].isdecimal():
        return ()
    marked = _START + word
    return tuple(marked[i : i + size] for i in range(len(marked) - size + 1))
