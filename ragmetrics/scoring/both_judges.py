"""Rows of a night that a replaced judge scores too, so that its scores compare with the new ones.

Its replies to equal requests are in the reply cache. About the others it is asked for a random
sample of the rows, within what the night left of its budget and for a quarter of an hour. A judge
that refuses, or that answers hours later in a batch, gives its stored replies alone, for more rows;
so does any judge on a silent night.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from pydantic import Field

from ragmetrics.config import Settings
from ragmetrics.http import run_coroutine
from ragmetrics.judges import (
    Corpus,
    SingleFlight,
    SpendLimiter,
    make_embedder,
    make_member,
    names_of,
    use_budget,
)
from ragmetrics.records import (
    BudgetReport,
    Deadline,
    JudgedTwice,
    Manifest,
    Record,
    Score,
    Usage,
    deadline_at,
    deadline_in_use,
    use_deadline,
)
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import JudgePool, Panel, PooledJudge
from ragmetrics.scoring.part import PartScorer, drive
from ragmetrics.scoring.run_scorer import family_of
from ragmetrics.scoring.scores import MetricScores
from ragmetrics.scoring.staging import corpus_of
from ragmetrics.storage import Files, RowLocation, RunRef, ScoredRow, by_shard, scored_rows

MOST_TIME = timedelta(minutes=15)
"""Longest time that a night waits for a replaced judge."""
SEARCHED = 10
"""Rows that are looked up in the store for each row that a judge would be asked about."""
_Values: TypeAlias = dict[RowLocation, Mapping[str, Score]]


class BridgeRows(Record):
    """The rows of a night that both judges scored, by metric."""

    rows: dict[str, list[JudgedTwice]] = Field(default_factory=dict)
    problem: str = ""
    """Why the replaced judge gave no further verdicts."""
    usage: Usage = Field(default_factory=Usage)
    """Usage of the replaced judge."""


@dataclass
class SecondScoring:
    """A night whose rows are scored again by the judges of other settings."""

    settings: Settings
    files: Files
    night: Manifest
    scores: Mapping[str, MetricScores]
    metrics: Sequence[str]
    usage: Usage = field(default_factory=Usage, init=False)
    problem: str = field(default="", init=False)
    """Why a judge refuses."""

    def pairs(self, most: int) -> BridgeRows:
        """The values by the judges of the night and by the others, of the rows that have both.

        The others are asked about at most `most` rows, and about none for a silent night.
        """
        with use_deadline(self._deadline()):
            values = run_coroutine(self._score(most))
        rows = {metric: list(self._paired(metric, values)) for metric in self.metrics}
        return BridgeRows(rows=rows, problem=self.problem, usage=self.usage)

    def _deadline(self) -> Deadline | None:
        """That of the run, at most `MOST_TIME` from now: the manifest and the alerts wait."""
        own = deadline_at(datetime.now(UTC) + min(self.settings.deadline, MOST_TIME))
        used = deadline_in_use()
        return used if used and own and used.left < own.left else own

    async def _score(self, most: int) -> _Values:
        places = self._drawn()
        only_stored = SpendLimiter(requests=0)
        unasked = self.night.silent or any(judge.waits for judge in self.settings.panel)
        with use_budget(only_stored if unasked else _left_of(self.night.budget)):
            values = await self._score_rows(places[:most])
        if unasked or self.problem:
            with use_budget(only_stored):
                values |= await self._score_rows(places[most : SEARCHED * most])
        return values

    def _drawn(self) -> list[RowLocation]:
        """The rows with a value by one of the metrics, in random order."""
        tables = [self.scores[metric].compared for metric in self.metrics]
        columns = ((table["shard"].tolist(), table["position"].tolist()) for table in tables)
        places = {place for column in columns for place in zip(*column, strict=True)}

        def rank(place: RowLocation) -> bytes:
            text = f"{self.night.date} {place[0]} {place[1]}"
            return hashlib.blake2b(text.encode(), digest_size=8).digest()

        return sorted(places, key=rank)

    async def _score_rows(self, places: Sequence[RowLocation]) -> _Values:
        ref = RunRef.of(self.night)
        values: _Values = {}
        corpus = corpus_of(self.files, ref) or Corpus()
        async with _open_judges(self.settings, corpus, self.files) as judges:
            for shard, positions in by_shard(places).items():
                rows = scored_rows(self.files, ref, [], {shard: positions})
                values |= await self._score_shard(judges, ref, shard, rows)
        return values

    async def _score_shard(
        self, judges: JudgePool, ref: RunRef, shard: int, rows: Mapping[RowLocation, ScoredRow]
    ) -> _Values:
        family = family_of(self.settings, self.metrics)
        part = PartScorer(self.settings, self.files, self.files, ref, family, shard)
        clients = await part.open_clients(judges, None)
        panel = _LastingPanel(clients.members, self.settings.joined)
        texts = [scored.row for scored in rows.values()]
        scores = [scored.scores async for scored in drive(texts, family, panel)]
        for spent in clients.usage(self.settings).values():
            self.usage = sum(map(Usage.model_validate, spent.values()), self.usage)
        for cache in filter(None, clients.caches):
            cache.compact()
        refusals = (member.client.refusal for member in clients.members)
        self.problem = next((str(refusal) for refusal in refusals if refusal), self.problem)
        return dict(zip(rows, scores, strict=True))

    def _paired(self, metric: str, values: _Values) -> Iterator[JudgedTwice]:
        table = self.scores[metric].compared
        tags = {summary.segment.tag for summary in self.night.segments if summary.segment}
        shown = [tag for tag in sorted(tags) if f"tag:{tag}" in table]
        for row in table.to_dict("records"):
            score = values.get((row["shard"], row["position"]), {}).get(metric)
            if score is not None and score.value is not None:
                named = {
                    tag: row[f"tag:{tag}"] for tag in shown if isinstance(row[f"tag:{tag}"], str)
                }
                yield JudgedTwice(
                    question=row["question"], old=score.value, new=row["value"], tags=named
                )


def _left_of(budget: BudgetReport | None) -> SpendLimiter | None:
    """What a night left of its budget."""
    if budget is None:
        return None
    limits, spent = budget.limits, budget.spent
    used = {"requests": spent.requests, "tokens": spent.tokens, "usd": spent.usd or 0.0}
    most = {name: getattr(limits, f"max_{name}") for name in used}
    left = {name: most[name] - used[name] for name in used if most[name] is not None}
    return SpendLimiter(**left)


@asynccontextmanager
async def _open_judges(
    settings: Settings, corpus: Corpus, files: Files
) -> AsyncIterator[JudgePool]:
    """The judges of the settings, also those that have no key any more."""
    judges = [make_member(chosen, corpus, files) for chosen in settings.panel]
    embedder = make_embedder(settings, corpus, stored=True)
    named = zip(names_of(judges), settings.panel, judges, strict=True)
    try:
        pooled = [PooledJudge(name, chosen, judge, SingleFlight()) for name, chosen, judge in named]
        yield JudgePool(pooled, embedder, SingleFlight())
    finally:
        for judge in judges:
            await judge.close()
        await embedder.close()


class _LastingPanel(Panel):
    """A panel that goes on with stored replies where a judge refuses."""

    def _ends(self, member: Member) -> bool:
        return False
