"""The lexical judge's measures as their definitions say, one pair of texts at a time.

The judge computes the same numbers in fewer steps; a test holds both side by side.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import numpy as np

from ragmetrics.judges import Corpus
from ragmetrics.judges.word_frequencies import is_unspaced, words
from ragmetrics.judges.word_overlap import TUNING
from ragmetrics.records import Vector

START = "\0"
DIMENSIONS = 4_096


class PlainLexicon:
    """Coverage and relevance, from every n-gram of the text."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def coverage(self, claim: str, *passages: str) -> float:
        """Share of the claim's word weight that the passages hold."""
        weights = weights_of(claim, self._corpus.weight)
        return held(weights, "\n".join(passages)) / (sum(weights.values()) or 1.0)

    def relevance(self, question: str, *passages: str) -> float:
        """Share of the question's subject that the passages hold, allowing for chance."""
        weights = weights_of(question, self._corpus.subject_weight)
        total = sum(weights.values())
        if not total:
            return 0.0
        passage = without_question(question, " ".join(passages))
        length = len(set(words(passage))) / self._corpus.contexts.typical_length
        unseen = self._corpus.subject_weight(None)
        doubt = TUNING.doubt * min(unseen, total / 2) * (1 + length) / 2
        return held(weights, passage) / (total + doubt)


def weights_of(text: str, weight: Callable[[str], float]) -> Mapping[str, float]:
    """The weights of the words of a text, in its order."""
    return {word: weight(word) for word in words(text)}


def held(weights: Mapping[str, float], passage: str) -> float:
    """Weighted sum of the matches of words with a passage."""
    found = words(passage)
    joined = START + START.join(found)
    parts = {joined[i : i + TUNING.part] for i in range(len(joined) - TUNING.part + 1)}
    return sum([weight * match(word, set(found), parts) for word, weight in weights.items()])


def match(word: str, found: set[str], parts: set[str]) -> float:
    """1 for a word that is there, else the share of its n-grams that are there, squared."""
    if word in found:
        return 1.0
    if len(word) < TUNING.part or word[0].isdecimal():
        return 0.0
    marked = START + word
    grams = [marked[i : i + TUNING.part] for i in range(len(marked) - TUNING.part + 1)]
    return float((sum(gram in parts for gram in grams) / len(grams)) ** TUNING.power)


def without_question(question: str, passage: str) -> str:
    """The passage without a repetition of the question; a short question may occur by chance."""
    asked = words(question)
    marked = f"{START}{START.join(asked)}{START}"
    rest = f"{START}{START.join(words(passage))}{START}"
    if not asked or marked not in rest:
        return passage
    while marked in rest:
        rest = rest.replace(marked, START)
    left = rest.replace(START, " ").strip()
    length = sum(0.5 if is_unspaced(word) else 1.0 for word in asked)
    return passage if left and length < 5 else left


def vector_of(text: str, corpus: Corpus) -> Vector:
    """The hashed vector of a text, one feature after the other."""
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    for word in words(text):
        weight = corpus.weight(word)
        padded = f"<{word}>"
        grams = [padded[i : i + 3] for i in range(len(padded) - 2)]
        features = [(word, weight), *((f"#{gram}", 0.5 * weight / len(grams)) for gram in grams)]
        for feature, share in features:
            vector[zlib.crc32(feature.encode("utf-8", "surrogatepass")) % DIMENSIONS] += share
    return vector
