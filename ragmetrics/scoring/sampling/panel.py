"""The panel of a sampled night: it judges the sample, and a cheap judge scores all rows.

row in the sample          the panel's score; `cheap` is the cheap judge's score
row not in the sample      `not_sampled`, with `cheap` alone
row without any request    the same score in both cases, such as `not_applicable`
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ragmetrics.config import Aggregate
from ragmetrics.metrics import Metric
from ragmetrics.model import LogRow, Score, Status
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.panel import Member, MetricRun, Panel, is_heavy
from ragmetrics.scoring.sampling.cheap import CheapJudges
from ragmetrics.scoring.sampling.draw import RowIds, SamplePlan

_REASON = "not in the sample"


class SampledPanel(Panel):
    """Scores the rows of a sample by a panel, and all rows by cheap judges."""

    def __init__(
        self,
        members: Sequence[Member],
        aggregate: Aggregate,
        budget: BudgetPlan | None,
        sample: SamplePlan,
        cheap: CheapJudges,
    ) -> None:
        super().__init__(members, aggregate, budget)
        self._sample, self._cheap = sample, cheap
        self._marks = RowIds()
        # A cheap judge computes: one row at a time, so that it does not block requests.
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
        await self._cheap.stop()

    async def _guesses(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, _Guess]:
        """The cheap scores. A metric without a baseline is started and not finished."""
        able = [one for one in metrics if all(prompt.baseline for prompt in one.prompts)]
        found = {}
        for one in metrics:
            if one not in able:
                run = MetricRun(one, row, heavy=is_heavy(row))
                await run.advance(None)
                found[one.name] = _Guess([run])
        for judges, own in self._cheap.groups(able):
            turns = [await self.run_metrics(judge, own, row) for judge in judges]
            for runs in zip(*turns, strict=True):
                found[runs[0].metric.name] = _Guess(runs)
        return found


class _Guess:
    """The cheap score of a row: the mean over the cheap judges."""

    def __init__(self, runs: Sequence[MetricRun]) -> None:
        self.score = runs[0].score
        self.asked = runs[0].asked
        values = [one.score.value for one in runs if one.score]
        known = [value for value in values if value is not None]
        self.value = sum(known) / len(known) if known else None


def _with_cheap_score(score: Score | None, guess: _Guess | None) -> Score:
    """The score of a row with the cheap judge's value as `cheap`."""
    cheap = guess.value if guess else None
    if score is not None:
        return score if cheap is None else replace(score, cheap=cheap)
    if guess and guess.score and not guess.asked and guess.score.value is None:
        return guess.score
    return Score(None, _REASON, status=Status.NOT_SAMPLED, cheap=cheap)
