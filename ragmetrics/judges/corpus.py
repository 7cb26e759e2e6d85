"""How common each word is in the night's contexts: the weights of the embedded judge.

Counts are kept in a table of fixed size, indexed by a hash of the word, and contexts seen
before are told by a bit map: memory does not grow with the night.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

SLOTS = 1 << 18
_SEEN_BITS = 1 << 24
_STEM = 6
_PRIOR_DOCUMENTS = 10
_AFTER_CYRILLIC = 0x530
_WORD = re.compile(r"[^\W_]+")
# Scripts written without spaces: each pair of neighbouring characters counts as a word.
_UNSPACED = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿฀-๿຀-໿ក-៿က-႟]+")


def words(text: str) -> list[str]:
    """The words of a text in any script, case folded, cut to a stem of six letters.

    Numbers stay whole.
    """
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _UNSPACED.search(word):
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(word if word[0].isdecimal() else word[:_STEM])
    return found


@lru_cache(maxsize=100_000)
def slot(word: str) -> int:
    """The word's place in the table; equal on every machine."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % SLOTS


def _emphasis(word: str) -> float:
    if word[0].isdecimal():
        return 1.5
    return 0.3 if len(word) <= 3 and ord(word[0]) < _AFTER_CYRILLIC else 1.0


class Corpus:
    """Document frequencies of words over distinct contexts."""

    def __init__(self, counts: np.ndarray | None = None, documents: int = 0) -> None:
        self.counts = np.zeros(SLOTS, dtype=np.uint32) if counts is None else counts
        self.documents = documents
        self._seen = np.zeros(_SEEN_BITS // 8, dtype=np.uint8)

    def add(self, contexts: Iterable[str]) -> None:
        """Count contexts, each distinct one once."""
        for context in contexts:
            if self._is_new(context):
                self.documents += 1
                slots = {slot(word) for word in words(context)}
                self.counts[np.fromiter(slots, dtype=np.int64, count=len(slots))] += 1

    def weight(self, word: str) -> float:
        """Inverse document frequency: log(1 + (N - n + 0.5) / (n + 0.5)).

        A few documents that hold the word once are added, so that a handful of contexts does not
        make every word that occurs a common one. Numbers weigh half as much again; words of up to
        three letters, in alphabets where those are mostly particles, three tenths.
        """
        documents = self.documents + _PRIOR_DOCUMENTS
        holding = int(self.counts[slot(word)]) + 1
        rarity = math.log1p((documents - holding + 0.5) / (holding + 0.5))
        return rarity * _emphasis(word)

    def _is_new(self, context: str) -> bool:
        place = zlib.crc32(context.encode("utf-8", "surrogatepass")) % _SEEN_BITS
        byte, bit = divmod(place, 8)
        if self._seen[byte] >> bit & 1:
            return False
        self._seen[byte] |= np.uint8(1 << bit)
        return True

    def to_bytes(self) -> bytes:
        """The table, small enough to travel with the night: only words that occur."""
        used = np.flatnonzero(self.counts).astype(np.uint32)
        head = np.array([self.documents, len(used)], dtype=np.uint32)
        return zlib.compress(
            head.tobytes() + used.tobytes() + self.counts[used].astype(np.uint32).tobytes()
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Corpus:
        """Read what `to_bytes` wrote."""
        numbers = np.frombuffer(zlib.decompress(data), dtype=np.uint32)
        documents, used = int(numbers[0]), int(numbers[1])
        counts = np.zeros(SLOTS, dtype=np.uint32)
        counts[numbers[2 : 2 + used]] = numbers[2 + used :]
        return cls(counts, documents)
