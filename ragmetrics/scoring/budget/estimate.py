"""Estimates the requests of a run with a dry run: the panel scores every row with counting judges.

Cached replies are used, and nothing is sent. See `dry_run` for the assumptions about replies.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from ragmetrics import event_loop as loop
from ragmetrics.config import Settings
from ragmetrics.judges import EMBEDDING, TEXTS_PER_REQUEST, EmbeddingClient, JudgeClient
from ragmetrics.metrics import Metric
from ragmetrics.model import EMBEDDINGS, LogRow, SpendLimits, Usage
from ragmetrics.scoring.budget.dry_run import CountingEmbedder, CountingJudge, DryRun, DryRunCache
from ragmetrics.scoring.budget.plan import (
    BudgetPlan,
    Costs,
    bucket_of,
    check_prices,
    divide,
    empty_population,
    is_paid,
    load_plan,
    no_costs,
    part_key,
    save_plan,
)
from ragmetrics.scoring.metric_choice import add_price, chosen_metrics, score_families
from ragmetrics.scoring.panel import Member, Panel
from ragmetrics.scoring.part import stream_rows
from ragmetrics.scoring.sampling.draw import RowIds, SamplePlan, load_sample
from ragmetrics.scoring.sharding import shard_range
from ragmetrics.storage import Files, RunRef, question_keys


@dataclass(frozen=True)
class Estimate:
    """Estimated requests to judges and embedders over a network. Local ones cost nothing."""

    rows: int
    by_metric: Mapping[str, Mapping[str, Usage]]
    """Usage by metric, then by judge."""
    about: bool
    """True when some requests depend on the answers to earlier ones."""
    at_least: Sequence[str]
    """Metrics without a baseline: their follow-up requests cannot be estimated."""
    plan: BudgetPlan | None
    """The budget plan; None without a budget."""
    sample: SamplePlan | None = None
    """The plan of the sample; None: all rows are judged."""
    whole: Usage | None = None
    """Estimated usage for all rows, in case of a sample."""

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics score --dry-run --json`."""
        plan = self.plan
        return {
            "dry_run": True,
            "rows": self.rows,
            "usage": self.total.model_dump(),
            "usage_by_metric": {
                metric: {name: usage.model_dump() for name, usage in of.items()}
                for metric, of in self.by_metric.items()
            },
            "about": self.about,
            "at_least": list(self.at_least),
            "budget": {"limits": plan.limits.model_dump(), "share": plan.share} if plan else None,
            "sample": self._sample,
        }

    @property
    def _sample(self) -> dict[str, Any] | None:
        if self.sample is None:
            return None
        groups = [
            one.model_dump(include={"metrics", "rows", "judged"}) for one in self.sample.groups
        ]
        return {"groups": groups, "whole": self.whole.model_dump() if self.whole else None}

    @property
    def total(self) -> Usage:
        """The total usage."""
        return reduce(
            Usage.__add__, (one for of in self.by_metric.values() for one in of.values()), Usage()
        )


def estimate_run(
    settings: Settings,
    files: Files,
    ref: RunRef,
    kept: Files | None,
    *,
    whole: bool = False,
) -> Estimate:
    """Estimate a staged run. `kept` is the store with the reply cache. Nothing is sent.

    For a sampled run it estimates the judged rows, or with `whole` all rows.
    """
    check_prices(settings)
    sample = None if whole else load_sample(files, ref)
    work = _Estimator(settings, files, kept or files, ref, sample, DryRun.of(settings))
    return loop.run(work.estimate())


@dataclass(frozen=True)
class _Estimator:
    """Runs all parts of a run with counting judges, one row at a time."""

    settings: Settings
    files: Files
    kept: Files
    ref: RunRef
    sample: SamplePlan | None
    dry: DryRun
    usage: defaultdict[str, defaultdict[str, Usage]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Usage))
    )
    """Usage by metric, then by judge."""

    async def estimate(self) -> Estimate:
        """The estimate of all parts."""
        metrics = {one.name: self.dry.metric(one) for one in chosen_metrics(self.settings)}
        families, population = score_families(self.settings), _PopulationCounter()
        costs: dict[str, Costs] = {}
        for judge in self.dry.judges:
            await asyncio.to_thread(judge.find_batches, self.kept)
        for shard in range(self.ref.shards):
            for names in families:
                costs[part_key(names, shard)] = self.dry.ledger.costs = no_costs()
                counter = population if names is families[0] else None
                await self._part([metrics[name] for name in names], shard, counter)
        found = self._found(population.rows)
        if not self.settings.budget.binds:
            return found
        limits = SpendLimits.model_validate(self.settings.budget.model_dump())
        return replace(found, plan=divide(limits, found.total, costs, population.population))

    def _found(self, rows: int) -> Estimate:
        prices = {one.name: one.chosen for one in self.dry.judges}
        prices |= {EMBEDDINGS: self.settings.embeddings}
        by_metric = {
            metric: {name: add_price(prices[name], usage) for name, usage in of.items()}
            for metric, of in self.usage.items()
        }
        ledger = self.dry.ledger
        return Estimate(rows, by_metric, ledger.about, sorted(ledger.open_ended), None, self.sample)

    async def _part(
        self, family: Sequence[Metric], shard: int, population: _PopulationCounter | None
    ) -> None:
        """Run a family of metrics over a shard."""
        prompts = [prompt.name for metric in family for prompt in metric.prompts]
        dry, caches = self.dry, []
        for one, wanted in (
            *((judge, prompts) for judge in dry.judges),
            (dry.embedder, [EMBEDDING]),
        ):
            caches.append(await asyncio.to_thread(self._cache, one, wanted, shard))
        *of_judges, of_embedder = caches
        dry.embedder.use_size(of_embedder.vector_sizes())
        vectors = EmbeddingClient(dry.embedder, of_embedder, dry.embedder.single_flight)
        members = [
            Member(
                JudgeClient(
                    judge,
                    vectors,
                    reasks=0,
                    cache=cache,
                    single_flight=judge.single_flight,
                    fuse=self.settings.fuse is not None and judge.chosen.remote,
                    record=judge.learn,
                ),
                judge.chosen.repeats,
            )
            for judge, cache in zip(dry.judges, of_judges, strict=True)
        ]
        await self._rows(Panel(members), family, shard, population)
        for cache in (*of_judges, of_embedder):
            cache.close()
        self._count(members, vectors)

    def _cache(
        self, judge: CountingJudge | CountingEmbedder, prompts: Sequence[str], shard: int
    ) -> DryRunCache:
        low, high = shard_range(shard, self.ref.shards)
        days = judge.chosen.ttl_days if isinstance(judge, CountingJudge) else None
        fingerprint = judge.fingerprint
        cache = DryRunCache(self.kept, fingerprint, low, high, prompts=prompts, ttl_days=days)
        if judge.keeps:
            cache.load(question_keys(self.files, self.ref.rows(shard)))
        return cache

    async def _rows(
        self,
        panel: Panel,
        family: Sequence[Metric],
        shard: int,
        population: _PopulationCounter | None,
    ) -> None:
        marks = RowIds()
        async with aclosing(stream_rows(self.files, self.ref.rows(shard))) as rows:
            async for row in rows:
                if population:
                    population.count(row)
                self.dry.ledger.bucket = bucket_of(row.question_key)
                mark = marks.of(row.question_key, row.id)
                left_out = self.sample.left_out(mark) if self.sample else ()
                await panel.score([one for one in family if one.name not in left_out], row)

    def _count(self, members: Sequence[Member], vectors: EmbeddingClient) -> None:
        """Add the usage of a part. Local judges and embedders cost nothing."""
        for judge, member in zip(self.dry.judges, members, strict=True):
            for metric, counter in member.client.counters.items() if judge.chosen.remote else ():
                self.usage[metric][judge.name] += counter.usage()
        for metric, counter in vectors.counters.items() if self.dry.embedder.keeps else ():
            counter.requests = -(-counter.requests // TEXTS_PER_REQUEST)
            self.usage[metric][EMBEDDINGS] += counter.usage()


def plan_budget(
    settings: Settings, files: Files, ref: RunRef, kept: Files | None = None
) -> BudgetPlan | None:
    """Plan which questions of a staged run fit into its budget, or load the plan that exists.

    None without a budget, or when no judge is paid. Raises SettingsError for a missing price.
    """
    if not (settings.budget.binds and is_paid(settings)):
        return None
    if (found := load_plan(files, ref)) is not None:
        return found
    plan = estimate_run(settings, files, ref, kept or files).plan
    if plan:
        save_plan(files, ref, plan)
    return plan


class _PopulationCounter:
    """Counts questions and rows by hash bucket."""

    def __init__(self) -> None:
        self.population = empty_population()
        self._seen: set[str] = set()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.population[:, 1].sum())

    def count(self, row: LogRow) -> None:
        """Count a row, and its question if it is new."""
        self.population[bucket_of(row.question_key)] += (row.question_key not in self._seen, 1)
        self._seen.add(row.question_key)
