"""Cheap scores before the draw: one family of metrics over one shard."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ragmetrics.config import Settings
from ragmetrics.http import run_coroutine
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.part import stream_rows
from ragmetrics.scoring.process_pool import score_in_processes
from ragmetrics.scoring.sampling.cheap_scores import CHEAP_SCHEMA, make_cheap_judges
from ragmetrics.scoring.staging import Staged, load_corpus
from ragmetrics.storage import PartWriter, RunRef, StoredPart, open_store, workspace


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
        if all(StoredPart(files, ref.cheap(one.name, shard)).is_whole() for one in family):
            return 0
        judges = make_cheap_judges(load_corpus(files, ref), files, self.learned)
        with workspace() as folder:
            writers = {one.name: PartWriter(folder, CHEAP_SCHEMA) for one in family}
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
    families = [[one for one in family if one in wanted] for family in score_families(settings)]
    todo = [(own, n) for own in families if own for n in range(staged.ref.shards)]
    for problem in score_in_processes(scorer, todo, settings.processes, staged.source.rows):
        raise problem
