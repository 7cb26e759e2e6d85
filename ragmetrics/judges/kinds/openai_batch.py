"""A language model that is asked by OpenAI's batches, at half the price."""

from __future__ import annotations

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts
from ragmetrics.judges.kinds.openai import openai


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.batch import BatchJudge
    from ragmetrics.judges.batch_api import make_client

    return BatchJudge(make_client(parts.access(judge), judge), judge, parts.files)


openai_batch = JudgeKind(
    "openai_batch",
    _make,
    JudgeSettings,
    stored="openai-batch",
    remote=True,
    reads_prompts=True,
    writes=True,
    at_once=openai.key,
    embedder="openai",
    probe=openai.probe,
    ends=openai.ends,
    sample=openai.sample,
)
