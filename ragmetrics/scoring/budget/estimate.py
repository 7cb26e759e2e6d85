"""Estimates the requests of a run with a dry run: the panel scores rows with counting judges.

Cached replies are used, and nothing is sent. See `dry_run` for the assumptions about replies. Of a
large log the questions in the first hash buckets are scored, and the others count as these:

    cost of all rows = cost of the scored rows * judged rows / scored rows
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import Settings
from ragmetrics.http import run_coroutine
from ragmetrics.judges import CachedReply, ReplyCache
from ragmetrics.records import SpendLimits, Usage, Vector, question_key
from ragmetrics.scoring.budget.dry_run import DryRun
from ragmetrics.scoring.budget.plan import (
    BUCKETS,
    BudgetPlan,
    Costs,
    Population,
    bucket_of,
    divide,
    empty_population,
    load_plan,
    no_costs,
    part_key,
)
from ragmetrics.scoring.metric_choice import check_judging, chosen_metrics, score_families
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.part import PartScorer, stream_rows
from ragmetrics.scoring.part_notes import UsageReport
from ragmetrics.scoring.sampling.draw import plan_sample
from ragmetrics.scoring.sampling.plan import RowIds, SamplePlan, load_sample
from ragmetrics.storage import Files, RunRef, StoredPart, save_record

WALKED_ROWS = 1_000
"""Judged rows from which on a dry run scores no more. Each takes 4 ms, and the estimate from so
many is good to 3%, however unequal the rows are."""
_MONEY = ("usd", "usd_saved", "unknown_usd")


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
    at_most: bool = False
    """True for a cascade without a night in the store: its earlier judges count as certain of
    nothing that they were not asked before."""
    also: str = ""
    """Which metrics the judge under `also` scores; empty without one."""

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
            "at_most": self.at_most,
            "budget": {"limits": plan.limits.model_dump(), "share": plan.share} if plan else None,
            "sample": self._sample,
        }

    @property
    def _sample(self) -> dict[str, Any] | None:
        if self.sample is None:
            return None
        groups = [
            group.model_dump(include={"metrics", "rows", "judged"}) for group in self.sample.groups
        ]
        return {"groups": groups, "whole": self.whole.model_dump() if self.whole else None}

    @property
    def total(self) -> Usage:
        """The total usage."""
        return sum((one for of in self.by_metric.values() for one in of.values()), Usage())


def estimate_run(settings: Settings, files: Files, ref: RunRef, kept: Files | None) -> Estimate:
    """Estimate a staged run. `kept` is the store with the reply cache. Nothing is sent.

    A sampled run is estimated for the rows that it draws, and `whole` for all rows.
    """
    also, kept = check_judging(settings), kept or files
    whole = replace(run_coroutine(_estimate(settings, files, kept, ref, None)), also=also)
    if not settings.samples:
        return whole
    sample = plan_sample(settings, files, ref)
    drawn = run_coroutine(_estimate(settings, files, kept, ref, sample))
    return replace(drawn, whole=whole.total, also=also)


async def _estimate(
    settings: Settings, files: Files, kept: Files, ref: RunRef, sample: SamplePlan | None
) -> Estimate:
    dry = await asyncio.to_thread(DryRun, settings, kept)
    log = await asyncio.to_thread(_count, files, ref, sample)
    metrics = {metric.name: dry.metric(metric) for metric in chosen_metrics(settings)}
    report = UsageReport()
    costs: dict[str, Costs] = {}
    for shard in range(ref.shards):
        for names in score_families(settings):
            family = [metrics[name] for name in names]
            part = PartScorer(settings, files, kept, ref, family, shard, cache=_UnwrittenCache)
            clients = await part.open_clients(dry.pool, dry.learn)
            dry.begin_part(clients)
            of_part = costs[part_key(names, shard)] = no_costs()
            before = dry.spent(clients)
            panel = Panel(clients.members, settings.joined, certain=dry.is_certain)
            marks = RowIds()
            async with aclosing(stream_rows(files, ref.rows(shard))) as rows:
                async for row in rows:  # one at a time, so that each cost belongs to a question
                    if (bucket := bucket_of(row.question_key)) >= log.walked:
                        continue
                    left_out = sample.left_out(marks.of(row.question_key, row.id)) if sample else ()
                    await panel.score([one for one in family if one.name not in left_out], row)
                    after = dry.spent(clients)
                    of_part[bucket] += after - before
                    before = after
            report.add(dry.end_part(clients, settings))
    by_metric = {
        metric: {name: _scaled(usage, log.factor) for name, usage in of.items()}
        for metric, of in report.by_metric_without(dry.free).items()
    }
    estimate = Estimate(
        int(log.population[:, 1].sum()),
        by_metric,
        dry.about or dry.certainty.is_used or log.factor > 1,
        sorted(dry.open_ended),
        None,
        sample,
        at_most=dry.certainty.is_unknown,
    )
    if not settings.budget.binds:
        return estimate
    limits = SpendLimits.model_validate(settings.budget.model_dump())
    costs = {key: log.extended(part) for key, part in costs.items()}
    return replace(estimate, plan=divide(limits, estimate.total, costs, log.population))


@dataclass(frozen=True)
class _Log:
    """The rows of a run, by hash bucket of their questions."""

    population: Population
    judged: NDArray[np.int64]
    """Rows that some metric judges."""

    @cached_property
    def walked(self) -> int:
        """The dry run scores the questions in hash buckets below this number."""
        return min(BUCKETS, int(np.searchsorted(np.cumsum(self.judged), WALKED_ROWS)) + 1)

    @cached_property
    def factor(self) -> float:
        """Judged rows divided by those that the dry run scores."""
        scored = int(self.judged[: self.walked].sum())
        return float(self.judged.sum() / scored) if scored else 1.0

    def extended(self, costs: Costs) -> Costs:
        """The costs of a part with those of the questions that the dry run left out."""
        scored = max(1, int(self.judged[: self.walked].sum()))
        rest = np.outer(self.judged[self.walked :], costs[: self.walked].sum(axis=0) / scored)
        return np.concatenate([costs[: self.walked], rest])


def _count(files: Files, ref: RunRef, sample: SamplePlan | None) -> _Log:
    """Count the rows of a staged run, and those of a sample."""
    population, judged, seen = empty_population(), np.zeros(BUCKETS, dtype=np.int64), set[str]()
    for shard in range(ref.shards):
        marks = RowIds()
        for record in StoredPart(files, ref.rows(shard)).records(["id", "user_input"]):
            key = question_key(record["user_input"])
            mark = marks.of(key, record["id"])
            population[bucket_of(key)] += (key not in seen, 1)
            judged[bucket_of(key)] += not sample or any(one.judges(mark) for one in sample.groups)
            seen.add(key)
    return _Log(population, judged)


def _scaled(usage: Usage, factor: float) -> Usage:
    """The usage of so many times the rows."""
    if factor == 1:
        return usage
    counts = {name: round(value * factor) for name, value in usage if isinstance(value, int)}
    money = {name: value and round(value * factor, 6) for name, value in usage if name in _MONEY}
    return usage.model_copy(update={**counts, **money})


def plan_budget(
    settings: Settings, files: Files, ref: RunRef, kept: Files | None = None
) -> BudgetPlan | None:
    """Plan which questions of a staged run fit into its budget, or load the plan that exists.

    None without a budget, or when no judge is paid. Raises SettingsError for a missing price.
    """
    if not (settings.budget.binds and settings.is_paid):
        return None
    if (earlier := load_plan(files, ref)) is not None:
        return earlier
    check_judging(settings)
    sample = load_sample(files, ref) if settings.samples else None
    plan = run_coroutine(_estimate(settings, files, kept or files, ref, sample)).plan
    if plan:
        save_record(files, ref.beside_rows("budget"), plan)
    return plan


class _UnwrittenCache(ReplyCache):
    """The cached replies, and in memory those that a real run would add. Nothing is written."""

    _added: dict[str, str | Vector]

    def load(self, questions: Any = None) -> None:
        """Read the cached replies. Raises StoreError."""
        super().load(questions)
        self._added = {}

    def find(self, key: str) -> str | None:
        """The cached reply to a request."""
        reply = self._added[key] if key in self._added else super().find(key)
        return reply if isinstance(reply, str) else None

    def find_vector(self, key: str) -> Vector | None:
        """The cached vector of a text."""
        vector = self._added[key] if key in self._added else super().find_vector(key)
        return None if isinstance(vector, str) else vector

    async def prepare(self) -> None:
        """Nothing is written."""

    async def add(self, judgement: CachedReply) -> None:
        """Remember a reply."""
        self._added[judgement.key] = judgement.reply
