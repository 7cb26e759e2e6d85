"""The panel of a sampled night: it judges the sample, and a cheap judge scores all rows.

row in the sample          the panel's score; `cheap` is the cheap judge's score
row not in the sample      `not_sampled`, with `cheap` alone
row without any request    the same score in both cases, such as `not_applicable`
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from ragmetrics.metrics import Metric
from ragmetrics.records import LogRow, Score, Status
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.combination import Joined
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.sampling.cheap_scores import CheapJudges, Guess
from ragmetrics.scoring.sampling.plan import RowIds, SamplePlan
from ragmetrics.stats import Numbers

_REASON = "not in the sample"


class SampledPanel(Panel):
    """Scores the rows of a sample by a panel, and all rows by cheap judges.

    `known` are cheap scores of the shard's rows by metric, in their order, that were computed
    before the draw; NaN where there is none.
    """

    def __init__(
        self,
        members: Sequence[Member],
        aggregate: Joined,
        budget: BudgetPlan | None,
        sample: SamplePlan,
        cheap: CheapJudges,
        known: Mapping[str, Numbers] | None = None,
    ) -> None:
        super().__init__(members, aggregate, budget)
        self._sample, self._cheap = sample, cheap
        self._known, self._positions = known or {}, count()
        self._marks = RowIds()
        # A cheap judge computes: one row at a time, so that it does not block requests.
        self._computing = asyncio.Semaphore(1)

    async def score(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Score]:
        """Score one row by metrics. Rows must be started in their order. Raises what `Panel.score`
        raises.
        """
        mark, position = self._marks.of(row.question_key, row.id), next(self._positions)
        left_out = self._sample.left_out(mark)
        judged = [metric for metric in metrics if metric.name not in left_out]
        scores = await super().score(judged, row) if judged else {}
        by_metric = {one.name: self._known[one.name] for one in metrics if one.name in self._known}
        known = {
            name: float(scores_of[position])
            for name, scores_of in by_metric.items()
            if not np.isnan(scores_of[position])
        }
        wanted = [metric for metric in metrics if metric.prompts and metric.name not in known]
        guesses: dict[str, Guess] = {}
        if wanted:
            async with self._computing:
                guesses = await self._cheap.guesses(wanted, row)
                await asyncio.sleep(0)  # replies have their turn before the next row is computed
        return {
            metric.name: self._drawn(
                metric.name,
                mark,
                _with_cheap_score(
                    scores.get(metric.name), guesses.get(metric.name), known.get(metric.name)
                ),
            )
            for metric in metrics
        }

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        await super().stop()
        await self._cheap.stop()

    def _drawn(self, metric: str, mark: str, score: Score) -> Score:
        """The score with the inclusion probability of a row that was drawn with one."""
        group = self._sample.group(metric)
        chance = group.chance(mark) if group else None
        if chance is None:
            return score
        return replace(
            score, probability=chance.probability, compared=score.compared and chance.compared
        )


def _with_cheap_score(score: Score | None, guess: Guess | None, known: float | None) -> Score:
    """The score of a row with the cheap judge's value as `cheap`."""
    cheap = guess.value if guess else known
    if score is not None:
        return score if cheap is None else replace(score, cheap=cheap)
    if guess and guess.score and not guess.asked and guess.score.value is None:
        return guess.score
    return Score(None, _REASON, status=Status.NOT_SAMPLED, cheap=cheap)
