"""The judge that replays a recording of replies: `recorded:PATH` or `recorded:PATH#JUDGE`."""

from __future__ import annotations

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.replayed import RecordedJudge

    return RecordedJudge(judge.argument)


recorded = JudgeKind(
    "recorded",
    _make,
    JudgeSettings,
    argument="PATH",
    argument_only=True,
    is_place=lambda argument: True,
    writes=True,
)
