"""Scores one part: one family of metrics over one shard."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from typing import Any
from weakref import WeakKeyDictionary

from ragmetrics.config import EmbeddingSettings, JudgeSettings, Settings
from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.judges import (
    Corpus,
    Embedder,
    EmbeddingClient,
    Judge,
    JudgeClient,
    Reply,
    ReplyCache,
    use_budget,
)
from ragmetrics.metrics import Metric
from ragmetrics.records import EMBEDDINGS, UNSETTLED, Ask, LogRow, Usage, deadline_at, use_deadline
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.driver import drive
from ragmetrics.scoring.judge_pool import JudgePool, acquire_judges, keep_open, open_budget_pool
from ragmetrics.scoring.member import Member
from ragmetrics.scoring.metric_choice import add_price, chosen_metrics
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.reuse import reuse_part
from ragmetrics.scoring.run_summary import MetricErrors
from ragmetrics.scoring.sampling.cheap import make_cheap_judges
from ragmetrics.scoring.sampling.cheap_scores import load_cheap
from ragmetrics.scoring.sampling.panel import SampledPanel
from ragmetrics.scoring.sampling.plan import SamplePlan, load_sample
from ragmetrics.scoring.sharding import shard_range
from ragmetrics.scoring.staging import load_corpus
from ragmetrics.scoring.unanswered import UnansweredRows
from ragmetrics.storage import (
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    StoredPart,
    expect,
    open_store,
    score_record,
    workspace,
)
from ragmetrics.text import SplitCounter, counting_splits

Part = tuple[Sequence[str], int]
"""The names of a family of metrics, and the number of a shard."""
Done = Callable[[Sequence[str]], None]
"""Called after each part with the names of its metrics."""

_PARTS_AT_ONCE = 4


def score_part(
    settings: Settings,
    ref: RunRef,
    names: Sequence[str],
    shard: int,
    kept: Files | None = None,
    until: datetime | None = None,
) -> PartReport | None:
    """Score one part of a run. See `RunScorer`."""
    return RunScorer(settings, ref, kept=kept, until=until).score(names, shard)


@dataclass(frozen=True)
class PartReport:
    """What scoring one part took, for the log of whoever scored it."""

    rows: int
    usage: Usage
    """Of all judges and of the embedder together."""
    failed: dict[str, int]
    """Scores that should have a value and have none, by status."""

    def __str__(self) -> str:
        """`50 rows; 40 requests, 12 answers from the store, 5,210 tokens; failed: 2 refused`."""
        usage = self.usage
        asked = (
            f"{self.rows:,} rows; {usage.requests:,} requests, {usage.answered_from_store:,} "
            f"answers from the store, {usage.tokens:,} tokens"
        )
        failures = {**usage.failures, **self.failed}
        told = ", ".join(f"{count:,} {kind}" for kind, count in failures.items())
        return f"{asked}; failed: {told or 'none'}"


@dataclass(frozen=True)
class RunScorer:
    """Scores parts of a run: families of metrics over shards."""

    settings: Settings
    ref: RunRef
    record: Record | None = None
    kept: Files | None = None
    """The store with the reply cache; None: the run's store."""
    until: datetime | None = None
    """After this moment no request is sent, and rows that need one get `judge_failed`."""

    def score(self, names: Sequence[str], shard: int) -> PartReport | None:
        """Score one shard by one family of metrics. Returns what it took, None if it was done.

        Rows get `judge_failed` also when a judge refuses after it has answered. Raises JudgeRefused
        when no request can succeed.
        """
        with use_deadline(deadline_at(self.until)):
            return run_coroutine(self._score(names, shard))

    def score_together(
        self,
        todo: Sequence[tuple[Sequence[str], int]],
        done: Callable[[Sequence[str]], None] | None,
    ) -> list[RagmetricsError]:
        """Score parts concurrently, so that the judges stay busy.

        Returns the errors of parts that could not be scored; the others are written all the same.
        """
        with use_deadline(deadline_at(self.until)):
            return run_coroutine(self._score_together(todo, done))

    async def _score_together(
        self,
        todo: Sequence[tuple[Sequence[str], int]],
        done: Callable[[Sequence[str]], None] | None,
    ) -> list[RagmetricsError]:
        problems: list[RagmetricsError] = []

        async def one(names: Sequence[str], shard: int) -> None:
            try:
                await self._score(names, shard)
            except RagmetricsError as error:
                problems.append(error)
            if done:
                done(names)

        files = open_store(self.settings)
        async with open_budget_pool(files, self.ref) as pool:
            if pool:
                await pool.add_parts(todo)
                # By shard: if the budget runs out, the last shards lack scores, for all metrics
                # alike.
                todo = sorted(todo, key=lambda part: part[1])
            try:
                async with keep_open(), asyncio.TaskGroup() as group:
                    for names, shard in todo:
                        group.create_task(one(names, shard))
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None
        return problems

    async def _score(self, names: Sequence[str], shard: int) -> PartReport | None:
        settings, ref, files = self.settings, self.ref, open_store(self.settings)
        expect(files.place)  # the process that staged the run has reached the bucket
        kept = self.kept or files
        family = family_of(settings, names)
        if not 0 <= shard < ref.shards:
            raise InputError(f"run {ref.run} has no shard {shard}; it has {ref.shards}")
        own = [metric.name for metric in family]
        async with open_budget_pool(files, ref) as pool:
            if pool:
                await pool.add_parts([(names, shard)])
            async with _part_slot(settings):
                if await asyncio.to_thread(_is_done, files, ref, family, shard):
                    return None
                if self.record is None and await asyncio.to_thread(
                    reuse_part, files, ref, own, shard
                ):
                    return None
                corpus = await asyncio.to_thread(load_corpus, files, ref)
                sample = await asyncio.to_thread(load_sample, files, ref)
                async with acquire_judges(settings, corpus, kept) as judges:
                    plan = pool.plan if pool else None
                    work = PartScorer(settings, files, kept, ref, family, shard, plan, sample)
                    with use_budget(pool.limiter if pool else None):
                        return await work.score(judges, self.record, corpus)


# One semaphore per event loop: a forked child has its own loop and does not wait for its parent.
_part_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _part_slot(settings: Settings) -> AbstractAsyncContextManager[object]:
    """Limits the number of parts in progress, to bound memory. Parts of a batch judge are not
    limited, because a batch collects the requests of all parts.
    """
    waits = any(one.waits for one in settings.panel)
    if waits:
        return nullcontext()
    return _part_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_PARTS_AT_ONCE))


def family_of(settings: Settings, names: Sequence[str]) -> list[Metric]:
    """The metrics of the settings with some names. Raises InputError for a name that none has."""
    chosen = {metric.name: metric for metric in chosen_metrics(settings)}
    if unknown := [name for name in names if name not in chosen] or ([] if names else [""]):
        raise InputError(f"{unknown[0]!r} is not scored; scored are: {', '.join(chosen)}")
    return [metric for metric in chosen.values() if metric.name in names]


def _is_done(files: Files, ref: RunRef, family: Sequence[Metric], shard: int) -> bool:
    return all(StoredPart(files, ref.scores(metric.name, shard)).is_whole() for metric in family)


Record = Callable[[str, Ask, Reply], None]
"""Gets each reply with the name of its judge and the request."""


@dataclass(frozen=True)
class Clients:
    """The clients of a part's judges and of its embedder, and their reply caches."""

    members: Sequence[Member]
    embeddings: EmbeddingClient
    caches: Sequence[ReplyCache | None]

    def usage(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """Usage by judge, then by metric, with its price."""
        usage = {EMBEDDINGS: _by_metric(self.embeddings, settings.embeddings)}
        for member, chosen in zip(self.members, settings.panel, strict=True):
            usage[member.name] = _by_metric(member.client, chosen)
        return usage

    def total(self) -> Usage:
        """Usage of all judges and of the embedder together, without its price."""
        counters = [self.embeddings.counters, *(one.client.counters for one in self.members)]
        return sum((counter.usage() for counter in counters), Usage())


@dataclass(frozen=True)
class PartScorer:
    """Scores one part: a family of metrics over a shard."""

    settings: Settings
    files: Files
    """The store with the rows and scores."""
    kept: Files
    """The store with the reply cache."""
    ref: RunRef
    family: Sequence[Metric]
    shard: int
    plan: BudgetPlan | None = None
    sample: SamplePlan | None = None
    cache: type[ReplyCache] = ReplyCache

    async def score(self, judges: JudgePool, record: Record | None, corpus: Corpus) -> PartReport:
        """Judge the rows and write the scores. Returns what it took."""
        clients = await self.open_clients(judges, record)
        panel = await asyncio.to_thread(self._panel, clients.members, corpus)
        report = await self._write(panel, clients)
        for cache in clients.caches:
            if cache:
                await asyncio.to_thread(cache.compact)
        return report

    async def open_clients(self, judges: JudgePool, record: Record | None) -> Clients:
        """Read the reply caches, and make the clients of the judges and of the embedder."""
        prompts = [prompt.name for metric in self.family for prompt in metric.prompts]
        caches = [
            await asyncio.to_thread(self._open_cache, one.judge, prompts, one.chosen.ttl_days)
            for one in judges.judges
        ]
        cached_vectors = await asyncio.to_thread(
            self._open_cache, judges.embedder, [EmbeddingClient.prompt]
        )
        embeddings = EmbeddingClient(
            judges.embedder, cached_vectors, judges.embedding, self.settings.embeddings
        )
        members = [
            Member(
                JudgeClient.of(
                    one.chosen,
                    one.judge,
                    embeddings,
                    name=one.name,
                    cache=cache,
                    single_flight=one.single_flight,
                    record=record,
                ),
                one.chosen.repeats,
            )
            for one, cache in zip(judges.judges, caches, strict=True)
        ]
        return Clients(members, embeddings, [*caches, cached_vectors])

    def _panel(self, members: Sequence[Member], corpus: Corpus) -> Panel:
        how = self.settings.aggregate
        if self.sample is None:
            return Panel(members, how, self.plan)
        found = {
            one.name: load_cheap(self.files, self.ref, one.name, self.shard)
            for one in self.family
            if one.prompts and self.sample.draw == "active"
        }
        known = {name: scores for name, scores in found.items() if scores is not None}
        cheap = make_cheap_judges(corpus, self.files, self.sample.cheap)
        return SampledPanel(members, how, self.plan, self.sample, cheap, known)

    def _open_cache(
        self, judge: Judge | Embedder, prompts: Sequence[str], ttl_days: int | None = None
    ) -> ReplyCache | None:
        if not judge.cacheable:
            return None
        low, high = shard_range(self.shard, self.ref.shards)
        cache = self.cache(
            self.kept, judge.fingerprint, low, high, prompts=prompts, ttl_days=ttl_days
        )
        cache.load(StoredPart(self.files, self.ref.rows(self.shard)).question_keys())
        return cache

    async def _write(self, panel: Panel, clients: Clients) -> PartReport:
        with workspace() as folder, counting_splits() as counter:
            writers = {metric.name: PartWriter(folder, SCORE_SCHEMA) for metric in self.family}
            rows = stream_rows(self.files, self.ref.rows(self.shard))
            errors, unanswered, failed = MetricErrors(), UnansweredRows(), Counter[str]()
            async with aclosing(rows), aclosing(drive(rows, self.family, panel)) as driven:
                async for scored in driven:
                    for name, score in scored.scores.items():
                        errors.note(name, scored.row.id, score)
                        unanswered.note(name, score)
                        failed.update([score.status] if score.status in UNSETTLED else ())
                        writers[name].add(score_record(scored.row, score), size=300)
            notes = self._notes(clients, counter)
            notes |= {"metric_errors": errors.notes(), "unanswered": unanswered.notes()}
            report = PartReport(next(iter(writers.values())).rows, clients.total(), dict(failed))
            if await asyncio.to_thread(_is_done, self.files, self.ref, self.family, self.shard):
                return report  # another process was faster
            for number, (name, writer) in enumerate(writers.items()):
                # Only the file of the first metric has the usage of the family.
                path = self.ref.scores(name, self.shard)
                await asyncio.to_thread(writer.finish, self.files, path, {} if number else notes)
        return report

    def _notes(self, clients: Clients, counter: SplitCounter) -> dict[str, Any]:
        asked: list[EmbeddingClient | JudgeClient] = [clients.embeddings]
        asked += [member.client for member in clients.members]
        names = [EMBEDDINGS, *(member.name for member in clients.members)]
        remote = [True, *(one.remote for one in self.settings.panel)]
        refused = {name: one.refusal for name, one in zip(names, asked, strict=True)}
        return {
            "usage": clients.usage(self.settings),
            "paid": list(compress(names, remote)),
            "refused": {name: str(error) for name, error in refused.items() if error},
            "overdue": next((str(one.overdue) for one in asked if one.overdue), ""),
            "splits": dict(counter.counts().fallback),
            "changed_parameters": {
                one.name: changes
                for one in clients.members
                if (changes := one.client.changed_parameters)
            },
        }


def _by_metric(
    client: JudgeClient | EmbeddingClient, prices: JudgeSettings | EmbeddingSettings
) -> dict[str, Any]:
    return {
        metric: add_price(prices, counter.usage()).model_dump()
        for metric, counter in client.counters.items()
    }


async def stream_rows(files: Files, path: str) -> AsyncGenerator[LogRow, None]:
    """The rows of a shard, read in a thread, because a bucket is slow."""
    batches = StoredPart(files, path).row_batches()
    reading: asyncio.Task[list[LogRow] | None] | None = None
    try:
        while True:
            reading = asyncio.create_task(asyncio.to_thread(next, batches, None))
            if (batch := await asyncio.shield(reading)) is None:
                return
            for row in batch:
                yield row
    finally:
        if reading:  # a thread that reads cannot be interrupted
            await asyncio.wait([reading])
        await asyncio.to_thread(batches.close)
