"""Summaries: the means of a run with confidence intervals, over all rows and by segment."""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ragmetrics.errors import StoreError
from ragmetrics.records import JudgeSummary, Segment, Status, Summary, question_key
from ragmetrics.scoring.sampling.estimate import PROBABILITY, STRATUM, sampled_mean, strata_of
from ragmetrics.scoring.sampling.plan import Group, RowIds, SamplePlan
from ragmetrics.stats import Numbers, krippendorff_alpha, mean_interval
from ragmetrics.storage import ROW_SCHEMA, Files, RunRef, StoredPart, note_damage

log = logging.getLogger(__name__)
if TYPE_CHECKING:  # these imports are slow: only code that reads scores needs them
    import pandas as pd
    import pyarrow as pa

_MOST_VALUES = 20
_MOST_LANGUAGES = 100
_MOST_TAGS = 50
_BINS = 10
_LANGUAGE = "language"
_COLUMNS = ["question", "value", "status", "votes", "failed", "spread", "cheap"]
_DRAWN = [PROBABILITY, "compared"]
"""Columns of rows that were drawn with unequal chances."""
_REASON = "reason"
_MOST_REASONS = 5
_OWN = ["index_build", "language", "tags"]
"""Columns that every row has, scored or not."""


@dataclass(frozen=True)
class MetricScores:
    """All scores of one metric in one run, row by row, for means and comparisons."""

    metric: str
    table: pd.DataFrame
    """Columns: question, value, status, reason (of rows that are not applicable), votes, failed,
    spread, cheap, index_build, shard, position, and one column `tag:NAME` per tag, also for the
    language. A sampled night has `stratum` too, and with active sampling `probability` and
    `compared`, which a cascade may have too."""
    higher_is_better: bool = True

    @property
    def scored(self) -> pd.DataFrame:
        """The rows with a value."""
        return self.table[self.table["status"] == Status.SCORED.value]

    @property
    def compared(self) -> pd.DataFrame:
        """The rows with a value that comparisons of nights read (see `Score.compared`): all, but
        for active sampling and for a cascade whose earlier judge failed.
        """
        rows = self.scored
        return rows[rows["compared"].ne(False)] if "compared" in rows else rows

    def of_segment(self, segment: Segment | None) -> MetricScores:
        """The scores of one segment, or of all rows; empty when no row has the tag."""
        if segment is None:
            return self
        column, table = f"tag:{segment.tag}", self.table
        rows = table[table[column] == segment.value] if column in table else table[:0]
        return replace(self, table=rows)

    def by_question(self, segment: Segment | None = None) -> dict[str, list[float]]:
        """The values of each question that compare, in one segment or in all rows."""
        rows = self.of_segment(segment).compared
        grouped: dict[str, list[float]] = {}
        pairs = zip(rows["question"].tolist(), rows["value"].tolist(), strict=True)
        for question, value in pairs:
            grouped.setdefault(question, []).append(value)
        return grouped

    def worst(
        self, count: int, before: Mapping[str, Sequence[float]]
    ) -> list[tuple[int, int, float]]:
        """Shard, position and value of the worst scores, worst first.

        Among equal scores, questions with the best scores `before` come first: these fell, while
        the others may always have been bad.
        """
        sign = 1 if self.higher_is_better else -1
        select = self.scored.nsmallest if self.higher_is_better else self.scored.nlargest
        rows = select(count, "value", keep="all")
        columns = (rows[name] for name in ("value", "question", "shard", "position"))
        ranked = (
            (
                sign * value,
                -sign * fmean(before.get(question, [value])),
                int(shard),
                int(position),
            )
            for value, question, shard, position in zip(*columns, strict=True)
        )
        worst = heapq.nsmallest(count, ranked)
        return [(shard, position, float(sign * value)) for value, _, shard, position in worst]


def load_scores(
    files: Files,
    ref: RunRef,
    metric: str,
    tags: Collection[str] = (),
    sample: SamplePlan | None = None,
    *,
    higher_is_better: bool = True,
) -> MetricScores:
    """Read a metric's scores of a run without their details. Rows of a missing part have failed.

    The table has the most frequent tags and the requested `tags`. With the plan of a `sample` it
    has the stratum of each row.
    """
    import pyarrow as pa

    group = sample.group(metric) if sample else None
    tables = [_read_scores(files, ref, metric, shard, group) for shard in range(ref.shards)]
    names = sorted(_tag_names(tables) | set(tags))
    parts = [_flat(table, shard, names) for shard, table in enumerate(tables)]
    whole = pa.concat_tables(parts, promote_options="permissive").to_pandas()
    whole = whole.drop(
        columns=[name for name in _DRAWN if name in whole and whole[name].isna().all()]
    )
    if sample and group:
        whole[STRATUM] = strata_of(whole, sample.tags, group)
    return MetricScores(metric, whole, higher_is_better)


def earlier_scores(
    files: Files, ref: RunRef, metric: str, tags: Collection[str] = ()
) -> MetricScores:
    """The scores of an earlier night; none where its files are damaged or gone, which is noted: the
    night is then compared with others.
    """
    try:
        return load_scores(files, ref, metric, tags)
    except StoreError as error:
        if error.transient:
            raise
        text = f"{error}: night {ref.date} is left out of comparisons by {metric}"
        log.error("%s", text)
        note_damage(text)
        empty = ROW_SCHEMA.empty_table().select(["id", "user_input", *_OWN])
        table = _flat(_missing(empty, None), 0, sorted(tags)).to_pandas()
        return MetricScores(metric, table)


def _read_scores(
    files: Files, ref: RunRef, metric: str, shard: int, sample: Group | None
) -> pa.Table:
    path = ref.scores(metric, shard)
    if files.exists(path):
        return _few_reasons(StoredPart(files, path).columns([*_COLUMNS, *_DRAWN, _REASON, *_OWN]))
    columns = ["id", "user_input", *_OWN]
    return _missing(StoredPart(files, ref.rows(shard)).columns(columns), sample)


def _few_reasons(table: pa.Table) -> pa.Table:
    """The table with the reasons of rows that are not applicable. Others may be long texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = table.schema.get_field_index(_REASON)
    applies = pc.equal(table["status"], Status.NOT_APPLICABLE.value)
    few = pc.if_else(applies, table[_REASON].cast(pa.string()), pa.scalar(None, pa.string()))
    return table.set_column(place, _REASON, few)


def summarise(
    scores: MetricScores,
    fingerprint: str,
    segment: Segment | None = None,
    panel: Sequence[str] = (),
) -> Summary:
    """Summarise a metric over all rows or one segment; `panel` are the names of the judges."""
    rows = scores.table
    if segment:
        rows = rows[rows[f"tag:{segment.tag}"] == segment.value]
    scored = rows[rows["status"] == Status.SCORED.value]
    values = scored["value"].to_numpy(dtype=np.float64)
    if STRATUM in rows:
        mean, sample = sampled_mean(rows)
    else:
        mean, sample = mean_interval(values, scored["question"].to_numpy(dtype=str)), None
    judges, agreement = _by_judge(rows, panel)
    return Summary(
        metric=scores.metric,
        segment=segment,
        mean=mean.mean if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        scored=len(scored),
        questions=mean.clusters if mean else 0,
        mde=mean.mde if mean else None,
        status=dict(sorted(Counter(rows["status"].tolist()).items())),
        not_applicable=dict(Counter(rows[_REASON].dropna().tolist()).most_common(_MOST_REASONS)),
        fingerprint=fingerprint,
        histogram=_histogram(values, _weights(scored)),
        judges=judges,
        agreement=agreement,
        spread=_mean_spread(rows),
        higher_is_better=scores.higher_is_better,
        sample=sample,
    )


def _weights(rows: pd.DataFrame) -> Numbers | None:
    """1 / inclusion probability of judged rows; None where all rows have the same weight."""
    if PROBABILITY not in rows:
        return None
    weights: Numbers = 1 / rows[PROBABILITY].to_numpy(dtype=np.float64)
    return weights


def _histogram(values: Numbers, weights: Numbers | None) -> list[int]:
    """Counts of ten bins. Weighted counts are scaled to the number of rows, and rounded."""
    clipped = np.clip(values, 0, 1)
    if weights is not None and len(weights):
        weights = weights * (len(weights) / weights.sum())
    counts, _ = np.histogram(clipped, bins=_BINS, range=(0, 1), weights=weights)
    return [round(count) for count in counts.tolist()]


def _mean_spread(rows: pd.DataFrame) -> float | None:
    """The mean spread of a row over the repeats of a judge."""
    known = rows[rows["spread"].notna()]
    return _mean(known["spread"].to_numpy(dtype=np.float64), _weights(known))


def _mean(values: Numbers, weights: Numbers | None) -> float | None:
    if not len(values):
        return None
    return float(values.mean() if weights is None else weights @ values / weights.sum())


def _by_judge(rows: pd.DataFrame, panel: Sequence[str]) -> tuple[list[JudgeSummary], float | None]:
    """The mean of each judge of a panel, and the agreement of the judges."""
    if not panel:
        return [], None
    voted = rows[rows["votes"].notna()]
    failed = Counter(name for row in rows["failed"].dropna() for name in row)
    if voted.empty:
        return _of_cascade(rows, failed, panel) if failed else [], None
    votes = np.array([list(row) for row in voted["votes"]], dtype=np.float64)  # None becomes NaN
    weights, judges = _weights(voted), []
    for name, column in zip(panel, votes.T, strict=True):
        known = ~np.isnan(column)
        values = column[known]
        judges.append(
            JudgeSummary(
                name=name,
                mean=_mean(values, None if weights is None else weights[known]),
                scored=len(values),
                failed=failed[name],
            )
        )
    # The agreement is that of rows with equal weights.
    alike = votes[voted["compared"].ne(False).to_numpy()] if "compared" in voted else votes
    return judges, krippendorff_alpha(alike.T, level="interval") if len(alike) else None


def _of_cascade(
    rows: pd.DataFrame, failed: Counter[str], panel: Sequence[str]
) -> list[JudgeSummary]:
    """The judges of a cascade, some of which failed. They have no means of their own: each answers
    other requests.
    """
    scored = rows[rows["status"] == Status.SCORED.value]["failed"]
    without = Counter(name for row in scored.dropna() for name in row)
    return [
        JudgeSummary(name=name, mean=None, scored=len(scored) - without[name], failed=failed[name])
        for name in panel
    ]


def find_segments(scores: MetricScores, tags: Sequence[str] | None) -> list[Segment]:
    """The segments to show: every value of the given tags, or of all tags with few values. A blank
    value is none.
    """
    found = []
    for column in scores.table.columns:
        if not column.startswith("tag:"):
            continue
        tag = column.removeprefix("tag:")
        found_values = sorted(scores.table[column].dropna().unique())
        values = [value for value in found_values if not Segment(tag=tag, value=value).is_blank]
        most = _MOST_LANGUAGES if tag == _LANGUAGE else _MOST_VALUES
        wanted = tag in tags if tags is not None else 1 < len(values) <= most
        if wanted:
            found += [Segment(tag=tag, value=value) for value in values]
    return found


def _missing(rows: pa.Table, sample: Group | None) -> pa.Table:
    """The rows of a missing part. The judge failed on all rows that it should have judged."""
    import pyarrow as pa

    keys = [question_key(text) for text in rows["user_input"].to_pylist()]
    marks = RowIds()
    statuses = [
        Status.JUDGE_FAILED
        if sample is None or sample.judges(marks.of(*one))
        else Status.NOT_SAMPLED
        for one in zip(keys, rows["id"].to_pylist(), strict=True)
    ]
    return pa.table(
        {
            "question": keys,
            "value": pa.nulls(len(rows), pa.float64()),
            "status": [statuse.value for statuse in statuses],
            _REASON: pa.nulls(len(rows), pa.string()),
            "votes": pa.nulls(len(rows), pa.list_(pa.float64())),
            "failed": pa.nulls(len(rows), pa.list_(pa.string())),
            "spread": pa.nulls(len(rows), pa.float64()),
            "cheap": pa.nulls(len(rows), pa.float64()),
            **{name: rows[name] for name in _OWN},
        }
    )


def _tag_names(tables: Sequence[pa.Table]) -> set[str]:
    """The most frequent tags. Their number is bounded, because each row may have its own tag."""
    import pyarrow.compute as pc

    counts: Counter[str] = Counter()
    for table in tables:
        for chunk in table["tags"].chunks:
            for count in pc.value_counts(chunk.keys).to_pylist():
                counts[count["values"]] += count["counts"]
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    return set(ranked[:_MOST_TAGS])


def _flat(table: pa.Table, shard: int, names: Sequence[str]) -> pa.Table:
    """The scores with the place of each row, and with its tags as columns. A row without a tag
    `language` uses its field `language`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tags = {name: pc.map_lookup(table["tags"], name, "first") for name in (*names, _LANGUAGE)}
    tags[_LANGUAGE] = pc.coalesce(tags[_LANGUAGE], table[_LANGUAGE])
    own = [name for name in table.column_names if name not in ("tags", _LANGUAGE)]
    return pa.table(
        {
            **{name: table[name] for name in own},
            "shard": np.full(len(table), shard),
            "position": np.arange(len(table)),
            **{f"tag:{name}": found.cast(pa.string()) for name, found in tags.items()},
        }
    )
