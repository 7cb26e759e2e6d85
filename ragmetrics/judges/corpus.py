"""How common each word is in the night's contexts and questions: the weights of the embedded judge.

Counts are kept in tables of fixed size, indexed by a hash of the word, and texts seen before are
told by a bit map: memory does not grow with the night.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SLOTS = 1 << 18
_SEEN_BITS = 1 << 24
_PRIOR_TEXTS = 10
_PRIOR_WORDS = 100
# Vowel signs of the scripts of India and South East Asia: parts of words, though no letters.
_SIGNS = "".join(c for c in map(chr, range(0x900, 0x1100)) if unicodedata.category(c)[0] == "M")
_WORD = re.compile(rf"[^\W_{_SIGNS}][\w{_SIGNS}]*")
_ASCII_WORD = re.compile("[a-z0-9]+")
# Scripts written without spaces, or, as Korean, with particles joined on: each pair of
# neighbouring characters counts as a word.
_UNSPACED = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힣฀-๿຀-໿ក-៿က-႟]")


def words(text: str) -> list[str]:
    """The words of a text in any script, case and width folded."""
    if text.isascii():  # nothing of what follows applies, and most texts are
        return _ASCII_WORD.findall(text.lower())
    found: list[str] = []
    folded = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    for word in _WORD.findall(folded):
        if word.isascii() or not _UNSPACED.search(word):
            found.append(word)
        else:
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return found


@lru_cache(maxsize=100_000)
def slot(word: str) -> int:
    """The word's place in the tables; equal on every machine."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % SLOTS


class Frequencies:
    """In how many of some texts each word stands."""

    def __init__(self, counts: NDArray[np.uint32] | None = None, texts: int = 0) -> None:
        self.counts = np.zeros(SLOTS, dtype=np.uint32) if counts is None else counts
        self.texts = texts

    def add(self, text: str) -> None:
        """Count one more text."""
        slots = set(map(slot, words(text)))
        self.counts[np.fromiter(slots, dtype=np.int64, count=len(slots))] += 1
        self.texts += 1

    def rarity(self, word: str | None) -> float:
        """Inverse document frequency: log(1 + (N - n + 0.5) / (n + 0.5)).

        A few texts are added, one of which holds the word, so that a handful of texts does not
        make every word that occurs a common one. None stands for a word that was never seen.
        """
        texts = self.texts + _PRIOR_TEXTS
        holding = 1 + (int(self.counts[slot(word)]) if word is not None else 0)
        return math.log1p((texts - holding + 0.5) / (holding + 0.5))

    @property
    def typical_length(self) -> float:
        """How many distinct words a text holds in the mean, a few of a hundred words added."""
        held = float(self.counts.sum(dtype=np.int64)) + _PRIOR_TEXTS * _PRIOR_WORDS
        return held / (self.texts + _PRIOR_TEXTS)


class Corpus:
    """The words of distinct contexts, and of distinct questions."""

    def __init__(
        self, contexts: Frequencies | None = None, questions: Frequencies | None = None
    ) -> None:
        self.contexts = contexts or Frequencies()
        self.questions = questions or Frequencies()
        self._seen = np.zeros(_SEEN_BITS // 8, dtype=np.uint8)

    @property
    def documents(self) -> int:
        """How many distinct contexts were counted."""
        return self.contexts.texts

    def add(self, contexts: Iterable[str], question: str = "") -> None:
        """Count the contexts and the question of a row, each distinct one once."""
        for context in contexts:
            if self._is_new("c", context):
                self.contexts.add(context)
        if question and self._is_new("q", question):
            self.questions.add(question)

    def weight(self, word: str | None) -> float:
        """What a word says: its rarity in the contexts. None stands for one never seen."""
        return self.contexts.rarity(word)

    def subject_weight(self, word: str | None) -> float:
        """What a question's word says of its subject: rare in the contexts and in the questions.

        Words that many questions hold (which, when, the name of the product) say how is asked,
        or what all is about, in any language.
        """
        return self.contexts.rarity(word) * self.questions.rarity(word)

    def _is_new(self, kind: str, text: str) -> bool:
        place = zlib.crc32((kind + text).encode("utf-8", "surrogatepass")) % _SEEN_BITS
        byte, bit = divmod(place, 8)
        if self._seen[byte] >> bit & 1:
            return False
        self._seen[byte] |= np.uint8(1 << bit)
        return True

    def to_bytes(self) -> bytes:
        """The tables, small enough to travel with the night: only words that occur."""
        parts: list[NDArray[np.uint32]] = []
        for table in (self.contexts, self.questions):
            used = np.flatnonzero(table.counts)
            head = np.array([table.texts, len(used)], dtype=np.uint32)
            parts += [head, used.astype(np.uint32), table.counts[used]]
        return zlib.compress(b"".join(part.tobytes() for part in parts))

    @classmethod
    def from_bytes(cls, data: bytes) -> Corpus:
        """Read what `to_bytes` wrote; ValueError for anything else."""
        try:
            numbers = np.frombuffer(zlib.decompress(data), dtype=np.uint32)
            tables = []
            for _ in range(2):
                texts, used = int(numbers[0]), int(numbers[1])
                counts = np.zeros(SLOTS, dtype=np.uint32)
                counts[numbers[2 : 2 + used]] = numbers[2 + used : 2 + 2 * used]
                tables.append(Frequencies(counts, texts))
                numbers = numbers[2 + 2 * used :]
        except (zlib.error, IndexError, ValueError) as error:
            raise ValueError(f"no word counts: {error}") from error
        return cls(*tables)
