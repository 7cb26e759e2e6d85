"""The judges of one part and its embedder, shared with the parts beside it.

A judge that is reached over a network is made once per process: its connections, its limits and
the answers on their way serve all parts at once. One that computes here knows the run's corpus,
and belongs to its part.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from ragmetrics.config import JudgeSettings, Settings, api_key
from ragmetrics.event_loop import PerLoop
from ragmetrics.judges import (
    Corpus,
    Embedder,
    Judge,
    SingleFlight,
    expect_some,
    make_embedder,
    make_member,
    names_of,
)
from ragmetrics.storage import Files


@dataclass(frozen=True)
class _JudgeAtWork:
    judge: Judge
    once: SingleFlight = field(default_factory=SingleFlight)


@dataclass(frozen=True)
class _EmbedderAtWork:
    embedder: Embedder
    once: SingleFlight = field(default_factory=SingleFlight)


@dataclass(frozen=True)
class PooledJudge:
    """A judge of the panel: under what name, with what settings, and what is asked of it now."""

    name: str
    chosen: JudgeSettings
    judge: Judge
    once: SingleFlight


@dataclass(frozen=True)
class JudgePool:
    """All who work for one part."""

    judges: Sequence[PooledJudge]
    embedder: Embedder
    embedding: SingleFlight


_judges: PerLoop[_JudgeAtWork] = PerLoop(lambda held: held.judge.close())
_embedders: PerLoop[_EmbedderAtWork] = PerLoop(lambda held: held.embedder.close())


@asynccontextmanager
async def keep_open() -> AsyncIterator[None]:
    """While this is open, who is reached over a network stays so between one part and the next."""
    async with _judges.keep(), _embedders.keep():
        yield


@asynccontextmanager
async def acquire_judges(
    settings: Settings, corpus: Corpus, files: Files
) -> AsyncIterator[JudgePool]:
    """The panel and the embedder of the settings, while a part needs them.

    Raises JudgeRefused where none has its key, or one lacks its extra.
    """
    async with AsyncExitStack() as stack:
        held = []
        seen: Counter[str] = Counter()
        for chosen in settings.panel:
            key = _key(chosen, settings, files)
            if key:
                seen[key] += 1  # equal judges of one panel do not answer for each other
                key = f"{key} {seen[key]}"

            def make(chosen: JudgeSettings = chosen) -> _JudgeAtWork:
                return _JudgeAtWork(make_member(chosen, corpus, settings.fuse, files))

            shared = _judges.hold(key, make)
            held.append(await stack.enter_async_context(shared))
        expect_some([one.judge for one in held])
        embedder = await stack.enter_async_context(
            _embedders.hold(
                _embedder_key(settings, files),
                lambda: _EmbedderAtWork(make_embedder(settings, corpus, files)),
            )
        )
        names = names_of([one.judge for one in held])
        judges = [
            PooledJudge(name, chosen, one.judge, one.once)
            for name, chosen, one in zip(names, settings.panel, held, strict=True)
        ]
        yield JudgePool(judges, embedder.embedder, embedder.once)


def _key(chosen: JudgeSettings, settings: Settings, files: Files) -> str | None:
    """Equal where one judge serves both; None where it serves its part alone."""
    if not chosen.remote:
        return None
    secret = api_key(chosen.api_key_env, os.environ)
    return f"{chosen.model_dump_json()} {settings.fuse} {files.root} {hash(secret)}"


def _embedder_key(settings: Settings, files: Files) -> str | None:
    """Equal where one embedder serves both; `hashed` knows the corpus and serves its part alone."""
    chosen, judges = settings.embeddings, [one for one in settings.panel if one.remote]
    if chosen.name in ("hashed", "local") or not (judges or chosen.name):
        return None
    secrets = [api_key(name, os.environ) for name in _key_names(settings)]
    return f"{chosen.model_dump_json()} {judges} {files.root} {hash(tuple(secrets))}"


def _key_names(settings: Settings) -> list[str]:
    names = [one.api_key_env for one in settings.panel]
    return [settings.embeddings.api_key_env, *names] if settings.embeddings.api_key_env else names
