"""Summaries: the means of a run with their intervals, over all rows and by segment."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from ragmetrics.protocol import Status
from ragmetrics.records import Segment, Summary
from ragmetrics.rows import question_key
from ragmetrics.stats.intervals import mean_interval
from ragmetrics.store.files import Files
from ragmetrics.store.parts import RunRef, read_columns

_MOST_VALUES = 20
_BINS = 10


@dataclass(frozen=True)
class MetricScores:
    """All scores of one metric in one run, row by row: what means and comparisons are made of."""

    metric: str
    table: pd.DataFrame
    """Columns: question, value, status, shard, position, and one per tag, `tag:NAME`."""

    @property
    def scored(self) -> pd.DataFrame:
        """The rows with a value."""
        return self.table[self.table["status"] == Status.SCORED.value]

    def by_question(self, segment: Segment | None = None) -> dict[str, list[float]]:
        """The values of each question, of one segment or of all rows."""
        rows = self.scored
        if segment:
            column = f"tag:{segment.tag}"
            if column not in rows:
                return {}
            rows = rows[rows[column] == segment.value]
        grouped: dict[str, list[float]] = {}
        for question, value in zip(rows["question"], rows["value"], strict=True):
            grouped.setdefault(question, []).append(value)
        return grouped

    def worst(
        self, count: int, before: Mapping[str, Sequence[float]]
    ) -> list[tuple[int, int, float]]:
        """Shard, position and value of the lowest scores, lowest first.

        Among equals, questions that stood highest `before` come first: these are the ones that
        fell, while the others may always have been low.
        """
        rows = self.scored
        columns = (rows[name] for name in ("value", "question", "shard", "position"))
        ranked = (
            (value, -float(np.mean(before.get(question, [value]))), int(shard), int(position))
            for value, question, shard, position in zip(*columns, strict=True)
        )
        lowest = heapq.nsmallest(count, ranked)
        return [(shard, position, float(value)) for value, _, shard, position in lowest]


def load_scores(files: Files, ref: RunRef, metric: str) -> MetricScores:
    """Read a metric's scores of a run, without their details; those of a missing part failed."""
    frames = []
    for shard in range(ref.shards):
        path = ref.scores(metric, shard)
        if files.exists(path):
            table = read_columns(files, path, ["question", "value", "status", "tags"])
        else:
            table = _missing(read_columns(files, ref.rows(shard), ["user_input", "tags"]))
        frame = table.drop_columns("tags").to_pandas()
        frame["shard"], frame["position"] = shard, np.arange(len(frame))
        frames.append(frame.assign(**_tag_columns(table["tags"])))
    whole = pd.concat(frames, ignore_index=True)
    return MetricScores(metric, whole)


def summarise(scores: MetricScores, fingerprint: str, segment: Segment | None = None) -> Summary:
    """The metric's mean over all rows, or over those of a segment."""
    rows = scores.table
    if segment:
        rows = rows[rows[f"tag:{segment.tag}"] == segment.value]
    scored = rows[rows["status"] == Status.SCORED.value]
    values = scored["value"].to_numpy(dtype=np.float64)
    mean = mean_interval(values, scored["question"].to_numpy(dtype=str))
    counts, _ = np.histogram(np.clip(values, 0, 1), bins=_BINS, range=(0, 1))
    return Summary(
        metric=scores.metric,
        segment=segment,
        mean=mean.mean if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        scored=len(scored),
        questions=mean.clusters if mean else 0,
        status=dict(sorted(Counter(rows["status"]).items())),
        fingerprint=fingerprint,
        histogram=[int(count) for count in counts],
    )


def find_segments(scores: MetricScores, tags: Sequence[str] | None) -> list[Segment]:
    """The segments to show: every value of the tags asked for, or of those with few values."""
    found = []
    for column in scores.table.columns:
        if not column.startswith("tag:"):
            continue
        tag = column.removeprefix("tag:")
        values = sorted(scores.table[column].dropna().unique())
        wanted = tag in tags if tags is not None else 1 < len(values) <= _MOST_VALUES
        if wanted:
            found += [Segment(tag=tag, value=value) for value in values]
    return found


def _missing(rows: pa.Table) -> pa.Table:
    return pa.table(
        {
            "question": [question_key(text) for text in rows["user_input"].to_pylist()],
            "value": pa.nulls(len(rows), pa.float64()),
            "status": [Status.JUDGE_FAILED.value] * len(rows),
            "tags": rows["tags"],
        }
    )


def _tag_columns(tags: pa.ChunkedArray) -> Mapping[str, pd.Series]:
    rows = [dict(row or ()) for row in tags.to_pylist()]
    names = sorted({name for row in rows for name in row})
    return {
        f"tag:{name}": pd.Series([row.get(name) for row in rows], dtype="str") for name in names
    }
