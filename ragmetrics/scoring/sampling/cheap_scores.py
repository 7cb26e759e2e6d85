"""The panel of a sampled night: it judges the sample, and cheap judges score all rows.

row in the sample          the panel's score; `cheap` is the cheap judge's score
row not in the sample      `not_sampled`, with `cheap` alone
row without any request    the same score in both cases, such as `not_applicable`

The cheap judges:

`lexical`  one judge
`learned`   eight, each at another quantile of the predicted verdicts. The mean of a metric over
            them is the value to be expected, which is a better guess than that of the most
            probable verdicts; their spread is how uncertain it is.

A run names its learned judge in the plan of its sample, so that all its parts use the same one.

    rows/dt=DATE/run=ID/cheap/metric=NAME/shard-000.parquet      only if the draw needs them

Active sampling needs the scores before the rows are drawn. They are computed on this machine and
stored, so that neither a retry nor the scoring of the rows computes them again. Otherwise they are
computed with the scores.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import pyarrow as pa

from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.judges import (
    Corpus,
    EmbeddingClient,
    HashedEmbedder,
    JudgeClient,
    LearnedJudge,
    LexicalJudge,
    find_learned,
)
from ragmetrics.metrics import Metric
from ragmetrics.records import LogRow, Score, Status, fingerprint
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.combination import Joined
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.metric_run import Member, MetricRun, is_heavy
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.sampling.plan import RowIds, SamplePlan
from ragmetrics.stats import Numbers
from ragmetrics.storage import Files, LearnedJudges, RunRef, StoredPart

log = logging.getLogger(__name__)
QUANTILES = tuple((number + 0.5) / 8 for number in range(8))
CHEAP_SCHEMA = pa.schema([("cheap", pa.float64())])
"""One line per row of the shard, in their order; null where the cheap judge gave no score."""


class Guess:
    """The cheap score of a row by a metric: the mean over the cheap judges."""

    def __init__(self, runs: Sequence[MetricRun]) -> None:
        self.score = runs[0].score
        self.asked = runs[0].asked
        values = [run.score.value for run in runs if run.score]
        known = [value for value in values if value is not None]
        self.value = sum(known) / len(known) if known else None


@dataclass(frozen=True)
class CheapJudges:
    """The judges of all rows of a sampled night."""

    lexical: Member
    learned: tuple[Member, ...] = ()
    model: LearnedJudge | None = None

    async def guesses(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Guess]:
        """The cheap scores. A metric without a baseline is started and not finished."""
        able = [metric for metric in metrics if all(prompt.baseline for prompt in metric.prompts)]
        guesses = {}
        for metric in metrics:
            if metric not in able:
                run = MetricRun(metric, row, heavy=is_heavy(row))
                await run.advance(None)
                guesses[metric.name] = Guess([run])
        panel = Panel([self.lexical])
        for judges, of_judges in self._groups(able):
            turns = [await panel.run_metrics(judge, of_judges, row) for judge in judges]
            for runs in zip(*turns, strict=True):
                guesses[runs[0].metric.name] = Guess(runs)
        return guesses

    def _groups(self, metrics: Sequence[Metric]) -> list[tuple[Sequence[Member], list[Metric]]]:
        """The judges whose mean score is the cheap score, with their metrics."""
        learned = [metric for metric in metrics if self._is_learned(metric)]
        lexical = [metric for metric in metrics if metric not in learned]
        groups = ((self.learned, learned), ((self.lexical,), lexical))
        return [(judges, own) for judges, own in groups if own]

    def _is_learned(self, metric: Metric) -> bool:
        model = self.model
        return model is not None and any(model.predicts(prompt.name) for prompt in metric.prompts)

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        for judge in (self.lexical, *self.learned):
            await judge.client.stop()


def choose_learned(settings: Settings, files: Files) -> tuple[str, str]:
    """The path of the learned judge that a sampled night uses, and a sentence about it.

    Without `cheap: learned` both are empty; without a judge that is better the path alone.
    """
    if settings.sample is None or not settings.sample.learns:
        return "", ""
    judge = next((one for one in settings.panel if one.remote), None)
    model = find_learned(judge, files) if judge else None
    if model is None:
        note = "there is no learned judge yet: the lexical judge scores all rows"
        log.info("sample: %s", note)
        return "", note
    used = [prompt.name for prompt in model.prompts if prompt.used]
    others = [f"{one.name}: {one.why or 'no better'}" for one in model.prompts if not one.used]
    others += [f"{name}: {why}" for name, why in model.refused.items()]
    known = f"the learned judge (version {model.version}, {model.verdicts:,} verdicts)"
    rest = f"; the lexical judge for {'; '.join(others)}" if others else ""
    if not used:
        return "", f"{known} is not used{rest}"
    return LearnedJudges.path(model), f"{known} scores all rows, for {', '.join(used)}{rest}"


def learned_correlations(settings: Settings, files: Files) -> dict[str, float]:
    """By metric, the correlation of row scores that the learned judge had when it was fitted.

    Only of metrics for which it is used. A sample needs 1 - r^2 of the rows of a plain one.
    """
    judge = next((one for one in settings.panel if one.remote), None)
    model = find_learned(judge, files) if judge else None
    by_prompt = {
        prompt.name: prompt.quality.row_correlation.value
        for prompt in (model.prompts if model else ())
        if prompt.used
    }
    return {
        metric.name: correlation
        for metric in chosen_metrics(settings)
        for prompt in metric.prompts
        if (correlation := by_prompt.get(prompt.name)) is not None
    }


def make_cheap_judges(corpus: Corpus, files: Files, path: str = "") -> CheapJudges:
    """The cheap judges of a run; `path`: its learned judge. Raises StoreError if it is missing."""
    lexical = _member(LexicalJudge(corpus), corpus)
    if not path:
        return CheapJudges(lexical)
    model = LearnedJudges(files).load(path)
    if model is None:
        raise StoreError(f"{files.uri(path)} is missing: run the night again without its sample")
    judges = LearnedJudge.at_quantiles(model, corpus, QUANTILES)
    learned = tuple(_member(judge, corpus) for judge in judges)
    return CheapJudges(lexical, learned, judges[0])


def _member(judge: LexicalJudge | LearnedJudge, corpus: Corpus) -> Member:
    """A member without a reply cache."""
    return Member(JudgeClient(judge, EmbeddingClient(HashedEmbedder(corpus))))


def cheap_fingerprint(learned: str = "") -> str:
    """The fingerprint of the cheap judge: uncertainties of another one do not count.

    `learned` is the path of the learned judge. Its versions count as one judge: each is fitted to
    the same judge's verdicts, and a wrong uncertainty costs rows, never a valid interval.
    """
    if learned:
        return fingerprint("learned", learned.rpartition("/")[0])
    return LexicalJudge(Corpus()).fingerprint


def load_cheap(files: Files, ref: RunRef, metric: str, shard: int) -> Numbers | None:
    """The stored cheap scores of a shard, NaN where there is none; None if none were stored."""
    path = ref.cheap(metric, shard)
    if not files.exists(path):
        return None
    scores: Numbers = (
        StoredPart(files, path).columns(["cheap"])["cheap"].to_numpy().astype(np.float64)
    )
    return scores


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
        by_metric = {m.name: self._known[m.name] for m in metrics if m.name in self._known}
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
