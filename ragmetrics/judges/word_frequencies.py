"""Document frequencies of words in the night's contexts and questions, for the lexical judge.

A few odd rows must not change the scores of all others. So a context counts as often as it is
retrieved, up to five times; a question counts once; a long text or a row of many contexts has no
larger weight than others. Counts are in tables of fixed size, indexed by a hash of the word or of
the text, so memory does not grow with the night.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SLOTS = 1 << 18
CONTEXT_WORDS = 128
"""Distinct words of a context that count fully; words of a longer context count less."""
QUESTION_WORDS = 24
"""Distinct words of a question that count fully."""
ROW_CONTEXTS = 5
"""Contexts of a row that count fully; if there are more, each counts less."""
CONTEXT_TIMES = 5
"""Most times that the same context counts: further retrievals add little information."""
_LONGEST = 4_096
_TEXTS = 1 << 23
"""Slots for seen texts; a million texts rarely collide."""
_SHORT = 20_000
"""Longest text whose words are cached, in characters."""
_FRACTIONS = b"\x02"
"""Prefix of `to_bytes`; whole counts of earlier versions lack it."""
_PRIOR_TEXTS = 10
_PRIOR_WORDS = 100
# Vowel signs of Indian and South East Asian scripts: parts of words, but not letters.
_SIGNS = "".join(c for c in map(chr, range(0x900, 0x1100)) if unicodedata.category(c)[0] == "M")
_WORD = re.compile(rf"[^\W_{_SIGNS}][\w{_SIGNS}]*")
_ASCII_WORD = re.compile("[a-z0-9]+")
# Scripts without spaces, or with attached particles, as Korean: each pair of adjacent characters
# counts as a word.
_UNSPACED = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힣฀-๿຀-໿ក-៿က-႟]")


def words(text: str) -> list[str]:
    """The words of a text in any script, with case and width folded."""
    if text.isascii():  # fast path for most texts
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    if not is_unspaced(folded):
        return _WORD.findall(folded)
    tokens: list[str] = []
    for word in _WORD.findall(folded):
        if word.isascii() or not is_unspaced(word):
            tokens.append(word)
        else:
            tokens.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return tokens


def is_unspaced(word: str) -> bool:
    """Whether a word is a pair of characters of a script without spaces."""
    return _UNSPACED.search(word) is not None


@lru_cache(maxsize=100_000)
def slot(word: str) -> int:
    """The word's slot in the tables, the same on every machine."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % SLOTS


@lru_cache(maxsize=1_024)
def _slots(text: str) -> NDArray[np.int64]:
    """The slots of the distinct words of a text; cached, because chunks recur."""
    slots = set(map(slot, words(text)))
    return np.fromiter(slots, dtype=np.int64, count=len(slots))


class Frequencies:
    """Number of texts that hold each word.

    A text with more than `most` distinct words counts as a fraction of a text, so that its words
    have the total weight of `most` words.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.counts = np.zeros(SLOTS)
        """Number of texts that hold a word, by slot."""
        self.lengths = np.zeros(_LONGEST + 1)
        """Number of texts by number of distinct words."""
        self.texts = 0.0

    def add(self, text: str, share: float = 1.0) -> None:
        """Count a text, or a share of it."""
        slots = _slots(text) if len(text) <= _SHORT else _slots.__wrapped__(text)
        self.lengths[min(len(slots), _LONGEST)] += share
        share *= min(1.0, self.most / max(len(slots), 1))
        self.counts[slots] += share
        self.texts += share

    def rarity(self, word: str | None) -> float:
        """Inverse document frequency: log(1 + (N - n + 0.5) / (n + 0.5)).

        Ten texts are added as a prior, one of which holds the word, so that words are not common in
        a corpus of a few texts. None is an unseen word.
        """
        texts = self.texts + _PRIOR_TEXTS
        holding = 1 + (float(self.counts[slot(word)]) if word is not None else 0.0)
        return math.log1p((texts - holding + 0.5) / (holding + 0.5))

    @property
    def typical_length(self) -> float:
        """Distinct words of a typical text: the interquartile mean, at least 1.

        Ten texts of a hundred words are added as a prior.
        """
        lengths = self.lengths.copy()
        lengths[_PRIOR_WORDS] += _PRIOR_TEXTS
        upto = np.cumsum(lengths)
        middle = np.diff(np.clip(upto, upto[-1] / 4, upto[-1] * 3 / 4), prepend=upto[-1] / 4)
        return max(1.0, float(middle @ np.arange(len(middle)) / middle.sum()))


class Corpus:
    """Word frequencies of contexts and of questions."""

    def __init__(self) -> None:
        self.contexts = Frequencies(CONTEXT_WORDS)
        self.questions = Frequencies(QUESTION_WORDS)
        self._times = np.zeros(_TEXTS, dtype=np.uint8)

    def add(self, contexts: Sequence[str], question: str = "") -> None:
        """Count the contexts and the question of a row."""
        share = min(1.0, ROW_CONTEXTS / max(len(contexts), 1))
        for context in contexts:
            if self._counts("c", context, CONTEXT_TIMES):
                self.contexts.add(context, share)
        if question and self._counts("q", question, 1):
            self.questions.add(question)

    @property
    def is_empty(self) -> bool:
        """Whether no text is counted."""
        return not (self.contexts.texts or self.questions.texts)

    def weight(self, word: str | None) -> float:
        """Rarity of a word in the contexts. None is an unseen word."""
        return self.contexts.rarity(word)

    def subject_weight(self, word: str | None) -> float:
        """Weight of a question's word: its rarity in the contexts times that in the questions.

        Words of many questions (which, when, the product's name) say little about the subject of
        one.
        """
        return self.contexts.rarity(word) * self.questions.rarity(word)

    def _counts(self, kind: str, text: str, most: int) -> bool:
        """Whether another occurrence of a text still counts."""
        place = zlib.crc32((kind + text).encode("utf-8", "surrogatepass")) % _TEXTS
        if self._times[place] >= most:
            return False
        self._times[place] += 1
        return True

    def to_bytes(self) -> bytes:
        """The non-zero entries of the tables, compressed."""
        numbers: list[float] = []
        for table in (self.contexts, self.questions):
            numbers.append(table.texts)
            for counts in (table.counts, table.lengths):
                used = np.flatnonzero(counts)
                numbers += [len(used), *used, *counts[used]]
        return _FRACTIONS + zlib.compress(np.array(numbers, dtype=np.float64).tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Corpus:
        """Read bytes of `to_bytes`, also of earlier versions. Raises ValueError."""
        fractions = data.startswith(_FRACTIONS)
        body, kind = (data[len(_FRACTIONS) :], np.float64) if fractions else (data, np.uint32)
        try:
            numbers = np.frombuffer(zlib.decompress(body), dtype=kind).astype(np.float64)
            corpus = cls()
            for table in (corpus.contexts, corpus.questions):
                table.texts, numbers = float(numbers[0]), numbers[1:]
                numbers = _fill(table.counts, numbers)
                if fractions:
                    numbers = _fill(table.lengths, numbers)
                elif table.texts:  # earlier versions have no lengths: use their mean
                    mean = round(float(table.counts.sum()) / table.texts)
                    table.lengths[min(mean, _LONGEST)] = table.texts
        except (zlib.error, IndexError, ValueError, OverflowError) as error:
            raise ValueError(f"not word counts: {error}") from error
        return corpus


def _fill(table: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill a table from the leading slots and counts; return the rest of the numbers."""
    used = int(numbers[0])
    places, counts = numbers[1 : 1 + used], numbers[1 + used : 1 + 2 * used]
    if not ((places >= 0) & (places < len(table))).all():
        raise ValueError("a slot is outside the table")
    table[places.astype(np.int64)] = counts
    return numbers[1 + 2 * used :]
