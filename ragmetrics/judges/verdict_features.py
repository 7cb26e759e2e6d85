"""What the learned judge knows of an item: numbers about its texts.

All of them come from the request, so that equal requests have equal verdicts whatever row or
night they are of. The rank of a context is known only where the request holds all contexts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import Settings
from ragmetrics.judges.local import ENDS, MODEL as LOCAL_MODEL, EmbeddingLexicon, load_encoder
from ragmetrics.judges.verdict_items import Item, items_of
from ragmetrics.judges.word_frequencies import Corpus, is_unspaced, words
from ragmetrics.judges.word_overlap import VERSION as OVERLAP_VERSION, Overlap
from ragmetrics.records import Ask, Lexicon, fingerprint

VERSION = 1
_MOST_SENTENCES = 100
"""Most sentences of the passages that are compared with a claim one by one."""
_LONGEST = 20_000
"""Most characters of a text that are compared by words in their order."""
FEATURES = (
    "evidence",
    "evidence_squared",
    "evidence_root",
    "evidence_of_best",
    "evidence_over_mean",
    "coverage",
    "coverage_squared",
    "coverage_by_passage",
    "coverage_by_sentence",
    "coverage_around",
    "coverage_beside",
    "rarest_found",
    "words_found",
    "pairs_found",
    "longest_run",
    "numbers_found",
    "numbers_there",
    "question_found",
    "dense",
    "sought_length",
    "passage_length",
    "around_length",
    "passages",
    "rank",
    "place",
    "unspaced",
    "other_script",
)
"""Names of the numbers, in their order."""
EMBEDDED_FEATURES = ("similarity", "similarity_squared")
"""Further numbers where a model of embeddings is used."""

Floats = NDArray[np.float64]


class Features:
    """Computes the features of requests, with the word frequencies of one night.

    `embeddings` is the local model of sentence vectors; empty: none. Raises JudgeRefused where it
    cannot be loaded.
    """

    def __init__(self, corpus: Corpus, embeddings: str = "") -> None:
        self._overlap, self._counted = Overlap(corpus), not corpus.is_empty
        self._weight = lru_cache(maxsize=50_000)(corpus.weight)
        self._embeddings: Lexicon | None = None
        if embeddings:
            self._embeddings = EmbeddingLexicon(corpus, load_encoder(embeddings, 1))
        self.names = FEATURES + (EMBEDDED_FEATURES if embeddings else ())

    @staticmethod
    def model_of(settings: Settings) -> str:
        """The model whose similarities are features: that of `embeddings: local`; empty: none."""
        chosen = settings.embeddings
        return (chosen.model or LOCAL_MODEL) if chosen.local else ""

    @property
    def digest(self) -> str:
        """A digest of how the features are made. Those of a night without word counts differ."""
        return fingerprint("features", VERSION, OVERLAP_VERSION, self.names, self._counted)

    def of(self, request: Ask) -> Floats:
        """An array with a line per item and a column per feature."""
        items = items_of(request)
        if not items:
            return np.empty((0, len(self.names)))
        evidence = self.evidence(request, items)
        best, mean = max(evidence), sum(evidence) / len(evidence)
        lines = [
            self._line(item, share, best, mean) for item, share in zip(items, evidence, strict=True)
        ]
        return np.array(lines, dtype=np.float64)

    def evidence(self, request: Ask, items: Sequence[Item]) -> Sequence[float]:
        """The lexical judge's evidence on each item; without it the coverage."""
        evidence = request.prompt.evidence
        if evidence is not None:
            shares = evidence(request.data, self._overlap)
            if len(shares) == len(items):
                return shares
        return [self._overlap.coverage(item.sought, *item.passages) for item in items]

    def _line(self, item: Item, evidence: float, best: float, mean: float) -> list[float]:
        coverage = self._overlap.coverage
        whole = coverage(item.sought, *item.passages)
        by_passage = (coverage(item.sought, passage) for passage in item.passages)
        by_sentence = (coverage(item.sought, sentence) for sentence in _sentences_of(item.passages))
        beside = (coverage(item.sought, one) for one in (item.before, item.after) if one)
        line = [
            evidence,
            evidence**2,
            math.sqrt(max(evidence, 0.0)),
            evidence / best if best else 0.0,
            evidence - mean,
            whole,
            whole**2,
            max(by_passage, default=0.0) if len(item.passages) > 1 else whole,
            max(by_sentence, default=0.0) if not item.around else whole,
            coverage(item.sought, item.around) if item.around else whole,
            max(beside, default=0.0),
            *self._words(item),
            coverage(item.question, *item.passages) if item.sought != item.question else whole,
            *_shape(item),
        ]
        if self._embeddings:
            near = self._embeddings.relevance(item.sought, " ".join(item.passages))
            line += [near, near**2]
        return line

    def _words(self, item: Item) -> list[float]:
        """How words, pairs, runs and numbers of the sought text are found."""
        sought = words(item.sought[:_LONGEST])
        there = [_read(passage[:_LONGEST]) for passage in item.passages]
        known = frozenset().union(*[one for one, _ in there])
        pairs = frozenset().union(*[one for _, one in there])
        distinct = list(dict.fromkeys(sought))
        own_pairs = list(pairwise(sought))
        numbers = [one for one in distinct if one[0].isdecimal()]
        weights = [self._weight(one) for one in distinct]
        missing = [w for one, w in zip(distinct, weights, strict=True) if one not in known]
        found_pairs = [pair in pairs for pair in own_pairs]
        return [
            1 - max(missing, default=0.0) / (max(weights, default=0.0) or 1.0),
            _share([one in known for one in distinct]),
            _share(found_pairs),
            _longest_run(found_pairs) / max(1, len(own_pairs)),
            _share([number in known for number in numbers]) if numbers else 0.5,
            math.log1p(sum(one[0].isdecimal() for one in known)),
        ]


def _shape(item: Item) -> list[float]:
    """Lengths, places and scripts."""
    sought, passages = len(item.sought), sum(map(len, item.passages))
    unspaced = is_unspaced(item.sought[:_LONGEST])
    return [
        math.log1p(sought) / (1 + math.log1p(passages)),
        math.log1p(sought),
        math.log1p(passages),
        math.log1p(len(item.around)),
        math.log1p(len(item.passages)),
        math.log1p(item.rank),
        item.place,
        float(unspaced),
        float(not item.sought.isascii() and not unspaced),
    ]


@lru_cache(maxsize=1_024)
def _read(text: str) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """The words of a text, and its pairs of adjacent words."""
    tokens = words(text)
    return frozenset(tokens), frozenset(pairwise(tokens))


def _sentences_of(passages: Sequence[str]) -> list[str]:
    """The first sentences of the passages, split at signs alone, which is fast."""
    texts: list[str] = []
    for passage in passages:
        texts += [one for one in _split(passage) if one]
        if len(texts) >= _MOST_SENTENCES:
            break
    return texts[:_MOST_SENTENCES]


@lru_cache(maxsize=512)
def _split(text: str) -> tuple[str, ...]:
    return tuple(ENDS.split(text[: 10 * _LONGEST]))


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


def _longest_run(flags: Sequence[bool]) -> int:
    longest = run = 0
    for flag in flags:
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest
