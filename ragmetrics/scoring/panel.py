"""The panel: one judge or several, which the parts of a process share, and how they score rows.

A judge over a network is created once per process: all parts share its connections, its limits and
its requests in flight. A local judge knows the corpus of the run and belongs to one part.

Several scores of a row become one:

    each judge:  value is the mean over the repeats, spread their standard deviation
    the panel:   mean, median, min, max or majority of the judges' values
    cascade:     no aggregate: each verdict is that of one judge (see `combination`)
    also:        no aggregate: each metric is scored by the first judge that can

A judge that fails is counted and left out of the row's value. A row without any value has failed.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from ragmetrics.config import JudgeSettings, Settings, api_key
from ragmetrics.errors import JudgeRefused, Unanswered
from ragmetrics.http import PerLoop
from ragmetrics.judges import (
    Corpus,
    Embedder,
    Judge,
    JudgeClient,
    MetricRequest,
    SingleFlight,
    expect_some,
    make_embedder,
    make_member,
    names_of,
)
from ragmetrics.metrics import Metric
from ragmetrics.records import Answer, Ask, LogRow, Score, Status
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.combination import (
    CascadedRow,
    Certain,
    Joined,
    averaged,
    by_agreement,
    combine,
)
from ragmetrics.scoring.metric_run import Member, MetricRun, first_able, is_heavy, repeated
from ragmetrics.storage import Files

J = TypeVar("J", Judge, Embedder)
_Answers = Callable[[Sequence[MetricRequest]], Awaitable[list[Answer]]]


@dataclass(frozen=True)
class _Open(Generic[J]):
    """A judge or embedder that parts share, with its requests in flight."""

    judge: J
    single_flight: SingleFlight = field(default_factory=SingleFlight)


@dataclass(frozen=True)
class PooledJudge:
    """A judge of the panel with its name, its settings and its requests in flight."""

    name: str
    chosen: JudgeSettings
    judge: Judge
    single_flight: SingleFlight


@dataclass(frozen=True)
class JudgePool:
    """The judges and the embedder of one part."""

    judges: Sequence[PooledJudge]
    embedder: Embedder
    embedding: SingleFlight


_judges: PerLoop[_Open[Judge]] = PerLoop(lambda held: held.judge.close())

_embedders: PerLoop[_Open[Embedder]] = PerLoop(lambda held: held.judge.close())


@asynccontextmanager
async def keep_open() -> AsyncIterator[None]:
    """Keep the clients of judges and embedders open between parts while this context is open."""
    async with _judges.keep(), _embedders.keep():
        yield


@asynccontextmanager
async def acquire_judges(
    settings: Settings, corpus: Corpus, files: Files
) -> AsyncIterator[JudgePool]:
    """The panel and the embedder of the settings, for as long as a part needs them.

    Raises JudgeRefused when no judge has its key, or when a package that a judge needs is missing.
    """
    async with AsyncExitStack() as stack:
        held = []
        seen: Counter[str] = Counter()
        for chosen in settings.panel:
            key = _key(chosen, settings, files)
            if key:
                seen[key] += 1  # equal judges of one panel do not share replies
                key = f"{key} {seen[key]}"

            def make(chosen: JudgeSettings = chosen) -> _Open[Judge]:
                return _Open(make_member(chosen, corpus, files))

            shared = _judges.hold(key, make)
            held.append(await stack.enter_async_context(shared))
        expect_some([one.judge for one in held])
        embedder = await stack.enter_async_context(
            _embedders.hold(
                _embedder_key(settings, files), lambda: _Open(make_embedder(settings, corpus))
            )
        )
        names = names_of([one.judge for one in held])
        judges = [
            PooledJudge(name, chosen, shared_judge.judge, shared_judge.single_flight)
            for name, chosen, shared_judge in zip(names, settings.panel, held, strict=True)
        ]
        yield JudgePool(judges, embedder.judge, embedder.single_flight)


def _key(chosen: JudgeSettings, settings: Settings, files: Files) -> str | None:
    """Parts with equal keys share the judge. None: the judge belongs to one part."""
    if not chosen.remote:
        return None
    secret = api_key(chosen.api_key_env, os.environ)
    return f"{chosen.model_dump_json()} {files.root} {hash(secret)}"


def _embedder_key(settings: Settings, files: Files) -> str | None:
    """Parts with equal keys share the embedder. None: it belongs to one part."""
    chosen, judges = settings.embeddings, [one for one in settings.panel if one.reads_prompts]
    if not settings.embedder.remote:
        return None
    names = [chosen.api_key_env, *(judge.api_key_env for judge in settings.panel)]
    secrets = [api_key(name, os.environ) for name in names if name]
    return f"{chosen.model_dump_json()} {judges} {files.root} {hash(tuple(secrets))}"


class Panel:
    """Scores rows by one judge or by several."""

    def __init__(
        self,
        members: Sequence[Member],
        aggregate: Joined = "mean",
        budget: BudgetPlan | None = None,
        certain: Certain = by_agreement,
    ) -> None:
        self.members = tuple(members)
        self._aggregate = aggregate
        self._budget = budget
        self._certain = certain

    @property
    def rows_in_play(self) -> int:
        """Number of rows in progress: enough to keep every judge busy."""
        return max(16, *(member.client.judge.concurrency for member in self.members))

    async def score(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Score]:
        """Score one row by metrics.

        Raises JudgeRefused when no judge accepts requests.
        """
        if self._budget and not self._budget.judges(row.question_key):
            return await self._score_over_budget(metrics, row, self._budget)
        judged = [metric for metric in metrics if metric.prompts]
        plain = [metric for metric in metrics if not metric.prompts]  # the same for every judge
        scores = await self._turn(self.members[0], plain, row, 0) if plain else {}
        if judged:
            scores |= await self._judged(judged, row)
        return {metric.name: scores[metric.name] for metric in metrics}

    async def _score_over_budget(
        self, metrics: Sequence[Metric], row: LogRow, budget: BudgetPlan
    ) -> dict[str, Score]:
        """Score a row outside the budget's sample: only by metrics that send no request."""
        reason = f"not in the sample: the budget is for {budget.share:.1%} of the questions"
        free = [metric for metric in metrics if not (metric.prompts or metric.embeds)]
        scores = await self._turn(self.members[0], free, row, 0)
        none = Score(None, reason, status=Status.OVER_BUDGET)
        return {metric.name: scores.get(metric.name, none) for metric in metrics}

    async def _judged(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Score]:
        if self._aggregate == "cascade":
            return await self._cascaded(metrics, row)
        if self._aggregate != "also":
            return await self._judged_by(self.members, metrics, row)
        shares: dict[str, list[Metric]] = {member.name: [] for member in self.members}
        for metric in metrics:
            shares[first_able(self.members, metric).name].append(metric)
        of_judges = await asyncio.gather(
            *(
                self._judged_by([member], share, row)
                for member in self.members
                if (share := shares[member.name])
            )
        )
        return {name: score for scores in of_judges for name, score in scores.items()}

    async def _judged_by(
        self, members: Sequence[Member], metrics: Sequence[Metric], row: LogRow
    ) -> dict[str, Score]:
        """The scores of some of the judges for one row, of all their repeats together."""
        turns = [(member, number) for member in members for number in range(member.repeats)]
        if len(turns) == 1:
            return await self._turn(members[0], metrics, row, 0)
        scores = await asyncio.gather(*(self._turn(one, metrics, row, n) for one, n in turns))
        return {metric.name: self._combined(metric.name, turns, scores) for metric in metrics}

    def _combined(
        self,
        metric: str,
        turns: Sequence[tuple[Member, int]],
        of_turns: Sequence[Mapping[str, Score]],
    ) -> Score:
        by_judge: dict[str, list[Score]] = {member.name: [] for member, _ in turns}
        for (member, _), scores in zip(turns, of_turns, strict=True):
            by_judge[member.name].append(scores[metric])
        score_of = {
            name: averaged(scores) if len(scores) > 1 else scores[0]
            for name, scores in by_judge.items()
        }
        if len(score_of) == 1:
            return next(iter(score_of.values()))
        return combine(score_of, self._aggregate)

    async def _cascaded(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Score]:
        """The scores of one row, each verdict by the first judge that is certain of it."""
        cascaded = CascadedRow(self.members, partial(self._send, row), self._certain)
        runs = await self._run(metrics, row, cascaded.answer)
        return {
            run.metric.name: cascaded.noted(run.metric.name, run.score)
            for run in runs
            if run.score is not None
        }

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        await asyncio.gather(*(member.client.stop() for member in self.members))

    async def _turn(
        self, member: Member, metrics: Sequence[Metric], row: LogRow, repeat: int
    ) -> dict[str, Score]:
        """The scores of one judge for one row."""
        able = [metric for metric in metrics if member.can_score(metric)]
        runs = await self.run_metrics(member, able, row, repeat)
        scores = {run.metric.name: run.score for run in runs if run.score is not None}
        if len(able) == len(metrics):
            return scores
        other = Score.not_applicable(f"the judge {member.name} cannot score this metric")
        return {metric.name: scores.get(metric.name, other) for metric in metrics}

    async def run_metrics(
        self, member: Member, metrics: Sequence[Metric], row: LogRow, repeat: int = 0
    ) -> list[MetricRun]:
        """Run metrics on one row to their end, with the answers of one judge."""

        def answers(wanted: Sequence[MetricRequest]) -> Awaitable[list[Answer]]:
            return self._send(row, member, [repeated(one, repeat) for one in wanted])

        return await self._run(metrics, row, answers)

    async def _run(
        self, metrics: Sequence[Metric], row: LogRow, answers: _Answers
    ) -> list[MetricRun]:
        """Run metrics on one row to their end. All of them advance together, and their requests of
        one step are sent together.
        """
        heavy = is_heavy(row)
        runs = [MetricRun(metric, row, heavy=heavy) for metric in metrics]
        for run in runs:
            await run.advance(None)
        while waiting := [run for run in runs if run.score is None]:
            wanted = [MetricRequest(r, one.metric.name) for one in waiting for r in one.asks()]
            replies = iter(await answers(wanted))
            for run in waiting:
                await run.advance([next(replies) for _ in run.requests])
        return runs

    async def _send(
        self, row: LogRow, member: Member, wanted: Sequence[MetricRequest]
    ) -> list[Answer]:
        """The answers of one judge. When a judge refuses, the other judges go on.

        Raises JudgeRefused when all judges refuse and none of them has answered before. Otherwise
        the scores so far are worth storing, and only this row has no answers.
        """
        wanted = await _arranged(member.client, row, wanted)
        try:
            return await member.client.answer_all(row.question_key, wanted)
        except JudgeRefused as error:
            if self._ends(member):
                raise
            return [Unanswered(Status.JUDGE_FAILED, str(error))] * len(wanted)

    def _ends(self, member: Member) -> bool:
        """Whether the run ends because a judge refuses. A cascade needs its last judge: without it,
        only rows would be scored of which an earlier judge is certain. With `also` it is the first
        judge that scores most metrics.
        """
        if self._aggregate in ("cascade", "also"):
            needed = self.members[-1 if self._aggregate == "cascade" else 0]
            return member is needed and not member.client.can_continue
        refuse = len(self.members) == 1 or all(member.client.refusal for member in self.members)
        return refuse and not any(member.client.can_continue for member in self.members)


async def _arranged(
    client: JudgeClient, row: LogRow, wanted: Sequence[MetricRequest]
) -> list[MetricRequest]:
    """The requests of a row in the layout of a judge, in their order."""
    if client.layout is None:
        return list(wanted)
    asks = [one.request for one in wanted if isinstance(one.request, Ask)]
    if is_heavy(row):
        requests = await asyncio.to_thread(client.layout.arrange, row, asks)
    else:
        requests = client.layout.arrange(row, asks)
    arranged = iter(requests)
    return [
        MetricRequest(next(arranged), ask.metric) if isinstance(ask.request, Ask) else ask
        for ask in wanted
    ]
