"""The judge that compares words, without network, key or model weights.

Results and settings name it `embedded`, as the first versions did.
"""

from __future__ import annotations

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.lexical_judge import LexicalJudge

    return LexicalJudge(parts.corpus)


lexical = JudgeKind(
    "lexical", _make, JudgeSettings, stored="embedded", lexical=True, free=True, sample={}
)
