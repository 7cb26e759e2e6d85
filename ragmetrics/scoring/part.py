"""Scores one part: one family of metrics over one shard."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from itertools import compress
from typing import Any

from ragmetrics.config import EmbeddingSettings, JudgeSettings, Settings
from ragmetrics.judges import (
    Corpus,
    Embedder,
    EmbeddingClient,
    Judge,
    JudgeClient,
    Reply,
    ReplyCache,
)
from ragmetrics.metrics import Metric
from ragmetrics.records import EMBEDDINGS, UNSETTLED, Ask, LogRow, Usage
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.metric_choice import add_price
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import JudgePool, Panel
from ragmetrics.scoring.part_notes import MetricErrors, PartReport, UnansweredRows
from ragmetrics.scoring.sampling.cheap_scores import SampledPanel, load_cheap, make_cheap_judges
from ragmetrics.scoring.sampling.plan import SamplePlan
from ragmetrics.storage import (
    SCORE_SCHEMA,
    AskedWays,
    Files,
    PartWriter,
    RunRef,
    ScoredRow,
    StoredPart,
    score_record,
    workspace,
)
from ragmetrics.text import SplitCounter, counting_splits

Part = tuple[Sequence[str], int]
"""The names of a family of metrics, and the number of a shard."""

Done = Callable[[Sequence[str]], None]
"""Called after each part with the names of its metrics."""


def is_done(files: Files, ref: RunRef, family: Sequence[Metric], shard: int) -> bool:
    """True when all scores of a part are stored."""
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
        usage = {EMBEDDINGS: _by_metric(self.embeddings, settings.embedder)}
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
        await asyncio.to_thread(self._note_ways, clients)
        for cache in clients.caches:
            if cache:
                await asyncio.to_thread(cache.compact)
        return report

    async def open_clients(self, judges: JudgePool, record: Record | None) -> Clients:
        """Read the reply caches, and make the clients of the judges and of the embedder."""
        prompts = [prompt.name for metric in self.family for prompt in metric.prompts]
        caches = [
            await asyncio.to_thread(self._open_cache, judge.judge, prompts, judge.chosen.ttl_days)
            for judge in judges.judges
        ]
        cached_vectors = await asyncio.to_thread(
            self._open_cache, judges.embedder, [EmbeddingClient.prompt]
        )
        embeddings = EmbeddingClient(
            judges.embedder, cached_vectors, judges.embedding, self.settings.embedder
        )
        members = [
            Member(
                await asyncio.to_thread(
                    JudgeClient.of,
                    judge.chosen,
                    judge.judge,
                    embeddings,
                    name=judge.name,
                    cache=cache,
                    single_flight=judge.single_flight,
                    record=record,
                    files=self.kept,
                ),
                judge.chosen.repeats,
            )
            for judge, cache in zip(judges.judges, caches, strict=True)
        ]
        return Clients(members, embeddings, [*caches, cached_vectors])

    def _panel(self, members: Sequence[Member], corpus: Corpus) -> Panel:
        how = self.settings.joined
        if self.sample is None:
            return Panel(members, how, self.plan)
        cheap_scores = {
            metric.name: load_cheap(self.files, self.ref, metric.name, self.shard)
            for metric in self.family
            if metric.prompts and self.sample.draw == "active"
        }
        known = {name: scores for name, scores in cheap_scores.items() if scores is not None}
        cheap = make_cheap_judges(corpus, self.files, self.sample.cheap)
        return SampledPanel(members, how, self.plan, self.sample, cheap, known)

    def _open_cache(
        self, judge: Judge | Embedder, prompts: Sequence[str], ttl_days: int | None = None
    ) -> ReplyCache | None:
        if not judge.cacheable:
            return None
        low, high = self.ref.key_range(self.shard)
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
            if await asyncio.to_thread(is_done, self.files, self.ref, self.family, self.shard):
                return report  # another process was faster
            for number, (name, writer) in enumerate(writers.items()):
                # Only the file of the first metric has the usage of the family.
                path = self.ref.scores(name, self.shard)
                await asyncio.to_thread(writer.finish, self.files, path, {} if number else notes)
        return report

    def _note_ways(self, clients: Clients) -> None:
        """Store how the judges were asked, for the fingerprints of scores."""
        for client in (member.client for member in clients.members):
            for store in (self.files, self.kept):
                AskedWays(store).note(client.judge.fingerprint, client.asked)

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
            "splits": {reason: n for reason, n in counter.counts().items() if reason},
            "verdicts": {member.name: member.client.verdicts.notes() for member in clients.members},
            "changed_parameters": {
                member.name: changes
                for member in clients.members
                if (changes := member.client.changed_parameters)
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


_WAITING = 4
"""Rows that may be started and not yet returned, as a multiple of the rows in progress."""

Rows = Iterable[LogRow] | AsyncIterable[LogRow]


async def drive(
    rows: Rows, metrics: Sequence[Metric], panel: Panel
) -> AsyncGenerator[ScoredRow, None]:
    """Score rows by metrics, in order. Raises JudgeRefused when no request can succeed."""
    queue = _OrderedTaskQueue(metrics, panel)
    try:
        async for row in _each(rows):
            await queue.put(row)
            for scored in queue.finished():
                yield scored
        for scored in await queue.wait_for_all():
            yield scored
    finally:
        await queue.stop()


class _OrderedTaskQueue:
    """The rows in progress, in input order."""

    def __init__(self, metrics: Sequence[Metric], panel: Panel) -> None:
        self._metrics, self._panel = metrics, panel
        self._running: deque[asyncio.Task[ScoredRow]] = deque()
        self._free = asyncio.Semaphore(panel.rows_in_play)
        self._most = _WAITING * panel.rows_in_play
        self._error: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def put(self, row: LogRow) -> None:
        """Start a row as soon as there is room for it. Raises the first error of another row."""
        await self._free.acquire()
        if len(self._running) >= self._most:
            first: list[asyncio.Future[Any]] = [self._running[0], self._error]
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        self._raise()
        task = asyncio.create_task(self._score(row))
        task.add_done_callback(self._done)
        self._running.append(task)

    def finished(self) -> list[ScoredRow]:
        """The finished rows at the head of the queue."""
        done = []
        while self._running and self._running[0].done():
            done.append(self._running.popleft().result())
        return done

    async def wait_for_all(self) -> list[ScoredRow]:
        """Wait for the remaining rows. Raises the first error of any of them at once."""
        if self._running:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_EXCEPTION)
        self._raise()
        return self.finished()

    async def stop(self) -> None:
        """Cancel the rows in progress."""
        for task in self._running:
            task.cancel()
        await self._panel.stop()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _done(self, task: asyncio.Task[ScoredRow]) -> None:
        self._free.release()
        error = None if task.cancelled() else task.exception()
        if error and not self._error.done():
            self._error.set_result(error)

    def _raise(self) -> None:
        if self._error.done():
            raise self._error.result()

    async def _score(self, row: LogRow) -> ScoredRow:
        return ScoredRow(row, await self._panel.score(self._metrics, row))


async def _each(rows: Rows) -> AsyncIterator[LogRow]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
