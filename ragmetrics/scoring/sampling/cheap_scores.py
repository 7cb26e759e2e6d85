"""The cheap judges' scores of all rows, computed on this machine.

    rows/dt=DATE/run=ID/cheap/metric=NAME/shard-000.parquet      only if the draw needs them

Active sampling needs them before the rows are drawn. They are stored, so that neither a retry nor
the scoring of the rows computes them again. Otherwise they are computed with the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.metrics import Metric
from ragmetrics.records import LogRow, fingerprint
from ragmetrics.scoring.metric_run import MetricRun, is_heavy
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.sampling.cheap import CheapJudges
from ragmetrics.storage import Files, RunRef, StoredPart

CHEAP_SCHEMA = pa.schema([("cheap", pa.float64())])
"""One line per row of the shard, in their order; null where the cheap judge gave no score."""

Floats = NDArray[np.float64]


class Guess:
    """The cheap score of a row by a metric: the mean over the cheap judges."""

    def __init__(self, runs: Sequence[MetricRun]) -> None:
        self.score = runs[0].score
        self.asked = runs[0].asked
        values = [run.score.value for run in runs if run.score]
        known = [value for value in values if value is not None]
        self.value = sum(known) / len(known) if known else None


class CheapScorer:
    """Scores rows by the cheap judges of a night."""

    def __init__(self, judges: CheapJudges) -> None:
        self._judges = judges
        self._panel = Panel([judges.lexical])

    async def guesses(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, Guess]:
        """The cheap scores. A metric without a baseline is started and not finished."""
        able = [metric for metric in metrics if all(prompt.baseline for prompt in metric.prompts)]
        guesses = {}
        for metric in metrics:
            if metric not in able:
                run = MetricRun(metric, row, heavy=is_heavy(row))
                await run.advance(None)
                guesses[metric.name] = Guess([run])
        for judges, of_judges in self._judges.groups(able):
            turns = [await self._panel.run_metrics(judge, of_judges, row) for judge in judges]
            for runs in zip(*turns, strict=True):
                guesses[runs[0].metric.name] = Guess(runs)
        return guesses

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        await self._judges.stop()


def cheap_fingerprint(learned: str = "") -> str:
    """The fingerprint of the cheap judge: uncertainties of another one do not count.

    `learned` is the path of the learned judge. Its versions count as one judge: each is fitted to
    the same judge's verdicts, and a wrong uncertainty costs rows, never a valid interval.
    """
    if learned:
        return fingerprint("learned", learned.rpartition("/")[0])
    return LexicalJudge(Corpus()).fingerprint


def load_cheap(files: Files, ref: RunRef, metric: str, shard: int) -> Floats | None:
    """The stored cheap scores of a shard, NaN where there is none; None if none were stored."""
    path = ref.cheap(metric, shard)
    if not files.exists(path):
        return None
    scores: Floats = (
        StoredPart(files, path).columns(["cheap"])["cheap"].to_numpy().astype(np.float64)
    )
    return scores
