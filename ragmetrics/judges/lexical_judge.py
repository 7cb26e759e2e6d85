"""The embedded judge: a lexical baseline that needs no network, key or model weights.

It answers a request by the prompt's own `baseline`, from the weighted overlap of words alone (see
`term_overlap`); docs/judges.md states its accuracy. It serves to try out the product, and where no
LLM may be called.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Reply, fingerprint
from ragmetrics.judges.term_overlap import Overlap
from ragmetrics.judges.word_frequencies import Corpus
from ragmetrics.model import Ask

VERSION = 3


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
        """The baseline's verdict. Raises JudgeRefused for a prompt without a baseline."""
        baseline = request.prompt.baseline
        if baseline is None:
            raise JudgeRefused(
                f"the embedded judge cannot answer the prompt {request.prompt.name!r}: "
                "it has no baseline; choose another judge"
            )
        return Reply(verdict=baseline(request.data, self._overlap))

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The baseline's values before thresholding; None for a prompt without any."""
        evidence = request.prompt.evidence
        return evidence(request.data, self._overlap) if evidence else None

    async def close(self) -> None:
        """Nothing to close."""
