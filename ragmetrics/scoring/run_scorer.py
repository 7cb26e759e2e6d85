"""Scores the parts of a run: families of metrics over shards.

A judge over a network gets the requests of all parts together, from one process. A judge that
computes on this machine gets several processes (`process_pool`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.judges import use_budget
from ragmetrics.metrics import Metric
from ragmetrics.records import deadline_at, use_deadline
from ragmetrics.scoring.budget.plan import BudgetPool, open_budget_pool
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.panel import acquire_judges, keep_open
from ragmetrics.scoring.part import Done, Part, PartScorer, Record, is_done
from ragmetrics.scoring.part_notes import PartReport
from ragmetrics.scoring.process_pool import score_here, score_in_processes
from ragmetrics.scoring.reuse import reuse_part
from ragmetrics.scoring.sampling.plan import load_sample
from ragmetrics.scoring.staging import Staged, load_corpus
from ragmetrics.storage import Files, RunRef, expect, open_store

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

    def score_together(self, todo: Sequence[Part], done: Done | None) -> list[RagmetricsError]:
        """Score parts concurrently, so that the judges stay busy.

        Returns the errors of parts that could not be scored; the others are written all the same.
        """
        with use_deadline(deadline_at(self.until)):
            return run_coroutine(self._score_together(todo, done))

    def _budget(self, files: Files) -> AbstractAsyncContextManager[BudgetPool | None]:
        """The budget that all parts share; None without one."""
        binds = self.settings.budget.binds
        return open_budget_pool(files, self.ref) if binds else nullcontext()

    async def _score_together(
        self, todo: Sequence[Part], done: Done | None
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
        async with self._budget(files) as pool:
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
        names_of_family = [metric.name for metric in family]
        async with self._budget(files) as pool:
            if pool:
                await pool.add_parts([(names, shard)])
            async with _part_slot(settings):
                if await asyncio.to_thread(is_done, files, ref, family, shard):
                    return None
                if self.record is None and await asyncio.to_thread(
                    reuse_part, files, ref, names_of_family, shard
                ):
                    return None
                corpus = await asyncio.to_thread(load_corpus, files, ref)
                sample = None
                if settings.samples:
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
    if any(judge.waits for judge in settings.panel):
        return nullcontext()
    return _part_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_PARTS_AT_ONCE))


def family_of(settings: Settings, names: Sequence[str]) -> list[Metric]:
    """The metrics of the settings with some names. Raises InputError for a name that none has."""
    chosen = {metric.name: metric for metric in chosen_metrics(settings)}
    if unknown := [name for name in names if name not in chosen] or ([] if names else [""]):
        raise InputError(f"{unknown[0]!r} is not scored; scored are: {', '.join(chosen)}")
    return [metric for metric in chosen.values() if metric.name in names]


def score_parts(
    settings: Settings,
    staged: Staged,
    todo: Sequence[Part],
    record: Record | None = None,
    done: Done | None = None,
    kept: Files | None = None,
    until: datetime | None = None,
) -> list[RagmetricsError]:
    """Score the parts of a run. Returns the errors of parts that could not be scored.

    `kept` is the store with the reply cache; None: the run's store. `record` works only in this
    process, so a local judge then gets no workers. After `until` no request is sent.
    Raises JudgeRefused when a local judge cannot run.
    """
    scorer = RunScorer(settings, staged.ref, record, kept, until)
    if any(one.remote for one in settings.panel) or settings.embedder.remote:
        return scorer.score_together(todo, done)
    judged = {metric.name for metric in chosen_metrics(settings) if metric.prompts}
    heavy = [part for part in todo if judged & set(part[0])]
    problems = score_here(scorer, [part for part in todo if part not in heavy], done)
    if record is not None:
        return problems + score_here(scorer, heavy, done)
    rows = staged.source.rows
    return problems + score_in_processes(scorer, heavy, settings.processes, rows, done)


def list_parts(settings: Settings, staged: Staged) -> list[tuple[list[str], int]]:
    """All parts of a run: each is a family of metrics and a shard."""
    return [
        (family, shard) for family in score_families(settings) for shard in range(staged.ref.shards)
    ]
