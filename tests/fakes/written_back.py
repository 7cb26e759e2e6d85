"""A published night whose rows have the ids of their spans, to write back; made without a judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import WriteBackReport
from ragmetrics.pipeline import Night
from ragmetrics.records import LogRow, Manifest, Score
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    PartWriter,
    RunRef,
    Runs,
    open_store,
    row_record,
    score_record,
    workspace,
)
from tests.fakes.nights import night, summary
from tests.fakes.tracing import LangfuseServer

BEGUN = datetime(2026, 11, 10, 8, tzinfo=UTC)
METRIC = "context_recall"
FAST = {"retry_delay_seconds": 0.001, "retry_seconds": 30}


def traced_row(number: int, **change: Any) -> LogRow:
    """A row with ids of OpenTelemetry."""
    fields: dict[str, Any] = {
        "trace_id": f"{number + 1:032x}",
        "span_id": f"{number + 1:016x}",
        "timestamp": BEGUN + timedelta(seconds=number),
    }
    return LogRow(f"row-{number}", f"Question {number}?", ("one", "two"), **{**fields, **change})


def settings_of(folder: Path, **targets: Any) -> Settings:
    """Settings with targets that are tried again at once."""
    write_back = {**FAST, **targets}
    return make_settings({"store": str(folder / "store"), "write_back": write_back})


def publish(
    settings: Settings,
    scores: dict[str, Callable[[int], Score | None]],
    rows: Sequence[LogRow],
    *,
    shards: int = 1,
    **change: Any,
) -> Manifest:
    """Write the parts and the manifest of a run; a metric without any score has no part."""
    means = [summary(name, 0.5) for name in scores]
    manifest = night(shards=shards, metrics=means, **change)
    files, ref = open_store(settings), RunRef.of(manifest)
    for shard in range(shards):
        own = list(enumerate(rows))[shard::shards]
        with workspace() as folder:
            writer = PartWriter(folder, ROW_SCHEMA)
            for _, row in own:
                writer.add(row_record(row))
            writer.finish(files, ref.rows(shard))
            for metric, score in scores.items():
                part = PartWriter(folder, SCORE_SCHEMA)
                for number, row in own:
                    if value := score(number):
                        part.add(score_record(row, value))
                if part.rows:
                    part.finish(files, ref.scores(metric, shard))
    Runs(files).save(manifest)
    return manifest


def to_langfuse(folder: Path, server: LangfuseServer, **more: Any) -> Settings:
    """Settings with a Langfuse as the only target."""
    target = {"base_url": server.url, **more.pop("langfuse", {})}
    return settings_of(folder, langfuse=target, **more)


def a_night(settings: Settings, rows: int = 10, **change: Any) -> Manifest:
    """A published night; the score of a row is its number over 100."""
    scores = {METRIC: lambda number: Score(number / 100)}
    return publish(settings, scores, [traced_row(number) for number in range(rows)], **change)


def send(settings: Settings, manifest: Manifest) -> WriteBackReport:
    """Write a night back to its only target."""
    [report] = Night(settings).write_back(manifest)
    return report
