"""Containment of texts in others, by word shingles: sequences of five words.

    contained(a, b) = |shingles(a) ∩ shingles(b)| / |shingles(a)|

Case, spaces and punctuation do not matter. Each letter of a script without spaces is a word.
Source: Broder 1997, "On the resemblance and containment of documents".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import is_in

Shingles: TypeAlias = NDArray[np.uint64]
"""Distinct shingles of a text as hashes, ascending."""
WORDS = 5
_WORD = re.compile(r"[぀-ヿ㐀-鿿가-힯฀-๿]|[^\W぀-ヿ㐀-鿿가-힯฀-๿]+")
_FACTOR = np.uint64(0x100000001B3)


def shingles(text: str) -> Shingles:
    """The shingles of a text. A text of fewer words is one shingle; one without a word has none."""
    return shingles_of([text])[0]


def shingles_of(texts: Sequence[str]) -> list[Shingles]:
    """The shingles of several texts."""
    return [np.unique(shingle) for shingle in ordered_shingles_of(texts)]


def ordered_shingles_of(texts: Sequence[str]) -> list[Shingles]:
    """The shingles of several texts, one at each word, in order and with repetitions."""
    from pandas import factorize
    from pandas.util import hash_array  # the import takes 0.1 s or more

    words = [_WORD.findall(text.casefold()) for text in texts]
    every = np.array([word for own in words for word in own], dtype=object)
    if not len(every):
        return [np.array([], dtype=np.uint64) for _ in texts]
    codes, distinct = factorize(every)
    hashes = hash_array(np.asarray(distinct, dtype=object), categorize=False)[codes]
    ends = np.cumsum([len(own) for own in words])
    return [_rolled(own) for own in np.split(hashes, ends[:-1])]


def _rolled(words: NDArray[np.uint64]) -> Shingles:
    if not len(words):
        return words
    count = max(1, len(words) - WORDS + 1)
    rolled = np.zeros(count, dtype=np.uint64)
    for place in range(min(WORDS, len(words))):
        rolled = rolled * _FACTOR ^ words[place : place + count]
    return rolled


def contained(part: Shingles, whole: Shingles) -> float:
    """The share of a text's shingles that another text has; 0 for a text without a word."""
    if not len(part):
        return 0.0
    return float(is_in(part, whole, assume_unique=True).mean())
