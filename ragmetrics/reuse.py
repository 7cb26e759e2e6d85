"""Reuse: a run takes over what an earlier run of the same night has scored of the same rows.

rows/dt=DATE/run=ID/reuse.json    what the run's scores depend on, and which runs it may take from

A part is taken over where the rows of its shard are the same, byte by byte, and so is all else
that its metrics depend on: version, metric, and judge or embedder where they ask one. A judge that
weighs words by how common they are in the whole night gives other scores as soon as one row is
added: of its metrics nothing is taken over. Nor is a part with rows that got no verdict, which may
have better luck now, nor anything under a budget, which shares out what all rows may cost.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, ValidationError

from ragmetrics import __version__
from ragmetrics.judges.base import fingerprint
from ragmetrics.protocol import Status, dumps
from ragmetrics.records import Record
from ragmetrics.registry import Metric, chosen_metrics
from ragmetrics.rows import explain
from ragmetrics.settings import Settings
from ragmetrics.stage import Staged, find_staged
from ragmetrics.store.files import Files
from ragmetrics.store.parts import (
    SCORE_SCHEMA,
    RunRef,
    is_whole,
    read_columns,
    read_notes,
    workspace,
)
from ragmetrics.store.scratch import scratch

log = logging.getLogger(__name__)

_MOST_RUNS = 5
_SETTLED = {Status.SCORED.value, Status.NOT_APPLICABLE.value}


class Earlier(Record):
    """A run of the same night, and what of it this one may take over."""

    ref: RunRef
    shards: tuple[int, ...]
    """Those with the same rows."""
    metrics: tuple[str, ...]
    """Those whose scores depend on nothing that changed."""


class Reuse(Record):
    """What a run's scores depend on beside its rows, and the earlier runs, newest first."""

    bases: dict[str, str] = Field(default_factory=dict)
    """By metric: a digest of all that its scores depend on, but the rows."""
    earlier: tuple[Earlier, ...] = ()


def staged_runs(files: Files, day: date) -> list[Staged]:
    """The runs of a night that were staged, the newest first."""
    folder = f"rows/dt={day.isoformat()}"
    folders = (info.path.removesuffix("/staged.json") for info in files.below(folder)
               if info.path.endswith("/staged.json"))  # fmt: skip
    found = (staged for one in folders if (staged := find_staged(files, one)))
    return sorted(found, key=lambda one: (one.started_at, one.ref.run), reverse=True)


def look_back(settings: Settings, files: Files, staged: Staged, prints: Mapping[str, str]) -> Reuse:
    """Find what may be taken over from earlier runs of the night, and keep it beside the rows.

    `prints` are the fingerprints of the metrics. To be called before the run is scored.
    """
    bases = {
        metric.name: fingerprint(
            __version__, prints[metric.name], staged.corpus if _weighs(settings, metric) else ""
        )
        for metric in chosen_metrics(settings)
    }
    others = (one for one in staged_runs(files, staged.ref.date) if one.ref.run != staged.ref.run)
    offers = [] if settings.budget.binds else [_offer(files, staged, bases, one) for one in others]
    reuse = Reuse(bases=bases, earlier=tuple(one for one in offers if one)[:_MOST_RUNS])
    files.write(_path(staged.ref), reuse.model_dump_json(indent=1).encode())
    return reuse


def _weighs(settings: Settings, metric: Metric) -> bool:
    """Whether somebody who counts the night's words has a part in the metric."""
    judged = bool(metric.prompts) and not all(one.remote for one in settings.panel)
    return judged or (metric.embeds and settings.embeddings.name == "hashed")


def _offer(files: Files, staged: Staged, bases: Mapping[str, str], other: Staged) -> Earlier | None:
    """What another run has that can be taken over; None where that is nothing."""
    if len(other.digests) != len(staged.digests):
        return None
    same = zip(staged.digests, other.digests, strict=True)
    shards = tuple(shard for shard, (mine, its) in enumerate(same) if mine == its)
    theirs = _load(files, other.ref).bases if shards else {}
    metrics = tuple(name for name, base in bases.items() if theirs.get(name) == base)
    return Earlier(ref=other.ref, shards=shards, metrics=metrics) if metrics else None


def _path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/reuse.json"


def _load(files: Files, ref: RunRef) -> Reuse:
    data = files.find(_path(ref))
    try:
        return Reuse() if data is None else Reuse.model_validate_json(data)
    except ValidationError as error:
        uri = files.uri(_path(ref))
        log.error("%s cannot be read, nothing is taken over by it: %s", uri, explain(error))
        return Reuse()


def take_over(files: Files, ref: RunRef, names: Sequence[str], shard: int) -> bool:
    """Bring a part, a family of metrics over a shard, from an earlier run; whether there was one.

    Its notes say from which, and that nothing was asked for it.
    """
    for one in _load(files, ref).earlier:
        if shard in one.shards and set(names) <= set(one.metrics):
            sources = [one.ref.scores(name, shard) for name in names]
            if all(_is_settled(files, source) for source in sources):
                _bring(files, one.ref, ref, names, shard)
                return True
    return False


def _is_settled(files: Files, path: str) -> bool:
    """Whether a part is there, and every judge had a verdict on every row that it was asked of."""
    if not is_whole(files, path):
        return False
    table = read_columns(files, path, ["status", "failed"])
    every_vote = table["failed"].null_count == len(table)
    return every_vote and set(table["status"].unique().to_pylist()) <= _SETTLED


def _bring(files: Files, source: RunRef, ref: RunRef, names: Sequence[str], shard: int) -> None:
    splits: dict[str, int] = {}
    for name in names:
        splits |= read_notes(files, source.scores(name, shard)).get("splits", {})
    notes = {"usage": {}, "paid": [], "refused": {}, "splits": splits, "taken_over": source.run}
    for number, name in enumerate(names):
        # As with scored parts, the family's notes stand once, with its first metric.
        _copy(files, source.scores(name, shard), ref.scores(name, shard), {} if number else notes)
    log.info("%s, shard %d: taken over from run %s", ", ".join(names), shard + 1, source.run)


def _copy(files: Files, source: str, target: str, notes: Mapping[str, object]) -> None:
    """Copy a part, with other notes."""
    with ExitStack() as stack:
        folder = stack.enter_context(workspace())
        part = pq.ParquetFile(stack.enter_context(files.open_as_is(source)))
        made = folder / "part.parquet"
        with scratch(), pq.ParquetWriter(made, SCORE_SCHEMA, compression="zstd") as writer:
            for number in range(part.num_row_groups):
                table: pa.Table = part.read_row_group(number)
                writer.write_table(table.replace_schema_metadata(None).cast(SCORE_SCHEMA))
            writer.add_key_value_metadata({key: dumps(value) for key, value in notes.items()})
        files.put(made, target)


__all__ = ["Earlier", "Reuse", "look_back", "staged_runs", "take_over"]
