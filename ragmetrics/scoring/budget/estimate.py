"""Estimates: what a run will ask for, found by playing every metric on every row against nobody.

Answers that the store has are taken from it. What it lacks is counted, and answered by the prompt's
baseline with a lexicon that knows nothing, so that metrics go on to what they ask next. Tokens are
the characters of the messages / 4; those of a reply are the baseline's as JSON / 4, times what kept
replies to the same prompt were longer.
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
    NOWHERE,
    CountingEmbedder,
    CountingJudge,
    guess,
    open_counting_judges,
    tokens_of,
)
from ragmetrics.scoring.budget.plan import (
    BudgetPlan,
    Costs,
    check_prices,
    divide,
    is_paid,
    load_plan,
    no_costs,
    nobody,
    part_key,
    place_of,
    save_plan,
)
from ragmetrics.scoring.fingerprint import add_price
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.metric_run import MetricRun
from ragmetrics.scoring.part import score_families
from ragmetrics.scoring.sampling.plan import RowIds, SamplePlan, load_sample
from ragmetrics.scoring.sharding import shard_range
from ragmetrics.storage import Files, RunRef, read_rows

_UNKNOWN = "not asked: this is an estimate"


@dataclass(frozen=True)
class Estimate:
    """What a run will ask for of judges and embeddings over a network: others cost nothing."""

    rows: int
    by_metric: Mapping[str, Mapping[str, Usage]]
    """By metric, and of each by judge."""
    about: bool
    """Whether anything is asked that hangs on the answers to what was asked before."""
    at_least: Sequence[str]
    """Metrics that may ask for more: no baseline says how they go on."""
    plan: BudgetPlan | None
    """What the budget makes of it; None without one."""
    sample: SamplePlan | None = None
    """Which rows are judged; None: all."""
    whole: Usage | None = None
    """Of a sample, what all rows would cost."""

    def as_json(self) -> dict[str, Any]:
        """What `ragmetrics score --dry-run --json` prints."""
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
        """All of it."""
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
    """Estimate a staged run; `kept` is the store that has the judgements. Nothing is sent.

    Of a sampled run the rows that are judged, or the `whole` of it.
    """
    sample = None if whole else load_sample(files, ref)
    desks, vectors = open_counting_judges(settings), CountingEmbedder(settings)
    metrics = {one.name: one for one in chosen_metrics(settings)}
    check_prices(settings)
    costs: dict[str, Costs] = {}
    open_ended: set[str] = set()
    about = False
    families, census = score_families(settings), _Census()
    for shard in range(ref.shards):
        low, high = shard_range(shard, ref.shards)
        for names in families:
            part = _Part(desks, vectors, settings, sample, open_ended)
            part.costs = costs[part_key(names, shard)] = no_costs()
            for one in (*desks, vectors):
                one.open(kept, low, high)
            for row in read_rows(files, ref.rows(shard)):
                part.play([metrics[name] for name in names], row)
                if names is families[0]:
                    census.count(row)
            part.close()
            about = about or part.about
            for one in (*desks, vectors):
                one.close()
    by_metric = _by_metric(desks, vectors, settings)
    limits = SpendLimits.model_validate(settings.budget.model_dump())
    found = Estimate(census.rows, by_metric, about, sorted(open_ended), None, sample)
    if not settings.budget.binds:
        return found
    return replace(found, plan=divide(limits, found.total, costs, census.population))


def plan_budget(
    settings: Settings, files: Files, ref: RunRef, kept: Files | None = None
) -> BudgetPlan | None:
    """Decide once what of a staged run its budget lets be judged, or find what was decided.

    None without a budget, and where nobody is paid. Raises SettingsError for an unknown price.
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
    desks: Sequence[CountingJudge], vectors: CountingEmbedder, settings: Settings
) -> dict[str, dict[str, Usage]]:
    found: dict[str, dict[str, Usage]] = defaultdict(dict)
    for desk in (one for one in desks if one.chosen.remote):
        for metric, tally in desk.counters.items():
            found[metric][desk.name] = add_price(desk.chosen, tally.usage())
    for metric, tally in vectors.counters.items():
        found[metric][EMBEDDINGS] = add_price(settings.embeddings, tally.usage())
    return dict(found)


class _Census:
    """Counts questions and rows."""

    def __init__(self) -> None:
        self.population = nobody()
        self._seen: set[str] = set()

    @property
    def rows(self) -> int:
        """All of them."""
        return int(self.population[:, 1].sum())

    def count(self, row: LogRow) -> None:
        """Count a row, and its question where it is new."""
        self.population[place_of(row.question_key)] += (row.question_key not in self._seen, 1)
        self._seen.add(row.question_key)


@dataclass
class _Part:
    """A family of metrics at work on the rows of a shard."""

    desks: Sequence[CountingJudge]
    vectors: CountingEmbedder
    settings: Settings
    sample: SamplePlan | None
    open_ended: set[str]
    costs: Costs = field(default_factory=no_costs)
    about: bool = False
    _place: int = 0
    _marks: RowIds = field(default_factory=RowIds)
    _vectors: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def close(self) -> None:
        """Round up the requests for embeddings."""
        for metric, requests in self._vectors.items():
            self.vectors.counters[metric].requests += math.ceil(requests)

    def play(self, metrics: Sequence[Metric], row: LogRow) -> None:
        """Count what a row asks for, in the turns that a panel takes."""
        self._place = place_of(row.question_key)
        left_out: Collection[str] = ()
        if self.sample:
            left_out = self.sample.left_out(self._marks.of(row.question_key, row.id))
        judged = [one for one in metrics if one.prompts and one.name not in left_out]
        plain = [one for one in metrics if not one.prompts]
        self._turn(self.desks[0], plain, row, 0)
        for desk in self.desks if judged else ():
            for repeat in range(desk.chosen.repeats):
                self._turn(desk, judged, row, repeat)

    def _turn(
        self, desk: CountingJudge, metrics: Sequence[Metric], row: LogRow, repeat: int
    ) -> None:
        plays = [MetricRun(metric, row) for metric in metrics]
        for one in plays:
            one.step(None)
        for wave in count():
            if not (asking := [one for one in plays if one.score is None]):
                return
            wanted = [MetricRequest(r, one.metric.name) for one in asking for r in one.asks(repeat)]
            self.about = self.about or bool(wave and self._is_paid(desk, wanted))
            answers = iter(self._answers(desk, row.question_key, wanted))
            for one in asking:
                one.step([next(answers) for _ in one.requests])

    def _is_paid(self, desk: CountingJudge, wanted: Sequence[MetricRequest]) -> bool:
        """Whether anything of a wave goes over a network."""
        return any(
            self.vectors.paid if isinstance(one.request, Embed) else desk.chosen.remote
            for one in wanted
        )

    def _answers(
        self, desk: CountingJudge, row_key: str, wanted: Sequence[MetricRequest]
    ) -> Iterator[Answer]:
        """What a desk answers to a wave, after it has counted it."""
        self._embed(row_key, [one for one in wanted if isinstance(one.request, Embed)])
        fresh: dict[str, tuple[Ask, str]] = {}
        answers: list[Answer] = []
        for one in wanted:
            if isinstance(one.request, Embed):
                answers.append(NOWHERE)
                continue
            answer, is_new = self._answer(desk, row_key, one.request, one.metric)
            answers.append(answer)
            if is_new:
                fresh[one.request.key] = (one.request, one.metric)
        self._send(desk, fresh)
        return iter(answers)

    def _answer(
        self, desk: CountingJudge, row_key: str, ask: Ask, metric: str
    ) -> tuple[Answer, bool]:
        """The answer, and whether it has to be asked for."""
        tally = desk.counters[metric]
        if (at_hand := desk.recent(ask.key)) is not None:
            tally.shared += 1
            return at_hand, False
        known, is_new = desk.known(row_key, ask), desk.is_first(row_key + ask.key)
        answer: Answer | None = known or guess(ask)
        if answer is None:
            self.open_ended.add(metric)
            answer = Unanswered(Status.UNREADABLE, _UNKNOWN)
        desk.remember(ask.key, answer)
        if known is not None or not is_new:
            tally.answered_from_store += 1
        return answer, known is None and is_new

    def _send(self, desk: CountingJudge, fresh: Mapping[str, tuple[Ask, str]]) -> None:
        """Count requests; with `fuse`, those that go together as one."""
        groups: defaultdict[tuple[int, ...], list[tuple[Ask, str]]] = defaultdict(list)
        for ask, metric in fresh.values():
            fuse = self.settings.fuse is not None and desk.chosen.remote and fusible(ask)
            if fuse:
                groups[ask.repeat].append((ask, metric))
            else:
                self._count(desk, metric, ask, [ask])
        for group in groups.values():
            asks, metrics = zip(*group, strict=True)
            whole = Fused(asks).ask if len(asks) > 1 else asks[0]
            self._count(desk, " + ".join(dict.fromkeys(metrics)), whole, asks)

    def _count(self, desk: CountingJudge, metric: str, sent: Ask, asks: Sequence[Ask]) -> None:
        if not desk.chosen.remote:
            return
        tally = desk.counters[metric]
        if desk.is_at_work_on(sent):
            tally.answered_from_store += len(asks)
            return
        tally.requests += 1
        messages = sent.prompt.messages(sent.data)
        prompt = tokens_of(sum(len(one["content"]) for one in messages))
        fused = len(asks) > 1
        length = sum(desk.reply_length(ask, fused) for ask in asks)
        if fused:
            length += sum(len(f'"{name}":[],') for name in {one.prompt.name for one in asks})
            length += len(asks)  # commas
        completion = tokens_of(length)
        tally.prompt_tokens += prompt
        tally.completion_tokens += completion
        usd = desk.chosen.usd(prompt, completion) or 0.0
        self.costs[self._place, :3] += (1, prompt + completion, usd)

    def _embed(self, row_key: str, wanted: Sequence[MetricRequest]) -> None:
        """Count embeddings, each with its share of a request."""
        if not self.vectors.paid:
            return
        for metric, one in self.vectors.begin(row_key, wanted):
            self._vectors[metric] += one.requests
            self.vectors.counters[metric].prompt_tokens += int(one.tokens)
            self.costs[self._place] += 2 * (one.requests, one.tokens, one.usd)
