"""The mark to beat: plain overlap of words, weighted by their rarity in the contexts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_CHINESE = re.compile(r"[一-鿿]")


def plain_words(text: str) -> frozenset[str]:
    """Words in lower case; Chinese in pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _CHINESE.search(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        else:
            found.append(word)
    return frozenset(found)


class PlainOverlap:
    """A Lexicon in forty lines: both its answers are the share of the claim's weight held."""

    def __init__(self, contexts: Iterable[str]) -> None:
        distinct = dict.fromkeys(contexts)
        self._holding = Counter(word for text in distinct for word in plain_words(text))
        self._texts = len(distinct)

    def coverage(self, claim: str, *passages: str) -> float:
        """Share of the claim's word weight that the passages hold."""
        said, there = sorted(plain_words(claim)), plain_words("\n".join(passages))
        weights = {word: math.log(1 + self._texts / (1 + self._holding[word])) for word in said}
        total = sum(weights.values())
        return sum(weights[word] for word in said if word in there) / total if total else 0.0

    relevance = coverage
