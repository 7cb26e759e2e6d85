"""Words of a claim or a question held against the words of a passage, in any language.

A word that the passage lacks may stand there in another form: inflected, compounded, with an
article or particle joined on. It counts by the share of its parts of four letters that the
passage's words hold, squared, so that a chance part or two counts for little. That does for any
script what a stemmer does for one language, without a list of endings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from ragmetrics.judges.word_frequencies import Corpus, is_unspaced, words

_START = "\0"
_KEPT = 64
_SENTENCE = 5
"""Words from which a query is taken for a sentence. A passage may well open with a shorter one, as
`Opening hours: 9 to 5` does, so a shorter one is left out only of a passage that adds nothing."""


class Tuning(NamedTuple):
    """The constants, as the labelled sets chose them: see docs/judges.md."""

    part: int = 4
    """Letters to a part of a word."""
    power: int = 2
    """What the share of a word's parts is raised to."""
    doubt: float = 2.0
    """How many words never seen stand for what a question may leave unsaid."""


TUNING = Tuning()


class Passage(NamedTuple):
    """The words of a text in their order, each between two marks; its distinct words and parts."""

    text: str
    words: frozenset[str]
    parts: frozenset[str]


def read(text: str, part: int) -> Passage:
    """The words of a text and all their parts; the start of a word is a letter like another."""
    found = words(text)
    joined = _START + _START.join(found)
    return Passage(
        joined + _START,
        frozenset(found),
        frozenset([joined[i : i + part] for i in range(len(joined) - part + 1)]),
    )


def without_question(question: str, passage: Passage) -> str | None:
    """The words of a passage that repeats the question word by word, without that.

    None where it does not. A question of a few words may stand in any passage about it: there the
    passage repeats it only if it says nothing else.
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


def held(word: str, passage: Passage, tuning: Tuning) -> float:
    """How much of a word the passage holds: 1 where it stands there, else by its parts.

    Numbers, and words too short for two parts, are held whole or not at all.
    """
    if word in passage.words:
        return 1.0
    parts = _parts(word, tuning.part)
    if not parts:
        return 0.0
    return (sum(map(passage.parts.__contains__, parts)) / len(parts)) ** tuning.power


@lru_cache(maxsize=50_000)
def _parts(word: str, size: int) -> tuple[str, ...]:
    """The parts by which a word may be held; none for numbers and short words."""
    if len(word) < size or word[0].isdecimal():
        return ()
    marked = _START + word
    return tuple(marked[i : i + size] for i in range(len(marked) - size + 1))


class Overlap:
    """The embedded judge's Lexicon; the weights are the rarity of words in a corpus."""

    def __init__(self, corpus: Corpus, tuning: Tuning = TUNING) -> None:
        self._tuning = tuning
        self._said = _weighing(corpus.weight)
        self._asked = _weighing(corpus.subject_weight)
        self._unseen = corpus.subject_weight(None)
        self._typical_length = corpus.contexts.typical_length
        self._read = lru_cache(maxsize=_KEPT)(partial(read, part=tuning.part))

    def coverage(self, claim: str, passage: str) -> float:
        """Share of the claim's word weight that the passage holds.

            coverage = sum of w(t) held(t) / sum of w(t)   for the words t of the claim

        Range [0, 1]; 0 for a claim without words.
        """
        weights = self._said(claim)
        return self._held(weights, self._read(passage)) / (sum(weights.values()) or 1.0)

    def relevance(self, question: str, passage: str) -> float:
        """Share of the question's subject that the passage holds, allowing for chance.

            relevance = sum of w(t) held(t) / (sum of w(t) + u (1 + l))

        u is the weight of a word never seen, or half that of the question where that is less; l
        the length of the passage by that of a typical context. Little is sure from a short
        question, and a long passage holds more words by chance. What repeats the question is no
        part of the passage. Range [0, 1); 0 for a question without words.
        """
        weights = self._asked(question)
        total = sum(weights.values())
        if not total:
            return 0.0
        there = self._read(self.without_question(question, passage))
        length = len(there.words) / self._typical_length
        doubt = self._tuning.doubt * min(self._unseen, total / 2) * (1 + length) / 2
        return self._held(weights, there) / (total + doubt)

    def without_question(self, question: str, passage: str) -> str:
        """The passage, or, where it repeats the question, the rest of its words."""
        left = without_question(question, self._read(passage))
        return passage if left is None else left

    def _held(self, weights: Mapping[str, float], passage: Passage) -> float:
        tuning = self._tuning
        return sum([weight * held(word, passage, tuning) for word, weight in weights.items()])


def _weighing(weight: Callable[[str], float]) -> Callable[[str], Mapping[str, float]]:
    """The distinct words of a text with their weights.

    In the order of the text: that of a set differs between processes, and with it the last bit.
    """
    weigh = lru_cache(maxsize=50_000)(weight)

    @lru_cache(maxsize=_KEPT)
    def weights(text: str) -> Mapping[str, float]:
        return {word: weigh(word) for word in words(text)}

    return weights
