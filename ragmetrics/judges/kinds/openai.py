"""A language model at an OpenAI-compatible endpoint, which answers each request at once."""

from __future__ import annotations

from datetime import date

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.live import LiveJudge

    return LiveJudge(parts.access(judge), judge)


async def _probe(judge: JudgeSettings, *, ask: bool) -> str:
    from ragmetrics.judges.probe import probe_chat

    return await probe_chat(judge, ask=ask)


async def _ends(judge: JudgeSettings) -> date | None:
    from ragmetrics.judges.probe import shutdown_date

    return await shutdown_date(judge)


openai = JudgeKind(
    "openai",
    _make,
    JudgeSettings,
    remote=True,
    live=True,
    reads_prompts=True,
    writes=True,
    embedder="openai",
    probe=_probe,
    ends=_ends,
    sample={"base_url": "{url}"},
)
