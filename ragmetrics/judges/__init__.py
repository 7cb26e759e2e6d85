"""Judges: who answers what the metrics ask."""

from __future__ import annotations

import os

from ragmetrics.judges.base import Embedder, Judge
from ragmetrics.judges.corpus import Corpus
from ragmetrics.judges.embedded import EmbeddedJudge
from ragmetrics.judges.recorded import RecordedJudge
from ragmetrics.settings import Settings, api_key


def make_judge(settings: Settings, corpus: Corpus) -> Judge:
    """The judge that the settings name; JudgeRefused where it lacks its key."""
    judge = settings.judge
    if judge.name == "embedded":
        return EmbeddedJudge(corpus)
    if judge.name.startswith("recorded:"):
        return RecordedJudge(judge.name.removeprefix("recorded:"))
    from ragmetrics.judges.live import LiveJudge, make_client

    client = make_client(judge, judge.base_url, api_key(judge.api_key_env, os.environ))
    return LiveJudge(client, judge)


def make_embedder(settings: Settings, corpus: Corpus) -> Embedder:
    """The embedder that the settings name, or that goes with the judge."""
    from ragmetrics.judges.embeddings import HashedEmbedder, OpenAIEmbedder

    chosen, judge = settings.embeddings, settings.judge
    if (chosen.name or ("openai" if judge.name == "openai" else "hashed")) == "hashed":
        return HashedEmbedder(corpus)
    from ragmetrics.judges.live import make_client

    key = api_key(chosen.api_key_env or judge.api_key_env, os.environ)
    return OpenAIEmbedder(make_client(judge, chosen.base_url or judge.base_url, key), chosen.model)
