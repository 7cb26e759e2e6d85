"""The scores of a run, metric by metric, as tables for means and comparisons; their segments."""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.records import TOPIC, Manifest, Segment, Status, Summary, question_key
from ragmetrics.scoring.sampling.estimate import PROBABILITY, STRATUM, strata_of
from ragmetrics.scoring.sampling.plan import Group, RowIds, SamplePlan
from ragmetrics.stats import ALPHA, CONFIDENCE, adjust_p_values
from ragmetrics.storage import ROW_SCHEMA, Files, RunRef, StoredPart, note_damage

if TYPE_CHECKING:  # these imports are slow: only code that reads scores needs them
    import pandas as pd
    import pyarrow as pa

log = logging.getLogger(__name__)

_MOST_TAGS = 50

_LANGUAGE = "language"
_MOST_VALUES = 20
_MOST_LANGUAGES = 100

_COLUMNS = ["question", "value", "status", "votes", "failed", "spread", "cheap"]

_DRAWN = [PROBABILITY, "compared"]
"""Columns of rows that were drawn with unequal chances."""

_REASON = "reason"

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
    higher_is_better: bool | None = True

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

    def moved(self, night: Manifest) -> MetricScores:
        """The scores of a night by an old judge, moved as its summary is (see `across_change`)."""
        summary = night.summary(self.metric)
        if summary is None or summary.moved_by is None:
            return self
        table = self.table.assign(value=self.table["value"] + summary.moved_by.offset)
        return replace(self, table=table)

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
        the others may always have been bad. None where neither direction is better.
        """
        if self.higher_is_better is None:
            return []
        sign = 1 if self.higher_is_better else -1
        select = self.scored.nsmallest if self.higher_is_better else self.scored.nlargest
        rows = select(count, "value", keep="all")
        columns = (rows[name] for name in ("value", "question", "shard", "position"))
        ranked = (
            (sign * value, -sign * fmean(before.get(question, [value])), int(shard), int(position))
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
    higher_is_better: bool | None = True,
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


def watched_tags(settings: Settings) -> set[str]:
    """The tags that the settings name. They are loaded even when few rows have them."""
    ruled = {rule.by for rule in settings.alerts.rules or () if rule.by}
    sampled = settings.sample.strata if settings.sample else ()
    named = {*(settings.segments or ()), *sampled, *(settings.alerts.mix_tags or ())}
    return ruled | named | ({TOPIC} if settings.topics else set())


def earlier_scores(settings: Settings, files: Files, ref: RunRef, metric: str) -> MetricScores:
    """The scores of an earlier night; none where its files are damaged or gone, which is noted: the
    night is then compared with others.
    """
    tags = watched_tags(settings)
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


def _missing(rows: pa.Table, sample: Group | None) -> pa.Table:
    """The rows of a missing part. The judge failed on all rows that it should have judged."""
    import pyarrow as pa

    keys = [question_key(text) for text in rows["user_input"].to_pylist()]
    marks = RowIds()
    statuses = [
        Status.JUDGE_FAILED
        if sample is None or sample.judges(marks.of(*row_key))
        else Status.NOT_SAMPLED
        for row_key in zip(keys, rows["id"].to_pylist(), strict=True)
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
    columns = [name for name in table.column_names if name not in ("tags", _LANGUAGE)]
    return pa.table(
        {
            **{name: table[name] for name in columns},
            "shard": np.full(len(table), shard),
            "position": np.arange(len(table)),
            **{f"tag:{name}": found.cast(pa.string()) for name, found in tags.items()},
        }
    )


def find_segments(scores: MetricScores, tags: Sequence[str] | None) -> list[Segment]:
    """The segments to show: every value of the given tags, or of all tags with few values. A blank
    value is none.
    """
    segments = []
    for column in scores.table.columns:
        if not column.startswith("tag:"):
            continue
        tag = column.removeprefix("tag:")
        found_values = sorted(scores.table[column].dropna().unique())
        values = [value for value in found_values if not Segment(tag=tag, value=value).is_blank]
        most = _MOST_LANGUAGES if tag == _LANGUAGE else _MOST_VALUES
        wanted = tag in tags if tags is not None else 1 < len(values) <= most
        if wanted:
            segments += [Segment(tag=tag, value=value) for value in values]
    return segments


def worse_segments(manifest: Manifest) -> list[Summary]:
    """The segments of a night that are significantly worse, in the order of the manifest."""
    worse: set[int] = set()
    for whole in manifest.metrics:
        tested = [
            (segment, p)
            for segment in manifest.segments
            if segment.metric == whole.metric and (p := _p_value(segment, whole.mean)) is not None
        ]
        adjusted = adjust_p_values([p for _, p in tested]) if tested else []
        worse |= {id(one) for (one, _), q in zip(tested, adjusted, strict=True) if q < ALPHA}
    return [segment for segment in manifest.segments if id(segment) in worse]


def _p_value(segment: Summary, whole: float | None) -> float | None:
    """The p-value of a segment that is worse than all rows; 1 for any other segment. None: the
    segment has no interval.
    """
    if segment.mean is None or segment.low is None or segment.high is None or whole is None:
        return None
    loss = segment.loss(whole)
    if loss <= 0:
        return 1.0
    from scipy import special  # the import takes a tenth of a second: only segments need it

    end = segment.high - segment.mean if segment.higher_is_better else segment.mean - segment.low
    freedom = max(1, segment.questions - 1)
    quantile = float(special.stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    return 2 * float(special.stdtr(freedom, -loss * quantile / end)) if end > 0 else 0.0
