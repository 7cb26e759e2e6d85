"""Scoring: one family of metrics over one shard, written as parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from ragmetrics.broker import Broker, Vectors
from ragmetrics.drive import drive
from ragmetrics.judge_settings import JudgeSettings
from ragmetrics.judges import make_embedder, make_judges
from ragmetrics.judges.base import Embedder, Judge, Reply, fingerprint
from ragmetrics.judges.corpus import Corpus
from ragmetrics.panel import Member, Panel, panel_fingerprint
from ragmetrics.protocol import Ask
from ragmetrics.records import JudgeInfo, Usage
from ragmetrics.registry import Metric, chosen_metrics, families
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

Record = Callable[[Judge, Ask, Reply], None]


def judge_info(settings: Settings) -> tuple[JudgeInfo, str]:
    """Who will judge, and the fingerprint of the embedder; no call is made."""
    nothing = Corpus()
    judges, embedder = make_judges(settings, nothing), make_embedder(settings, nothing)
    repeats = [one.repeats for one in settings.panel]
    names = [
        name if times == 1 else f"{name} ({times} times)"
        for name, times in zip((judge.name for judge in judges), repeats, strict=True)
    ]
    several = len(judges) > 1
    info = JudgeInfo(
        name=f"{settings.aggregate} of {', '.join(names)}" if several else names[0],
        fingerprint=panel_fingerprint(judges, repeats, settings.aggregate),
        note=_notes(judges) if several else judges[0].note,
        panel=[judge.name for judge in judges] if several else [],
    )
    return info, embedder.fingerprint


def _notes(judges: Sequence[Judge]) -> str:
    return "; ".join(f"{judge.name}: {judge.note}" for judge in judges if judge.note)


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
    family = [metric for metric in chosen_metrics(settings) if metric.name in names]
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
        judges, embedder = make_judges(settings, corpus), make_embedder(settings, corpus)
        asked: list[Judge | Embedder] = [*judges, embedder]
        for one in asked:
            stack.push_async_callback(one.close)
        stores = [_judgements(files, one, ref, shard) for one in asked]
        vectors = Vectors(embedder, stores[-1])
        members = [
            Member(
                Broker(judge, vectors, reasks=chosen.reasks, kept=store, record=record),
                chosen.repeats,
            )
            for judge, chosen, store in zip(judges, settings.panel, stores, strict=False)
        ]
        panel = Panel(members, settings.aggregate)
        rows = await _write_scores(settings, files, ref, family, shard, panel, vectors)
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
    settings: Settings,
    files: Files,
    ref: RunRef,
    family: Sequence[Metric],
    shard: int,
    panel: Panel,
    vectors: Vectors,
) -> int:
    with workspace() as folder, counting_splits() as counter:
        writers = {metric.name: PartWriter(folder, SCORE_SCHEMA) for metric in family}
        async for scored in drive(read_rows(files, ref.rows(shard)), family, panel):
            for name, score in scored.scores.items():
                writers[name].add(score_record(scored.row, score), size=300)
        notes = {
            "usage": {
                "embeddings": vectors.tally.usage().model_dump(),
                **{
                    one.name: priced(chosen, one.broker.tally.usage()).model_dump()
                    for one, chosen in zip(panel.members, settings.panel, strict=True)
                },
            },
            "refused": {
                **{
                    one.name: str(one.broker.refusal) for one in panel.members if one.broker.refusal
                },
                **({"embeddings": str(vectors.refusal)} if vectors.refusal else {}),
            },
            "splits": dict(counter.counts().fallback),
        }
        for number, (name, writer) in enumerate(writers.items()):
            # The family's usage stands once, with its first metric.
            writer.finish(files, ref.scores(name, shard), {} if number else notes)
    return next(iter(writers.values())).rows


def priced(judge: JudgeSettings, usage: Usage) -> Usage:
    """What the judge asked for, in money, where the settings say its price."""
    prices = (judge.usd_per_million_prompt_tokens, judge.usd_per_million_completion_tokens)
    if prices[0] is None or prices[1] is None:
        return usage
    usd = (usage.prompt_tokens * prices[0] + usage.completion_tokens * prices[1]) / 1e6
    return usage.model_copy(update={"usd": usd})


def score_families(settings: Settings) -> list[list[str]]:
    """The metrics' names by family."""
    return [[metric.name for metric in family] for family in families(chosen_metrics(settings))]
