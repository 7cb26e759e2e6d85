"""Words of texts, and their weights: the rarer a word, the more it tells.

    tf-idf(word, text) = (1 + log count) * log((1 + N) / (1 + n_word)),   then of length 1

Words in more than a quarter of all texts are left out: in every language these are the words that
carry no topic.
Source: Salton and Buckley 1988, "Term-weighting approaches in automatic text retrieval".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

_WORD = re.compile(r"[぀-ヿ㐀-鿿가-힯฀-๿]{2}|[^\W\d_]{3,40}")
_MOST_WORDS = 4_000
_FEWEST_TEXTS = 2
_MOST_OF = 0.25
_LONGEST = 5_000
"""Characters of a text that count."""


def words_of(text: str) -> list[str]:
    """The words of a text, without case; short ones and numbers are left out."""
    return [_stem(word) for word in _WORD.findall(text[:_LONGEST].casefold())]


def _stem(word: str) -> str:
    """The word without a plural s, so that singular and plural are one word."""
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


def rarity_of(texts: Sequence[Counter[str]]) -> dict[str, float]:
    """The inverse document frequency of the words that tell something."""
    counts = Counter(word for text in texts for word in text)
    most = max(_FEWEST_TEXTS, _MOST_OF * len(texts))
    usable = [(n, word) for word, n in counts.items() if _FEWEST_TEXTS <= n <= most]
    chosen = sorted(usable, key=lambda one: (-one[0], one[1]))[:_MOST_WORDS]
    return {word: math.log((1 + len(texts)) / (1 + n)) for n, word in sorted(chosen)}


def weigh(counts: Mapping[str, int], rarity: Mapping[str, float]) -> dict[str, float]:
    """The weights of a text's known words, of length 1; empty where it has none."""
    weights = {
        word: (1 + math.log(count)) * rarity[word]
        for word, count in counts.items()
        if word in rarity
    }
    length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
    return {word: one / length for word, one in weights.items()} if length else {}
