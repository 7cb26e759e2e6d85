"""How common each word is in the night's contexts and questions: the weights of the embedded judge.

A few odd rows must not move the numbers of all others. So a context counts as often as it is
retrieved, up to five times; a question counts once; and a long text, or a row of many contexts,
counts for no more than others. Counts are kept in tables of fixed size, indexed by a hash of the
word or of the text: memory does not grow with the night.
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
"""Distinct words of a context that count in full; each word of a longer one counts for less."""
QUESTION_WORDS = 24
"""The same of a question."""
ROW_CONTEXTS = 5
"""Contexts of a row that count in full; each of more counts for less."""
CONTEXT_TIMES = 5
"""How often the same context counts. A hostile one is retrieved seldom. One that
very many questions retrieve says little more of what words are common."""
_LONGEST = 4_096
_TEXTS = 1 << 23
"""Places for texts that were seen: a million of them seldom share one."""
_SHORT = 20_000
"""Characters of a text whose words are remembered."""
_FRACTIONS = b"\x02"
"""What `to_bytes` begins with; whole counts, of earlier versions, begin otherwise."""
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
        if word.isascii() or not is_unspaced(word):
            found.append(word)
        else:
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return found


def is_unspaced(word: str) -> bool:
    """Whether a word is a pair of characters of a script without spaces."""
    return _UNSPACED.search(word) is not None


@lru_cache(maxsize=100_000)
def slot(word: str) -> int:
    """The word's place in the tables; equal on every machine."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % SLOTS


@lru_cache(maxsize=1_024)
def _slots(text: str) -> NDArray[np.int64]:
    """The places of the distinct words of a text; chunks are retrieved again and again."""
    found = set(map(slot, words(text)))
    return np.fromiter(found, dtype=np.int64, count=len(found))


class Frequencies:
    """In how many of some texts each word stands.

    A text with more than `most` distinct words is a fraction of a text, so that all of its words
    together weigh as much as `most`.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.counts = np.zeros(SLOTS)
        """Texts that hold a word, by the word's slot."""
        self.lengths = np.zeros(_LONGEST + 1)
        """Texts, by how many distinct words they have."""
        self.texts = 0.0

    def add(self, text: str, share: float = 1.0) -> None:
        """Count one more text, or a share of one."""
        slots = _slots(text) if len(text) <= _SHORT else _slots.__wrapped__(text)
        self.lengths[min(len(slots), _LONGEST)] += share
        share *= min(1.0, self.most / max(len(slots), 1))
        self.counts[slots] += share
        self.texts += share

    def rarity(self, word: str | None) -> float:
        """Inverse document frequency: log(1 + (N - n + 0.5) / (n + 0.5)).

        A few texts are added, one of which holds the word, so that a handful of texts does not
        make every word that occurs a common one. None stands for a word that was never seen.
        """
        texts = self.texts + _PRIOR_TEXTS
        holding = 1 + (float(self.counts[slot(word)]) if word is not None else 0.0)
        return math.log1p((texts - holding + 0.5) / (holding + 0.5))

    @property
    def typical_length(self) -> float:
        """How many distinct words a text has: the mean of the middle half of all texts.

        A few texts of a hundred words are added. No small share of the texts moves it far. At
        least 1.
        """
        lengths = self.lengths.copy()
        lengths[_PRIOR_WORDS] += _PRIOR_TEXTS
        upto = np.cumsum(lengths)
        middle = np.diff(np.clip(upto, upto[-1] / 4, upto[-1] * 3 / 4), prepend=upto[-1] / 4)
        return max(1.0, float(middle @ np.arange(len(middle)) / middle.sum()))


class Corpus:
    """The words of the contexts, and of the questions, of some rows."""

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

    def weight(self, word: str | None) -> float:
        """What a word says: its rarity in the contexts. None stands for one never seen."""
        return self.contexts.rarity(word)

    def subject_weight(self, word: str | None) -> float:
        """What a question's word says of its subject: rare in the contexts and in the questions.

        Words that many questions hold (which, when, the name of the product) say how is asked,
        or what all is about, in any language.
        """
        return self.contexts.rarity(word) * self.questions.rarity(word)

    def _counts(self, kind: str, text: str, most: int) -> bool:
        """Whether a text that came once more still counts."""
        place = zlib.crc32((kind + text).encode("utf-8", "surrogatepass")) % _TEXTS
        if self._times[place] >= most:
            return False
        self._times[place] += 1
        return True

    def to_bytes(self) -> bytes:
        """The tables, small enough to travel with the night: only what occurs."""
        numbers: list[float] = []
        for table in (self.contexts, self.questions):
            numbers.append(table.texts)
            for counts in (table.counts, table.lengths):
                used = np.flatnonzero(counts)
                numbers += [len(used), *used, *counts[used]]
        return _FRACTIONS + zlib.compress(np.array(numbers, dtype=np.float64).tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Corpus:
        """Read what `to_bytes` wrote, now or when it counted whole texts; else ValueError."""
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
                elif table.texts:  # nobody counted lengths then: their mean stands in
                    mean = round(float(table.counts.sum()) / table.texts)
                    table.lengths[min(mean, _LONGEST)] = table.texts
        except (zlib.error, IndexError, ValueError, OverflowError) as error:
            raise ValueError(f"no word counts: {error}") from error
        return corpus


def _fill(table: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill a table from the places and counts that come first; return the numbers after them."""
    used = int(numbers[0])
    places, counts = numbers[1 : 1 + used], numbers[1 + used : 1 + 2 * used]
    table[places.astype(np.int64)] = counts
    return numbers[1 + 2 * used :]
