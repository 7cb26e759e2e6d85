"""What the parts of a process share: judges, embedder, and the budget of the run.

A judge over a network is created once per process: all parts share its connections, its limits and
its requests in flight. A local judge knows the corpus of the run and belongs to one part.

Each part adds its portion of the budget's limits, minus what it used in an earlier attempt. All
parts of the process draw on the sum. Processes share only the plan and never use the portions of
another process, so all processes together stay within the limits.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ragmetrics.config import JudgeSettings, Settings, api_key
from ragmetrics.http import PerLoop
from ragmetrics.judges import (
    Corpus,
    Embedder,
    Judge,
    JudgeClient,
    SingleFlight,
    can_answer,
    expect_some,
    make_embedder,
    make_member,
    names_of,
)
from ragmetrics.metrics import Metric
from ragmetrics.storage import Files

J = TypeVar("J", Judge, Embedder)


@dataclass(frozen=True)
class _Open(Generic[J]):
    """A judge or embedder that parts share, with its requests in flight."""

    judge: J
    single_flight: SingleFlight = field(default_factory=SingleFlight)


@dataclass(frozen=True)
class PooledJudge:
    """A judge of the panel with its name, its settings and its requests in flight."""

    name: str
    chosen: JudgeSettings
    judge: Judge
    single_flight: SingleFlight


@dataclass(frozen=True)
class JudgePool:
    """The judges and the embedder of one part."""

    judges: Sequence[PooledJudge]
    embedder: Embedder
    embedding: SingleFlight


_judges: PerLoop[_Open[Judge]] = PerLoop(lambda held: held.judge.close())

_embedders: PerLoop[_Open[Embedder]] = PerLoop(lambda held: held.judge.close())


@asynccontextmanager
async def keep_open() -> AsyncIterator[None]:
    """Keep the clients of judges and embedders open between parts while this context is open."""
    async with _judges.keep(), _embedders.keep():
        yield


@asynccontextmanager
async def acquire_judges(
    settings: Settings, corpus: Corpus, files: Files
) -> AsyncIterator[JudgePool]:
    """The panel and the embedder of the settings, for as long as a part needs them.

    Raises JudgeRefused when no judge has its key, or when a package that a judge needs is missing.
    """
    async with AsyncExitStack() as stack:
        held = []
        seen: Counter[str] = Counter()
        for chosen in settings.panel:
            key = _key(chosen, settings, files)
            if key:
                seen[key] += 1  # equal judges of one panel do not share replies
                key = f"{key} {seen[key]}"

            def make(chosen: JudgeSettings = chosen) -> _Open[Judge]:
                return _Open(make_member(chosen, corpus, files))

            shared = _judges.hold(key, make)
            held.append(await stack.enter_async_context(shared))
        expect_some([one.judge for one in held])
        embedder = await stack.enter_async_context(
            _embedders.hold(
                _embedder_key(settings, files),
                lambda: _Open(make_embedder(settings, corpus)),
            )
        )
        names = names_of([one.judge for one in held])
        judges = [
            PooledJudge(name, chosen, shared_judge.judge, shared_judge.single_flight)
            for name, chosen, shared_judge in zip(names, settings.panel, held, strict=True)
        ]
        yield JudgePool(judges, embedder.judge, embedder.single_flight)


def _key(chosen: JudgeSettings, settings: Settings, files: Files) -> str | None:
    """Parts with equal keys share the judge. None: the judge belongs to one part."""
    if not chosen.remote:
        return None
    secret = api_key(chosen.api_key_env, os.environ)
    return f"{chosen.model_dump_json()} {files.root} {hash(secret)}"


def _embedder_key(settings: Settings, files: Files) -> str | None:
    """Parts with equal keys share the embedder. None: it belongs to one part."""
    chosen, judges = settings.embeddings, [one for one in settings.panel if one.reads_prompts]
    if not settings.embedder.remote:
        return None
    secrets = [api_key(name, os.environ) for name in _key_names(settings)]
    return f"{chosen.model_dump_json()} {judges} {files.root} {hash(tuple(secrets))}"


def _key_names(settings: Settings) -> list[str]:
    names = [one.api_key_env for one in settings.panel]
    return [settings.embeddings.api_key_env, *names] if settings.embeddings.api_key_env else names


@dataclass
class Member:
    """A judge of the panel."""

    client: JudgeClient
    repeats: int = 1

    @property
    def name(self) -> str:
        """The name of the judge."""
        return self.client.name

    def can_score(self, metric: Metric) -> bool:
        """Whether the judge can answer all prompts of a metric."""
        return can_answer(self.client.judge, metric.prompts)
