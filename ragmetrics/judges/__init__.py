"""Judges: who answers what the metrics ask."""

from __future__ import annotations

import os
from collections import Counter

from ragmetrics.judge_settings import JudgeSettings, api_key
from ragmetrics.judges.base import Embedder, Judge
from ragmetrics.judges.corpus import Corpus
from ragmetrics.judges.embedded import EmbeddedJudge
from ragmetrics.judges.local import MODEL as LOCAL_MODEL
from ragmetrics.judges.local import LocalEmbedder, LocalJudge, model_of
from ragmetrics.judges.recorded import RecordedJudge
from ragmetrics.settings import Settings


def make_judges(settings: Settings, corpus: Corpus) -> list[Judge]:
    """The judges that the settings name, each under a name of its own.

    JudgeRefused where one lacks its key.
    """
    judges = [make_judge(one, corpus) for one in settings.panel]
    seen: Counter[str] = Counter()
    for judge in judges:
        seen[judge.name] += 1
        if seen[judge.name] > 1:
            judge.name = f"{judge.name} #{seen[judge.name]}"
    return judges


def make_judge(judge: JudgeSettings, corpus: Corpus) -> Judge:
    """One judge; JudgeRefused where it lacks its key, or its extra."""
    if judge.name == "embedded":
        return EmbeddedJudge(corpus)
    if judge.name.partition(":")[0] == "local":
        return LocalJudge(corpus, model_of(judge.name))
    if judge.name.startswith("recorded:"):
        return RecordedJudge(judge.name.removeprefix("recorded:"))
    from ragmetrics.judges.live import LiveJudge, make_client

    client = make_client(judge, judge.base_url, api_key(judge.api_key_env, os.environ))
    return LiveJudge(client, judge)


def make_embedder(settings: Settings, corpus: Corpus) -> Embedder:
    """The embedder that the settings name, or that goes with the judge."""
    from ragmetrics.judges.embeddings import OPENAI_MODEL, HashedEmbedder, OpenAIEmbedder

    chosen = settings.embeddings
    by_kind = {one.name.partition(":")[0]: one for one in reversed(settings.panel)}
    kind: str = chosen.name or next(
        (one for one in ("openai", "local") if one in by_kind), "hashed"
    )
    if kind == "hashed":
        return HashedEmbedder(corpus)
    judge = by_kind.get(kind, settings.panel[0])
    if kind == "local":
        model = model_of(judge.name) if "local" in by_kind else LOCAL_MODEL
        return LocalEmbedder(chosen.model or model, chosen.threads)
    from ragmetrics.judges.live import make_client

    key = api_key(chosen.api_key_env or judge.api_key_env, os.environ)
    client = make_client(judge, chosen.base_url or judge.base_url, key)
    return OpenAIEmbedder(client, chosen.model or OPENAI_MODEL)
