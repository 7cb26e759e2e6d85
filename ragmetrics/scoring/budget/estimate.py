"""Estimates the requests of a run with a dry run: every metric on every row, with counting judges.

Cached replies are used. Other requests are counted and answered by the prompt's baseline with a
null lexicon, so that metrics go on to their next requests.

    prompt tokens = characters of the messages / 4
    reply tokens  = characters of the baseline's JSON / 4 * (length of cached replies / baseline)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import Unanswered
from ragmetrics.judges import Fused, MetricRequest, fusible
from ragmetrics.metrics import Metric
from ragmetrics.model import EMBEDDINGS, Answer, Ask, Embed, LogRow, SpendLimits, Status, Usage
from ragmetrics.scoring.budget.dry_run import (
    DUMMY_VECTOR,
    CountingEmbedder,
    CountingJudge,
    guess,
    open_counting_judges,
    tokens_of,
)
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
from ragmetrics.scoring.panel import MetricRun
from ragmetrics.scoring.sampling.draw import RowIds, SamplePlan, load_sample
from ragmetrics.scoring.sharding import shard_range
from ragmetrics.storage import Files, RunRef, read_rows

_UNKNOWN = "not requested: this is an estimate"


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
    sample = None if whole else load_sample(files, ref)
    judges, embedder = open_counting_judges(settings), CountingEmbedder(settings)
    metrics = {one.name: one for one in chosen_metrics(settings)}
    check_prices(settings)
    costs: dict[str, Costs] = {}
    open_ended: set[str] = set()
    about = False
    families, counter = score_families(settings), _PopulationCounter()
    for shard in range(ref.shards):
        low, high = shard_range(shard, ref.shards)
        for names in families:
            part = _PartEstimator(judges, embedder, settings, sample, open_ended)
            part.costs = costs[part_key(names, shard)] = no_costs()
            for one in (*judges, embedder):
                one.open(kept, low, high)
            for row in read_rows(files, ref.rows(shard)):
                part.run([metrics[name] for name in names], row)
                if names is families[0]:
                    counter.count(row)
            part.close()
            about = about or part.about
            for one in (*judges, embedder):
                one.close()
    by_metric = _by_metric(judges, embedder, settings)
    limits = SpendLimits.model_validate(settings.budget.model_dump())
    found = Estimate(counter.rows, by_metric, about, sorted(open_ended), None, sample)
    if not settings.budget.binds:
        return found
    return replace(found, plan=divide(limits, found.total, costs, counter.population))


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


def _by_metric(
    judges: Sequence[CountingJudge], embedder: CountingEmbedder, settings: Settings
) -> dict[str, dict[str, Usage]]:
    found: dict[str, dict[str, Usage]] = defaultdict(dict)
    for judge in (one for one in judges if one.chosen.remote):
        for metric, tally in judge.counters.items():
            found[metric][judge.name] = add_price(judge.chosen, tally.usage())
    for metric, tally in embedder.counters.items():
        found[metric][EMBEDDINGS] = add_price(settings.embeddings, tally.usage())
    return dict(found)


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


@dataclass
class _PartEstimator:
    """Counts the requests of a family of metrics over a shard."""

    judges: Sequence[CountingJudge]
    embedder: CountingEmbedder
    settings: Settings
    sample: SamplePlan | None
    open_ended: set[str]
    costs: Costs = field(default_factory=no_costs)
    about: bool = False
    _bucket: int = 0
    _marks: RowIds = field(default_factory=RowIds)
    _vectors: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def close(self) -> None:
        """Round up the requests for embeddings."""
        for metric, requests in self._vectors.items():
            self.embedder.counters[metric].requests += math.ceil(requests)

    def run(self, metrics: Sequence[Metric], row: LogRow) -> None:
        """Count the requests of a row, in the order of a panel."""
        self._bucket = bucket_of(row.question_key)
        left_out: Collection[str] = ()
        if self.sample:
            left_out = self.sample.left_out(self._marks.of(row.question_key, row.id))
        judged = [one for one in metrics if one.prompts and one.name not in left_out]
        plain = [one for one in metrics if not one.prompts]
        self._turn(self.judges[0], plain, row, 0)
        for judge in self.judges if judged else ():
            for repeat in range(judge.chosen.repeats):
                self._turn(judge, judged, row, repeat)

    def _turn(
        self, judge: CountingJudge, metrics: Sequence[Metric], row: LogRow, repeat: int
    ) -> None:
        runs = [MetricRun(metric, row) for metric in metrics]
        for one in runs:
            one.step(None)
        for step in count():
            if not (waiting := [one for one in runs if one.score is None]):
                return
            wanted = [
                MetricRequest(r, one.metric.name) for one in waiting for r in one.asks(repeat)
            ]
            self.about = self.about or bool(step and self._is_paid(judge, wanted))
            answers = iter(self._answers(judge, row.question_key, wanted))
            for one in waiting:
                one.step([next(answers) for _ in one.requests])

    def _is_paid(self, judge: CountingJudge, wanted: Sequence[MetricRequest]) -> bool:
        """True when any of the requests goes over a network."""
        return any(
            self.embedder.paid if isinstance(one.request, Embed) else judge.chosen.remote
            for one in wanted
        )

    def _answers(
        self, judge: CountingJudge, row_key: str, wanted: Sequence[MetricRequest]
    ) -> Iterator[Answer]:
        """Count requests and answer them."""
        self._embed(row_key, [one for one in wanted if isinstance(one.request, Embed)])
        fresh: dict[str, tuple[Ask, str]] = {}
        answers: list[Answer] = []
        for one in wanted:
            if isinstance(one.request, Embed):
                answers.append(DUMMY_VECTOR)
                continue
            answer, is_new = self._answer(judge, row_key, one.request, one.metric)
            answers.append(answer)
            if is_new:
                fresh[one.request.key] = (one.request, one.metric)
        self._send(judge, fresh)
        return iter(answers)

    def _answer(
        self, judge: CountingJudge, row_key: str, ask: Ask, metric: str
    ) -> tuple[Answer, bool]:
        """The answer, and True if a run would have to send the request."""
        tally = judge.counters[metric]
        if (recent := judge.recent(ask.key)) is not None:
            tally.shared += 1
            return recent, False
        known, is_new = judge.known(row_key, ask), judge.is_first(row_key + ask.key)
        answer: Answer | None = known or guess(ask)
        if answer is None:
            self.open_ended.add(metric)
            answer = Unanswered(Status.UNREADABLE, _UNKNOWN)
        judge.remember(ask.key, answer)
        if known is not None or not is_new:
            tally.answered_from_store += 1
        return answer, known is None and is_new

    def _send(self, judge: CountingJudge, fresh: Mapping[str, tuple[Ask, str]]) -> None:
        """Count the requests that would be sent; fused requests count as one."""
        groups: defaultdict[tuple[int, ...], list[tuple[Ask, str]]] = defaultdict(list)
        for ask, metric in fresh.values():
            fuse = self.settings.fuse is not None and judge.chosen.remote and fusible(ask)
            if fuse:
                groups[ask.repeat].append((ask, metric))
            else:
                self._count(judge, metric, ask, [ask])
        for group in groups.values():
            asks, metrics = zip(*group, strict=True)
            whole = Fused(asks).ask if len(asks) > 1 else asks[0]
            self._count(judge, " + ".join(dict.fromkeys(metrics)), whole, asks)

    def _count(self, judge: CountingJudge, metric: str, sent: Ask, asks: Sequence[Ask]) -> None:
        if not judge.chosen.remote:
            return
        tally = judge.counters[metric]
        if judge.is_at_work_on(sent):
            tally.answered_from_store += len(asks)
            return
        tally.requests += 1
        messages = sent.prompt.messages(sent.data)
        prompt = tokens_of(sum(len(one["content"]) for one in messages))
        fused = len(asks) > 1
        length = sum(judge.reply_length(ask, fused) for ask in asks)
        if fused:
            length += sum(len(f'"{name}":[],') for name in {one.prompt.name for one in asks})
            length += len(asks)  # commas
        completion = tokens_of(length)
        tally.prompt_tokens += prompt
        tally.completion_tokens += completion
        usd = judge.chosen.usd(prompt, completion) or 0.0
        self.costs[self._bucket, :3] += (1, prompt + completion, usd)

    def _embed(self, row_key: str, wanted: Sequence[MetricRequest]) -> None:
        """Count embeddings; a text counts as a fraction of a request."""
        if not self.embedder.paid:
            return
        for metric, one in self.embedder.begin(row_key, wanted):
            self._vectors[metric] += one.requests
            self.embedder.counters[metric].prompt_tokens += int(one.tokens)
            self.costs[self._bucket] += 2 * (one.requests, one.tokens, one.usd)
