"""The judge by sentence vectors that are computed on this machine.

Without a MODEL it needs the extra `retrieval-nightly[local]`.
"""

from __future__ import annotations

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.judges.base import Judge, JudgeParts


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.local import MODEL, LocalJudge

    return LocalJudge(parts.corpus, judge.argument or MODEL)


def _is_folder(argument: str) -> bool:
    """`local:NAME` is the name of a model; only `local:./PATH` is a folder."""
    return argument.startswith(("./", "../"))


local = JudgeKind(
    "local",
    _make,
    JudgeSettings,
    argument="MODEL",
    is_place=_is_folder,
    lexical=True,
    embedder="local",
    seconds_per_kb=0.08,
    sample={},
)
