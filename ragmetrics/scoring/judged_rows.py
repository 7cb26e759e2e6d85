"""Which rows of a staged run are judged, where the settings have a sample or a budget.

Active sampling needs cheap scores of all rows before the draw: one family of metrics over one shard
at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from ragmetrics.config import Rule, Settings
from ragmetrics.http import run_coroutine
from ragmetrics.records import Record
from ragmetrics.scoring.both_judges import BridgeRows
from ragmetrics.scoring.budget.estimate import plan_budget
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.part import stream_rows
from ragmetrics.scoring.process_pool import score_in_processes
from ragmetrics.scoring.reuse import Reuse
from ragmetrics.scoring.sampling.cheap_scores import CHEAP_SCHEMA, make_cheap_judges
from ragmetrics.scoring.sampling.draw import plan_sample
from ragmetrics.scoring.sampling.plan import SamplePlan
from ragmetrics.scoring.staging import Staged, load_corpus
from ragmetrics.storage import Files, PartWriter, RunRef, StoredPart, open_store, workspace

log = logging.getLogger(__name__)
RUN_FILES: Mapping[str, type[Record]] = {
    "staged": Staged,
    "reuse": Reuse,
    "budget": BudgetPlan,
    "sample": SamplePlan,
    "bridge": BridgeRows,
}
"""What is stored beside the rows of a run, by the name of its file."""


def choose_rows(settings: Settings, ref: RunRef, kept: Files | None = None) -> None:
    """Draw the sample and plan the budget of a staged run; both are stored beside its rows.

    `kept` is the store with the reply cache; None: the run's store. Every row has equal chances.
    """
    files = open_store(settings)
    if settings.samples:
        plan_sample(settings, files, ref)
    if settings.budget.binds:
        plan_budget(settings, files, ref, kept)


def choose_rows_of_night(settings: Settings, staged: Staged, prints: Mapping[str, str]) -> None:
    """The same for a night, whose sample may depend on earlier nights, with a warning where alert
    rules need more rows. `prints` are the fingerprints of the metrics.
    """
    files, sample = open_store(settings), None
    if settings.samples:
        score_cheap: Callable[[Sequence[str], str], None]
        score_cheap = partial(score_cheap_parts, settings, staged)
        if sample := plan_sample(settings, files, staged.ref, prints, score_cheap):
            _warn_of_few_rows(settings, sample)
    if settings.budget.binds and (budget := plan_budget(settings, files, staged.ref)):
        _warn_of_small_budget(settings, budget, sample)


def _warn_of_small_budget(
    settings: Settings, budget: BudgetPlan, sample: SamplePlan | None
) -> None:
    """Warn when the budget allows fewer rows than an alert rule needs."""
    rules = settings.alerts.rules or ()
    needed = max((rule.min_rows for rule in rules), default=Rule.model_fields["min_rows"].default)
    drawn = [group.judged for group in sample.groups if group.judged >= needed] if sample else []
    rows = min([budget.rows, *(int(budget.share * judged) for judged in drawn)])
    if budget.share < 1 and rows < needed:
        log.warning(
            "the budget allows %d rows, but alert rules need %d: they will have no_data",
            rows,
            needed,
        )


def _warn_of_few_rows(settings: Settings, sample: SamplePlan) -> None:
    """Warn when the sample is smaller than an alert rule needs."""
    for rule in settings.alerts.rules or ():
        group = sample.group(rule.metric)
        if group and group.judged < min(rule.min_rows, group.rows):
            log.warning(
                "sample: %d rows of %s are judged, but its alert rule needs %d: it will have "
                "no_data",
                group.judged,
                rule.metric,
                rule.min_rows,
            )


@dataclass(frozen=True)
class CheapRunScorer:
    """Computes and stores the cheap scores of parts of a staged run."""

    settings: Settings
    ref: RunRef
    learned: str = ""
    """Path of the learned judge that scores the rows; empty: the lexical judge does."""

    def score(self, names: Sequence[str], shard: int) -> int:
        """The cheap scores of one part. Returns the number of rows, 0 if they were stored."""
        return run_coroutine(self._score(names, shard))

    async def _score(self, names: Sequence[str], shard: int) -> int:
        files, ref = open_store(self.settings), self.ref
        family = [metric for metric in chosen_metrics(self.settings) if metric.name in names]
        if all(StoredPart(files, ref.cheap(metric.name, shard)).is_whole() for metric in family):
            return 0
        judges = make_cheap_judges(load_corpus(files, ref), files, self.learned)
        with workspace() as folder:
            writers = {metric.name: PartWriter(folder, CHEAP_SCHEMA) for metric in family}
            async with aclosing(stream_rows(files, ref.rows(shard))) as rows:
                async for row in rows:
                    for name, guess in (await judges.guesses(family, row)).items():
                        writers[name].add({"cheap": guess.value}, size=16)
            for name, writer in writers.items():
                writer.finish(files, ref.cheap(name, shard))
        return next(iter(writers.values())).rows


def score_cheap_parts(
    settings: Settings, staged: Staged, wanted: Sequence[str], learned: str = ""
) -> None:
    """Compute and store the cheap scores of all rows for some metrics, before the draw.

    By several processes, as for a judge that computes on this machine. Parts that are stored are
    not computed again. `learned` is the path of the learned judge, if the night uses one. Raises
    the first error of a part.
    """
    scorer = CheapRunScorer(settings, staged.ref, learned)
    families = [[name for name in family if name in wanted] for family in score_families(settings)]
    todo = [(own, n) for own in families if own for n in range(staged.ref.shards)]
    for problem in score_in_processes(scorer, todo, settings.processes, staged.source.rows):
        raise problem
