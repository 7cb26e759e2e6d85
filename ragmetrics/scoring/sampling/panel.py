"""The panel of a sampled night: it judges the rows of the sample, and the embedded judge all rows.

judged, and of the sample        its own score, and the embedded judge's beside it as `cheap`
not of the sample                `not_sampled`, with `cheap` alone
a score that asks nothing        of the sample or not, the row is what it is: `not_applicable`
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ragmetrics.config import Aggregate
from ragmetrics.judges import Corpus, EmbeddedJudge, EmbeddingClient, JudgeClient
from ragmetrics.metrics import Metric
from ragmetrics.model import LogRow, Score, Status
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.metric_run import MetricRun, is_heavy
from ragmetrics.scoring.panel import Member, Panel
from ragmetrics.scoring.sampling.plan import RowIds, SamplePlan

_REASON = "not in the sample"


class SampledPanel(Panel):
    """Scores rows by a panel where they are in the sample, and by the embedded judge."""

    def __init__(
        self,
        members: Sequence[Member],
        aggregate: Aggregate,
        budget: BudgetPlan | None,
        sample: SamplePlan,
        corpus: Corpus,
    ) -> None:
        super().__init__(members, aggregate, budget)
        self._sample, self._cheap = sample, Member(_broker(corpus))
        self._marks = RowIds()
        # It computes: row after row, or requests on their way would wait for hundreds of rows.
        self._computing = asyncio.Semaphore(1)

    async def score(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Score]:
        """Score one row by metrics, rows being begun in their order. Raises what `Panel.score`
        does.
        """
        left_out = self._sample.left_out(self._marks.of(row.question_key, row.id))
        asked = [one for one in metrics if one.name not in left_out]
        scores = await super().score(asked, row) if asked else {}
        async with self._computing:
            guesses = await self._guesses([one for one in metrics if one.prompts], row)
        return {one.name: _both(scores.get(one.name), guesses.get(one.name)) for one in metrics}

    async def stop(self) -> None:
        """Give up what is still waiting for an answer."""
        await super().stop()
        await self._cheap.broker.stop()

    async def _guesses(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, MetricRun]:
        """The embedded judge's plays; one that it has no baseline for is only begun."""
        able = [one for one in metrics if all(prompt.baseline for prompt in one.prompts)]
        begun = [MetricRun(one, row, heavy=is_heavy(row)) for one in metrics if one not in able]
        for one in begun:
            await one.go_on(None)
        played = await self.played(self._cheap, able, row)
        return {one.metric.name: one for one in (*played, *begun)}


def _both(score: Score | None, guess: MetricRun | None) -> Score:
    """The score of a row with what the embedded judge makes of it."""
    cheap = guess.score.value if guess and guess.score else None
    if score is not None:
        return score if cheap is None else replace(score, cheap=cheap)
    if guess and guess.score and not guess.asked and guess.score.value is None:
        return guess.score
    return Score(None, _REASON, status=Status.NOT_SAMPLED, cheap=cheap)


def _broker(corpus: Corpus) -> JudgeClient:
    """The embedded judge at work, which nobody pays and nobody keeps the answers of."""
    from ragmetrics.judges import HashedEmbedder

    return JudgeClient(EmbeddedJudge(corpus), EmbeddingClient(HashedEmbedder(corpus)))
