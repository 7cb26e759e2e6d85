"""The overlap of the words of a claim or a question with a passage, in any language.

A word that is not in the passage may be there in another form: inflected, compounded, or with an
article or particle attached. Its match is the share of its letter 4-grams that the passage has,
squared, so that a few chance matches count for little. This replaces a stemmer for any script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from operator import or_
from typing import NamedTuple

from ragmetrics.judges.word_frequencies import Corpus, is_unspaced, words
from ragmetrics.text import SizedCache

_START = "\0"
_KEPT = 64
"""Queries kept in memory."""
_PASSAGES = 64 << 20
"""Bytes of the passages kept in memory, because chunks recur."""
_LONGEST_QUERY = 500
"""Words above which a query is compared by sets."""
_MOST_WORDS = 100_000
"""Words whose n-grams are kept in memory."""
_SIZE = 48
"""Bytes of a passage by character of its text."""
_SENTENCE = 5
"""Words from which a query counts as a sentence. A shorter query, such as `Opening hours`, may be
the beginning of any passage; it is removed only from a passage that has no other words."""
VERSION = 3


class Tuning(NamedTuple):
    """Constants, chosen on labelled sets: see docs/how-to/judges.md."""

    part: int = 4
    """Length of a letter n-gram."""
    power: int = 2
    """Exponent of the share of matching n-grams."""
    doubt: float = 2.0
    """Smoothing of relevance, in weights of an unseen word."""


TUNING = Tuning()


class Overlap:
    """Lexicon of the lexical judge; weights are the rarity of words in a corpus."""

    def __init__(
        self, corpus: Corpus, tuning: Tuning = TUNING, *, longest_query: int = _LONGEST_QUERY
    ) -> None:
        self._tuning = tuning
        self._said = _queries(corpus.weight, tuning, longest_query)
        self._asked = _queries(corpus.subject_weight, tuning, longest_query)
        self._unseen = corpus.subject_weight(None)
        self._typical_length = corpus.contexts.typical_length
        self._passages: SizedCache[str, Passage] = SizedCache(_PASSAGES)

    def coverage(self, claim: str, *passages: str) -> float:
        """Share of the claim's word weight that the passages, taken together, hold.

            coverage = sum of w(t) match(t) / sum of w(t)   for the words t of the claim

        Range [0, 1]; 0 for a claim without words.
        """
        asked = self._said(claim)
        return asked.held(map(self._read, passages)) / (asked.total or 1.0)

    def relevance(self, question: str, *passages: str) -> float:
        """Share of the question's subject that the passages together hold, allowing for chance.

            relevance = sum of w(t) match(t) / (sum of w(t) + u (1 + l))

        u is the weight of an unseen word, or half that of the question if that is less; l is the
        length of the passages over that of a typical context. A short question is weak evidence,
        and a long passage has more words by chance. Words that repeat the question do not count
        as part of the passages. Range [0, 1); 0 for a question without words.
        """
        asked = self._asked(question)
        if not asked.total:
            return 0.0
        there = [self._read(passage) for passage in passages]
        distinct = there[0].words if len(there) == 1 else _all_words(there)
        if distinct.issuperset(asked.text):
            spoken = [word for one in there for word in one.text]
            if (left := without_question(asked.text, spoken)) is not None:
                there = [self._read(left)]
                distinct = there[0].words
        length = len(distinct) / self._typical_length
        doubt = self._tuning.doubt * min(self._unseen, asked.total / 2) * (1 + length) / 2
        return asked.held(there) / (asked.total + doubt)

    def without_question(self, question: str, passage: str) -> str:
        """The passage, without a repetition of the question."""
        left = without_question(words(question), self._read(passage).text)
        return passage if left is None else left

    def _read(self, text: str) -> Passage:
        passage = self._passages.get(text)
        if passage is None:
            passage = read(text, self._tuning.part)
            self._passages.put(text, passage, _SIZE * len(text))
        return passage


class Query:
    """A claim or a question, and how much of it a passage holds.

    A code is a number whose bits stand for what a passage shares with the query: a bit for each of
    the query's words, then one for each n-gram of each word. Several passages together have the
    bits of each. Equal codes hold as much.
    """

    def __init__(self, text: Sequence[str], weigh: Callable[[str], float], tuning: Tuning) -> None:
        self.text = tuple(text)
        distinct = list(dict.fromkeys(text))  # in the order of the text: sums depend on it
        weights = [weigh(word) for word in distinct]
        self.total = sum(weights)
        self._power = tuning.power
        self._words = {word: 1 << place for place, word in enumerate(distinct)}
        self._grams: dict[str, int] = {}
        self._terms: list[tuple[int, float, int, int]] = []
        """Of each word: its bit, its weight, the bits of its n-grams, and their number."""
        place = len(distinct)
        for word, weight in zip(distinct, weights, strict=True):
            grams = _compared(word, tuning.part)
            for number, gram in enumerate(grams, place):
                self._grams[gram] = self._grams.get(gram, 0) | 1 << number
            bits = (1 << len(grams)) - 1 << place
            self._terms.append((self._words[word], weight, bits, len(grams)))
            place += len(grams)
        self._distinct = frozenset(self._words), frozenset(self._grams)
        self._codes: dict[Passage, int] = {}
        self._held: dict[int, float] = {}

    def held(self, passages: Iterable[Passage]) -> float:
        """Weighted sum of the matches of its words with passages, taken together.

        The match is 1 for a word that is there. Else it is the share of its n-grams that are there,
        to a power. Numbers, and words too short for two n-grams, match completely or not at all.
        """
        code = reduce(or_, map(self._code, passages), 0)
        weight = self._held.get(code)
        if weight is None:
            weight = self._held[code] = self._sum(code)
        return weight

    def _code(self, passage: Passage) -> int:
        code = self._codes.get(passage)
        if code is None:
            words, grams = self._distinct
            code = reduce(or_, map(self._words.__getitem__, words & passage.words), 0)
            code = reduce(or_, map(self._grams.__getitem__, grams & passage.grams), code)
            self._codes[passage] = code
        return code

    def _sum(self, code: int) -> float:
        return sum(
            [
                weight
                if code & bit
                else weight * ((code & bits).bit_count() / number) ** self._power
                if number
                else 0.0
                for bit, weight, bits, number in self._terms
            ]
        )


class LongQuery:
    """A query of many words, whose codes would be too long to be numbers: sets take their place.

    Its time is in proportion to its length, where that of codes is to the square of it.
    """

    def __init__(self, text: Sequence[str], weigh: Callable[[str], float], tuning: Tuning) -> None:
        self.text = tuple(text)
        distinct = list(dict.fromkeys(text))  # in the order of the text: sums depend on it
        weights = [weigh(word) for word in distinct]
        self.total = sum(weights)
        self._power = tuning.power
        self._terms = [
            (word, weight, _compared(word, tuning.part))
            for word, weight in zip(distinct, weights, strict=True)
        ]
        self._words = frozenset(distinct)
        self._grams = frozenset().union(*[grams for _, _, grams in self._terms])

    def held(self, passages: Iterable[Passage]) -> float:
        """As `Query.held`."""
        there = list(passages)
        words = frozenset().union(*[self._words & one.words for one in there])
        grams = frozenset().union(*[self._grams & one.grams for one in there])
        return sum(
            [
                weight
                if word in words
                else weight * (sum(gram in grams for gram in parts) / len(parts)) ** self._power
                if parts
                else 0.0
                for word, weight, parts in self._terms
            ]
        )


def _queries(
    weight: Callable[[str], float], tuning: Tuning, longest: int
) -> Callable[[str], Query | LongQuery]:
    """A function from a text to its query."""
    weigh = lru_cache(maxsize=50_000)(weight)

    @lru_cache(maxsize=_KEPT)
    def query(text: str) -> Query | LongQuery:
        tokens = words(text)
        kind = Query if len(tokens) <= longest else LongQuery
        return kind(tokens, weigh, tuning)

    return query


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A text: its words in order, its distinct words, and the n-grams of its words."""

    text: Sequence[str]
    words: frozenset[str]
    grams: frozenset[str]


def read(text: str, size: int) -> Passage:
    """The words and n-grams of a text; the start of a word counts as a letter."""
    tokens = words(text)
    distinct = frozenset(tokens)
    grams = frozenset().union(*map(_grams_of(size).__getitem__, distinct))
    return Passage(tokens, distinct, grams)


def _all_words(passages: Iterable[Passage]) -> frozenset[str]:
    return frozenset().union(*[passage.words for passage in passages])


def without_question(asked: Sequence[str], passage: Sequence[str]) -> str | None:
    """The words of a passage without a verbatim repetition of the question; None if it has none.

    A short question may occur in any passage on its subject: it counts as repeated only if the
    passage has no other words.
    """
    if not asked:
        return None
    marked = f"{_START}{_START.join(asked)}{_START}"
    rest = f"{_START}{_START.join(passage)}{_START}"
    if marked not in rest:
        return None
    while marked in rest:
        rest = rest.replace(marked, _START)
    left = rest.replace(_START, " ").strip()
    length = sum(0.5 if is_unspaced(word) else 1.0 for word in asked)
    return None if left and length < _SENTENCE else left


def _compared(word: str, size: int) -> tuple[str, ...]:
    """The n-grams by which a word matches others; none for numbers and short words."""
    return () if len(word) < size or word[0].isdecimal() else _grams_of(size)[word]


class _Grams(dict[str, tuple[str, ...]]):
    """The n-grams of words with their start; those of the latest words are kept."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= _MOST_WORDS:
            self.clear()
        marked, size = _START + word, self._size
        grams = tuple([marked[i : i + size] for i in range(len(marked) - size + 1)])
        self[word] = grams
        return grams


_grams_of = cache(_Grams)
