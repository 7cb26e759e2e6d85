"""The judge that replays a recording of replies; `PATH#JUDGE` is one judge of a panel."""

from __future__ import annotations

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts
from ragmetrics.records import Ask, dump_json


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.replayed import RecordedJudge

    return RecordedJudge(judge.argument)


def _sample_files(request: Ask) -> dict[str, str]:
    reply = {"key": request.key, "prompt": request.prompt.name, "reply": '{"grade": 2}'}
    return {"replies.jsonl": dump_json(reply)}


recorded = JudgeKind(
    "recorded",
    _make,
    JudgeSettings,
    argument="PATH",
    argument_only=True,
    is_place=lambda argument: True,
    writes=True,
    sample={"name": "recorded:{folder}/replies.jsonl"},
    sample_files=_sample_files,
)
