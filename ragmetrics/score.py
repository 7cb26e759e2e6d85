"""Scoring: one family of metrics over one shard, written as parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from ragmetrics.drive import Broker, drive
from ragmetrics.judges import make_embedder, make_judge
from ragmetrics.judges.base import Embedder, Judge, Reply, fingerprint
from ragmetrics.judges.corpus import Corpus
from ragmetrics.protocol import Ask
from ragmetrics.records import JudgeInfo
from ragmetrics.registry import Metric, families, select
from ragmetrics.settings import Settings
from ragmetrics.stage import load_corpus, open_store, shard_range
from ragmetrics.store.files import Files
from ragmetrics.store.judgements import Judgements
from ragmetrics.store.parts import (
    SCORE_SCHEMA,
    PartWriter,
    RunRef,
    is_whole,
    read_rows,
    score_record,
    workspace,
)
from ragmetrics.text import counting_splits

Record = Callable[[Ask, Reply], None]


def judge_info(settings: Settings) -> tuple[JudgeInfo, str]:
    """Who will judge, and the fingerprint of the embedder; no call is made."""
    nothing = Corpus()
    judge, embedder = make_judge(settings, nothing), make_embedder(settings, nothing)
    info = JudgeInfo(name=judge.name, fingerprint=judge.fingerprint, note=judge.note)
    return info, embedder.fingerprint


def metric_fingerprint(metric: Metric, judge: str, embedder: str) -> str:
    """Who judged, by which prompts, metric version and parameters: scores with another
    fingerprint are not comparable.
    """
    return fingerprint(
        metric.digest, judge if metric.prompts else "", embedder if metric.embeds else ""
    )


def score_part(
    settings: Settings, ref: RunRef, names: Sequence[str], shard: int, record: Record | None = None
) -> int:
    """Score one shard by one family of metrics; return the rows scored, 0 where it was done.

    Finished judgements are found in the store. Raises JudgeRefused where no request can succeed.
    """
    files = open_store(settings)
    family = [metric for metric in select(settings.metrics) if metric.name in names]
    if all(is_whole(files, ref.scores(metric.name, shard)) for metric in family):
        return 0
    return asyncio.run(_score_part(settings, files, ref, family, shard, record))


async def _score_part(
    settings: Settings,
    files: Files,
    ref: RunRef,
    family: Sequence[Metric],
    shard: int,
    record: Record | None,
) -> int:
    corpus = load_corpus(files, ref)
    async with AsyncExitStack() as stack:
        judge, embedder = make_judge(settings, corpus), make_embedder(settings, corpus)
        stack.push_async_callback(judge.close)
        stack.push_async_callback(embedder.close)
        stores = [_judgements(files, one, ref, shard) for one in (judge, embedder)]
        broker = Broker(
            judge,
            embedder,
            reasks=settings.judge.reasks,
            kept=stores[0],
            kept_vectors=stores[1],
            record=record,
        )
        rows = await _write_scores(files, ref, family, shard, broker)
        for store in stores:
            if store:
                await asyncio.to_thread(store.compact)
    return rows


def _judgements(
    files: Files, judge: Judge | Embedder, ref: RunRef, shard: int
) -> Judgements | None:
    if not judge.keeps:
        return None
    judgements = Judgements(files, judge.fingerprint, *shard_range(shard, ref.shards))
    judgements.load()
    return judgements


async def _write_scores(
    files: Files, ref: RunRef, family: Sequence[Metric], shard: int, broker: Broker
) -> int:
    with workspace() as folder, counting_splits() as counter:
        writers = {metric.name: PartWriter(folder, SCORE_SCHEMA) for metric in family}
        async for scored in drive(read_rows(files, ref.rows(shard)), family, broker):
            for name, score in scored.scores.items():
                writers[name].add(score_record(scored.row, score), size=300)
        notes = {
            "usage": broker.tally.usage().model_dump(),
            "splits": dict(counter.counts().fallback),
        }
        for number, (name, writer) in enumerate(writers.items()):
            # The family's usage stands once, with its first metric.
            writer.finish(files, ref.scores(name, shard), {} if number else notes)
    return next(iter(writers.values())).rows


def score_families(settings: Settings) -> list[list[str]]:
    """The metrics' names by family."""
    return [[metric.name for metric in family] for family in families(select(settings.metrics))]
