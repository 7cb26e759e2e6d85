"""The cheap judge's scores of all rows: by the embedded judge, which computes on this machine.

    rows/dt=DATE/run=ID/cheap/metric=NAME/shard-000.parquet      only if the draw needs them

Active sampling needs them before the rows are drawn. They are stored, so that neither a retry nor
the scoring of the rows computes them again. Otherwise they are computed with the scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragmetrics.judges import Corpus, EmbeddedJudge, EmbeddingClient, JudgeClient
from ragmetrics.metrics import Metric
from ragmetrics.model import LogRow
from ragmetrics.scoring.panel import Member, MetricRun, Panel, is_heavy
from ragmetrics.storage import Files, RunRef, read_columns

CHEAP_SCHEMA = pa.schema([("cheap", pa.float64())])
"""One line per row of the shard, in their order; null where the cheap judge gave no score."""

Floats = NDArray[np.float64]


class CheapScorer:
    """Scores rows by the cheap judge of a night."""

    def __init__(self, corpus: Corpus) -> None:
        self._member = Member(_embedded_client(corpus))
        self._panel = Panel([self._member])

    async def runs(self, metrics: Sequence[Metric], row: LogRow) -> dict[str, MetricRun]:
        """The runs of metrics. A metric without a baseline is started and not finished."""
        able = [one for one in metrics if all(prompt.baseline for prompt in one.prompts)]
        started = [MetricRun(one, row, heavy=is_heavy(row)) for one in metrics if one not in able]
        for one in started:
            await one.advance(None)
        finished = await self._panel.run_metrics(self._member, able, row)
        return {one.metric.name: one for one in (*finished, *started)}

    async def stop(self) -> None:
        """Cancel the requests in flight."""
        await self._panel.stop()


def cheap_fingerprint() -> str:
    """The fingerprint of the cheap judge: uncertainties of another one do not count."""
    return EmbeddedJudge(Corpus()).fingerprint


def load_cheap(files: Files, ref: RunRef, metric: str, shard: int) -> Floats | None:
    """The stored cheap scores of a shard, NaN where there is none; None if none were stored."""
    path = ref.cheap(metric, shard)
    if not files.exists(path):
        return None
    found: Floats = read_columns(files, path, ["cheap"])["cheap"].to_numpy().astype(np.float64)
    return found


def _embedded_client(corpus: Corpus) -> JudgeClient:
    """A client of the embedded judge, without a reply cache."""
    from ragmetrics.judges import HashedEmbedder

    return JudgeClient(EmbeddedJudge(corpus), EmbeddingClient(HashedEmbedder(corpus)))
