"""A store of many nights, made in seconds: one night of the demo, scored once, and its copies."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ragmetrics.config import Settings, load_settings
from ragmetrics.pipeline import NIGHTS, Night, unpack_demo
from ragmetrics.records import Finding, Manifest, Summary
from ragmetrics.scoring import Staged, list_parts, score_parts
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunIndex,
    RunRef,
    Runs,
    StoredPart,
    open_store,
    workspace,
)

TONIGHT = NIGHTS[-1]
_WITH_ROWS = 8
"""Nights before tonight whose rows are there: rules read no older ones."""
_FIRING_EVERY = 45
_GROUP = 1_000


@dataclass(frozen=True)
class PublishedNight:
    """A night of the demo that was staged, scored and published, and the store it is in."""

    settings: Settings
    staged: Staged
    manifest: Manifest

    @property
    def files(self) -> Files:
        """The store."""
        return open_store(self.settings)


def make_night(folder: Path, rows: int = 0) -> PublishedNight:
    """Score a night of the demo; its rows are repeated until they are so many."""
    settings = load_settings(unpack_demo(folder))
    staged = Night(settings).stage(TONIGHT)
    if problems := score_parts(settings, staged, list_parts(settings, staged)):
        raise problems[0]
    times = -(-rows // staged.source.rows)
    if times > 1:
        _repeat(open_store(settings), staged.ref, times)
        source = staged.source.model_copy(update={"rows": staged.source.rows * times})
        staged = staged.model_copy(update={"source": source})
    manifest = Night(settings).publish(staged)
    Night(settings).show(manifest)
    return PublishedNight(settings, staged, manifest)


def fill(night: PublishedNight, files: Files, nights: int) -> None:
    """Make a store in which so many nights, tonight among them, are scored, and all but tonight
    are published.
    """
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: _copy(night, files, *one), enumerate(_before(night, nights))))
    for info in [*night.files.below("rows"), *night.files.below("scores")]:
        files.write(info.path, night.files.read(info.path))
    unpublish(night, files)


def unpublish(night: PublishedNight, files: Files) -> None:
    """Put a store back to before tonight was published."""
    for folder in (f"runs/dt={TONIGHT}", f"dashboard/{TONIGHT}"):
        for info in files.below(folder):
            files.remove(info.path)
    RunIndex(files).keep(files.below("runs"))


def _copy(night: PublishedNight, files: Files, ago: int, manifest: Manifest) -> None:
    Runs(files).save(manifest)
    if ago < _WITH_ROWS:
        for kind in ("rows", "scores"):
            source, target = (one.folder(kind) for one in (night.staged.ref, RunRef.of(manifest)))
            for info in night.files.below(source):
                data = night.files.read(info.path)
                files.write(f"{target}{info.path.removeprefix(source)}", data)


def _before(night: PublishedNight, nights: int) -> Iterator[Manifest]:
    """The nights before tonight, newest first: means that wander a little, some alerts."""
    draw = random.Random(1)
    for ago in range(1, nights):
        day = timedelta(days=ago)
        firing = ago % _FIRING_EVERY == 0
        yield night.manifest.model_copy(
            update={
                "date": TONIGHT - day,
                "run": f"{draw.getrandbits(40):010x}",
                "started_at": night.manifest.started_at - day,
                "finished_at": night.manifest.finished_at - day,
                "seen_at": None,
                "metrics": [_moved(one, draw.gauss(0, 0.005)) for one in night.manifest.metrics],
                "findings": [_told(one, firing) for one in night.manifest.findings],
            }
        )


def _moved(summary: Summary, by: float) -> Summary:
    told: Mapping[str, float | None] = {
        "mean": summary.mean,
        "low": summary.low,
        "high": summary.high,
    }
    moved = {name: value + by for name, value in told.items() if value is not None}
    return summary.model_copy(update=moved)


def _told(finding: Finding, firing: bool) -> Finding:
    if not firing or finding.metric is None:
        return finding
    fired = {"level": "breach", "state": "firing", "transition": "fired"}
    return finding.model_copy(update=fired)


def _repeat(files: Files, ref: RunRef, times: int) -> None:
    """Repeat the rows of a run with their scores, each time as other questions."""
    folder = ref.folder("scores")
    metrics = sorted({info.path.split("/")[3].partition("=")[2] for info in files.below(folder)})
    for shard in range(ref.shards):
        _lengthen(files, ref.rows(shard), ROW_SCHEMA, ("id", "user_input"), times)
        for metric in metrics:
            _lengthen(files, ref.scores(metric, shard), SCORE_SCHEMA, ("id", "question"), times)


def _lengthen(
    files: Files, path: str, schema: pa.Schema, named: tuple[str, str], times: int
) -> None:
    table = StoredPart(files, path).columns(schema.names)
    whole = pa.concat_tables([_named(table, named, number) for number in range(times)])
    with workspace() as folder:
        writer = PartWriter(folder, schema)
        for start in range(0, len(whole), _GROUP):  # as scoring writes them
            writer.add_table(whole.slice(start, _GROUP).combine_chunks())
        writer.finish(files, path, StoredPart(files, path).notes())


def _named(table: pa.Table, named: tuple[str, str], number: int) -> pa.Table:
    for name in named:
        place = table.schema.get_field_index(name)
        longer = pc.binary_join_element_wise(table[name], str(number), " ")
        table = table.set_column(place, table.schema.field(name), longer)
    return table


__all__ = ["TONIGHT", "PublishedNight", "fill", "make_night", "unpublish"]
