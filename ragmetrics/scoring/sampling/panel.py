"""The panel of a sampled night: it judges the sample, and the embedded judge scores all rows.

row in the sample          the panel's score; `cheap` is the embedded judge's score
row not in the sample      `not_sampled`, with `cheap` alone
row without any request    the same score in both cases, such as `not_applicable`
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
from ragmetrics.scoring.panel import Member, MetricRun, Panel, is_heavy
from ragmetrics.scoring.sampling.draw import RowIds, SamplePlan

_REASON = "not in the sample"


class SampledPanel(Panel):
    """Scores the rows of a sample by a panel, and all rows by the embedded judge."""

    def __init__(
        self,
        members: Sequence[Member],
        aggregate: Aggregate,
        budget: BudgetPlan | None,
        sample: SamplePlan,
        corpus: Corpus,
    ) -> None:
        super().__init__(members, aggregate, budget)
        self._sample, self._cheap = sample, Member(_embedded_client(corpus))
        self._marks = RowIds()
        # The embedded judge computes: one row at a time, so that it does not block requests.
        self._computing = asyncio.Semaphore(1)

    async def score(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Score]:
        """Score one row by metrics. Rows must be started in their order. Raises what `Panel.score`
        raises.
        """
        left_out = self._sample.left_out(self._marks.of(row.question_key, row.id))
        judged = [one for one in metrics if one.name not in left_out]
        scores = await super().score(judged, row) if judged else {}
        async with self._computing:
            guesses = await self._guesses([one for one in metrics if one.prompts], row)
            await asyncio.sleep(0)  # replies have their turn before the next row is computed
        return {
            one.name: _with_cheap_score(scores.get(one.name), guesses.get(one.name))
            for one in metrics
        }

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        await super().stop()
        await self._cheap.client.stop()

    async def _guesses(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, MetricRun]:
        """The embedded judge's runs. A metric without a baseline is started and not finished."""
        able = [one for one in metrics if all(prompt.baseline for prompt in one.prompts)]
        started = [MetricRun(one, row, heavy=is_heavy(row)) for one in metrics if one not in able]
        for one in started:
            await one.advance(None)
        finished = await self.run_metrics(self._cheap, able, row)
        return {one.metric.name: one for one in (*finished, *started)}


def _with_cheap_score(score: Score | None, guess: MetricRun | None) -> Score:
    """The score of a row with the embedded judge's value as `cheap`."""
    cheap = guess.score.value if guess and guess.score else None
    if score is not None:
        return score if cheap is None else replace(score, cheap=cheap)
    if guess and guess.score and not guess.asked and guess.score.value is None:
        return guess.score
    return Score(None, _REASON, status=Status.NOT_SAMPLED, cheap=cheap)


def _embedded_client(corpus: Corpus) -> JudgeClient:
    """A client of the embedded judge, without a reply cache."""
    from ragmetrics.judges import HashedEmbedder

    return JudgeClient(EmbeddedJudge(corpus), EmbeddingClient(HashedEmbedder(corpus)))
