"""Scoring: one family of metrics over one shard, written as parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from ragmetrics import event_loop as loop
from ragmetrics.config import EmbeddingSettings, JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError
from ragmetrics.judges import (
    EMBEDDING,
    Corpus,
    Embedder,
    EmbeddingClient,
    Judge,
    JudgeClient,
    MeteredJudge,
    Record,
    ReplyCache,
    UsageCounters,
    budget_in_use,
    deadline_at,
    leave_quota,
    use_budget,
    use_deadline,
)
from ragmetrics.metrics import Metric, metric_families
from ragmetrics.model import EMBEDDINGS, LogRow
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.budget.pool import open_budget_pool
from ragmetrics.scoring.driver import drive
from ragmetrics.scoring.fingerprint import add_price
from ragmetrics.scoring.judge_pool import JudgePool, acquire_judges, keep_open
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.metric_errors import MetricErrors
from ragmetrics.scoring.panel import Member, Panel
from ragmetrics.scoring.reuse import take_over
from ragmetrics.scoring.sampling.panel import SampledPanel
from ragmetrics.scoring.sampling.plan import SamplePlan, load_sample
from ragmetrics.scoring.sharding import shard_range
from ragmetrics.scoring.staging import load_corpus
from ragmetrics.storage import (
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    expect,
    is_whole,
    open_store,
    question_keys,
    read_row_batches,
    score_record,
    workspace,
)
from ragmetrics.text import SplitCounter, counting_splits

_PARTS_AT_ONCE = 4


def score_part(
    settings: Settings,
    ref: RunRef,
    names: Sequence[str],
    shard: int,
    record: Record | None = None,
    kept: Files | None = None,
    until: datetime | None = None,
) -> int:
    """Score one shard by one family of metrics; return the rows scored, 0 where it was done.

    Judgements are found and kept in the run's store, or in `kept`. After `until` nothing is asked:
    rows that need it are `judge_failed`, and so are those that are left when a judge that has
    answered refuses. Raises JudgeRefused where no request can succeed.
    """
    with use_deadline(deadline_at(until)):
        return loop.run(_score_part(settings, ref, names, shard, record, kept))


def score_together(
    settings: Settings,
    ref: RunRef,
    todo: Sequence[tuple[Sequence[str], int]],
    record: Record | None = None,
    done: Callable[[Sequence[str]], None] | None = None,
    kept: Files | None = None,
    until: datetime | None = None,
) -> list[RagmetricsError]:
    """Score parts side by side, so that the judges are kept busy from the first to the last.

    Returns why parts could not be scored: one that a judge refuses keeps no other from being
    written. After `until` nothing is asked.
    """
    with use_deadline(deadline_at(until)):
        return loop.run(_score_together(settings, ref, todo, record, done, kept))


async def _score_together(
    settings: Settings,
    ref: RunRef,
    todo: Sequence[tuple[Sequence[str], int]],
    record: Record | None,
    done: Callable[[Sequence[str]], None] | None,
    kept: Files | None,
) -> list[RagmetricsError]:
    problems: list[RagmetricsError] = []

    async def one(names: Sequence[str], shard: int) -> None:
        try:
            await _score_part(settings, ref, names, shard, record, kept)
        except RagmetricsError as error:
            problems.append(error)
        if done:
            done(names)

    async with open_budget_pool(open_store(settings), ref) as funds:
        if funds:
            await funds.bring(todo)
            # A purse that ends before the rows do ends on the last shards, for most metrics alike.
            todo = sorted(todo, key=lambda part: part[1])
        try:
            async with keep_open(), asyncio.TaskGroup() as group:
                for names, shard in todo:
                    group.create_task(one(names, shard))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await leave_quota(kept or open_store(settings))
    return problems


async def _score_part(
    settings: Settings,
    ref: RunRef,
    names: Sequence[str],
    shard: int,
    record: Record | None,
    kept: Files | None,
) -> int:
    files = open_store(settings)
    expect(files.place)  # whoever staged the run has reached it
    kept = kept or files
    family = [metric for metric in chosen_metrics(settings) if metric.name in names]
    async with open_budget_pool(files, ref) as funds:
        if funds:
            await funds.bring([(names, shard)])
        async with _room(settings):
            if await asyncio.to_thread(_is_done, files, ref, family, shard):
                return 0
            own = [metric.name for metric in family]
            if record is None and await asyncio.to_thread(take_over, files, ref, own, shard):
                return 0
            corpus = await asyncio.to_thread(load_corpus, files, ref)
            sample = await asyncio.to_thread(load_sample, files, ref)
            async with acquire_judges(settings, corpus, kept) as seats:
                plan = funds.plan if funds else None
                work = _Work(settings, files, kept, ref, family, shard, plan, sample, corpus)
                with use_budget(funds.purse if funds else None):
                    return await work.score(seats, record)


# By loop: a forked child has one of its own, whose parts do not wait for its parent's.
_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _room(settings: Settings) -> AbstractAsyncContextManager[object]:
    """Waits for room: what parts hold in memory is bounded. A batch waits for all of them, so that
    their requests go together.
    """
    waits = any(one.name == "openai-batch" for one in settings.panel)
    if waits:
        return nullcontext()
    return _rooms.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_PARTS_AT_ONCE))


def _is_done(files: Files, ref: RunRef, family: Sequence[Metric], shard: int) -> bool:
    return all(is_whole(files, ref.scores(metric.name, shard)) for metric in family)


@dataclass(frozen=True)
class _Work:
    """One part: a family of metrics over a shard."""

    settings: Settings
    files: Files
    kept: Files
    """Where the judgements are; the rows and scores are in `files`."""
    ref: RunRef
    family: Sequence[Metric]
    shard: int
    plan: BudgetPlan | None
    sample: SamplePlan | None
    corpus: Corpus

    async def score(self, seats: JudgePool, record: Record | None) -> int:
        """Judge the rows and write the scores; return how many rows there were."""
        prompts = [prompt.name for metric in self.family for prompt in metric.prompts]
        stores = [
            await asyncio.to_thread(self._judgements, seat.judge, prompts, seat.chosen.ttl_days)
            for seat in seats.judges
        ]
        vectors_kept = await asyncio.to_thread(self._judgements, seats.embedder, [EMBEDDING])
        vectors = EmbeddingClient(
            seats.embedder, vectors_kept, seats.embedding, self.settings.embeddings
        )
        purse = budget_in_use()
        members = [
            Member(
                JudgeClient(
                    seat.judge,
                    vectors,
                    name=seat.name,
                    reasks=seat.chosen.reasks,
                    cache=kept,
                    single_flight=seat.once,
                    fuse=self.settings.fuse is not None and seat.chosen.remote,
                    record=record,
                    meter=MeteredJudge(purse, seat.chosen)
                    if purse and seat.chosen.remote
                    else None,
                ),
                seat.chosen.repeats,
            )
            for seat, kept in zip(seats.judges, stores, strict=True)
        ]
        rows = await self._write(self._panel(members), vectors)
        for kept in (*stores, vectors_kept):
            if kept:
                await asyncio.to_thread(kept.compact)
        return rows

    def _panel(self, members: Sequence[Member]) -> Panel:
        how = self.settings.aggregate
        if self.sample is None:
            return Panel(members, how, self.plan)
        return SampledPanel(members, how, self.plan, self.sample, self.corpus)

    def _judgements(
        self, judge: Judge | Embedder, prompts: Sequence[str], ttl_days: int | None = None
    ) -> ReplyCache | None:
        if not judge.keeps:
            return None
        low, high = shard_range(self.shard, self.ref.shards)
        judgements = ReplyCache(
            self.kept, judge.fingerprint, low, high, prompts=prompts, ttl_days=ttl_days
        )
        judgements.load(question_keys(self.files, self.ref.rows(self.shard)))
        return judgements

    async def _write(self, panel: Panel, vectors: EmbeddingClient) -> int:
        with workspace() as folder, counting_splits() as counter:
            writers = {metric.name: PartWriter(folder, SCORE_SCHEMA) for metric in self.family}
            rows = _rows(self.files, self.ref.rows(self.shard))
            errors = MetricErrors()
            async with aclosing(rows), aclosing(drive(rows, self.family, panel)) as driven:
                async for scored in driven:
                    for name, score in scored.scores.items():
                        errors.note(name, scored.row.id, score)
                        writers[name].add(score_record(scored.row, score), size=300)
            notes = {**self._notes(panel, vectors, counter), "metric_errors": errors.notes()}
            if await asyncio.to_thread(_is_done, self.files, self.ref, self.family, self.shard):
                return next(iter(writers.values())).rows  # by another run at the same time
            for number, (name, writer) in enumerate(writers.items()):
                # The family's usage stands once, with its first metric.
                path = self.ref.scores(name, self.shard)
                await asyncio.to_thread(writer.finish, self.files, path, {} if number else notes)
        return next(iter(writers.values())).rows

    def _notes(
        self, panel: Panel, vectors: EmbeddingClient, counter: SplitCounter
    ) -> dict[str, Any]:
        usage = {EMBEDDINGS: _by_metric(vectors.counters, self.settings.embeddings)}
        refused = {EMBEDDINGS: vectors.refusal}
        for member, chosen in zip(panel.members, self.settings.panel, strict=True):
            usage[member.name] = _by_metric(member.broker.counters, chosen)
            refused[member.name] = member.broker.refusal
        overdue = [vectors.overdue, *(member.broker.overdue for member in panel.members)]
        remote = zip(panel.members, self.settings.panel, strict=True)
        return {
            "usage": usage,
            "paid": [EMBEDDINGS, *(member.name for member, chosen in remote if chosen.remote)],
            "refused": {name: str(error) for name, error in refused.items() if error},
            "overdue": next((str(error) for error in overdue if error), ""),
            "splits": dict(counter.counts().fallback),
        }


def _by_metric(tallies: UsageCounters, prices: JudgeSettings | EmbeddingSettings) -> dict[str, Any]:
    return {
        metric: add_price(prices, tally.usage()).model_dump() for metric, tally in tallies.items()
    }


async def _rows(files: Files, path: str) -> AsyncGenerator[LogRow, None]:
    """The rows of a part, read in a thread: a bucket is slow."""
    batches = read_row_batches(files, path)
    reading: asyncio.Task[list[LogRow] | None] | None = None
    try:
        while True:
            reading = asyncio.create_task(asyncio.to_thread(next, batches, None))
            if (batch := await asyncio.shield(reading)) is None:
                return
            for row in batch:
                yield row
    finally:
        if reading:  # nobody can interrupt a thread that reads
            await asyncio.wait([reading])
        await asyncio.to_thread(batches.close)


def score_families(settings: Settings) -> list[list[str]]:
    """The metrics' names by family."""
    return [
        [metric.name for metric in family]
        for family in metric_families(chosen_metrics(settings), fused=bool(settings.fuse))
    ]
