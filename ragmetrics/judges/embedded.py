"""The embedded judge: no network, no key, no weights. A lexical baseline, and it says so.

It answers a prompt by the prompt's own `baseline`, which sees nothing but weighted overlap of
words. It lets a newcomer see the whole thing work and serves where no LLM may be called.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Reply, fingerprint
from ragmetrics.judges.corpus import Corpus, words
from ragmetrics.protocol import Ask

VERSION = 1
_TEXTS = 4_096


class Overlap:
    """Weighted overlap of words, the weights being the rarity of words in a corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._weight = lru_cache(maxsize=50_000)(corpus.weight)
        self._words = lru_cache(maxsize=_TEXTS)(lambda text: frozenset(words(text)))

    def coverage(self, claim: str, passage: str) -> float:
        """Share of the claim's word weight that the passage holds.

            coverage = sum of w(t) for t in claim and passage / sum of w(t) for t in claim

        Range [0, 1]; 0 for a claim without words.
        """
        # Sorted, because the order of a set differs between processes and with it the last bit.
        weights = [(word, self._weight(word)) for word in sorted(self._words(claim))]
        total = sum(weight for _, weight in weights)
        held = self._words(passage)
        return sum(weight for word, weight in weights if word in held) / total if total else 0.0


class EmbeddedJudge:
    """Answers each request by its prompt's baseline."""

    name = "embedded"
    note = "a lexical baseline, not an LLM: trust its changes more than its values"
    concurrency = 1
    keeps = False

    def __init__(self, corpus: Corpus) -> None:
        self.fingerprint = fingerprint("embedded", VERSION)
        self._overlap = Overlap(corpus)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The baseline's verdict; JudgeRefused for a prompt that has none."""
        baseline = request.prompt.baseline
        if baseline is None:
            raise JudgeRefused(
                f"the embedded judge cannot answer the prompt {request.prompt.name!r}: "
                "it has no baseline; choose another judge"
            )
        return Reply(verdict=baseline(request.data, self._overlap))

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The strengths that the baseline's thresholds cut; None for a prompt that has none."""
        evidence = request.prompt.evidence
        return evidence(request.data, self._overlap) if evidence else None

    async def close(self) -> None:
        """Nothing to give back."""
