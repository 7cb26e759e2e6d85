"""The judge that compares words, without network, key or model weights."""

from __future__ import annotations

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.lexical_judge import LexicalJudge

    return LexicalJudge(parts.corpus)


lexical = JudgeKind(
    "lexical", _make, JudgeSettings, former="embedded", lexical=True, free=True, sample={}
)
