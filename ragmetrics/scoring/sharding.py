"""Sharding: the number of shards of a night, and the shard of each row.

The time of a part is estimated before staging, from the sizes of the files and the first rows of a
few of them. The same files give the same number of shards on every machine.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from math import ceil
from typing import Any, BinaryIO, cast

import pyarrow as pa

from ragmetrics.config import SampleSettings, Settings
from ragmetrics.errors import StoreError
from ragmetrics.logs import FileTooLarge, LogSet, NightInputs, parquet_extent
from ragmetrics.metrics import metric_families
from ragmetrics.records import LogRow, TopicModel, dump_json
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.topic_assignment import model_digest
from ragmetrics.storage import FileInfo, Files, RunRef
from ragmetrics.version import __version__

MOST_TASKS = 400
"""Largest number of tasks of a night: metric families times shards. A task costs the Prefect
server some 30 ms."""

_SHORTEST, _LONGEST = 32.0, 96.0
"""Bounds of the seconds per shard for the slowest metric family. Short shards keep all workers busy
to the end of a small night. A large night has enough shards anyway."""

_PARTS = 16
"""Number of shards that is aimed at between these bounds."""

# Times of the slowest family on one core of 2024. Splitting text into sentences costs most.
_ROW_SECONDS = 0.0005

_KB_SECONDS = 0.0005
"""Reading and writing. Metrics that compare ids cost no more than this."""

# A judge at an endpoint, which answers all parts concurrently.
_LATENCY = 1.0

_CALLS = 3.0
"""Requests per row of the slowest family."""

_CONCURRENT_PARTS = 4
"""Parts that share an endpoint."""

_HEAD = 256 << 10

_HEADS = 4

_MOST_ROWS = 50_000

_FOOTERS = 16

_TEXT_OF_A_BYTE = {".gz": 5.0, ".zst": 5.0, ".parquet": 4.0}
"""Unpacked characters per byte of a file, for files whose rows could not be read."""

_TEXT_OF_A_ROW = 4_000


@dataclass(frozen=True)
class Extent:
    """Estimated size of a night."""

    rows: float = 0.0
    text: float = 0.0
    """Characters of questions, contexts, responses and references."""

    def __add__(self, other: Extent) -> Extent:
        """The sum of both."""
        return Extent(self.rows + other.rows, self.text + other.text)

    def times(self, factor: float) -> Extent:
        """The size multiplied by a factor."""
        return Extent(self.rows * factor, self.text * factor)


def shards_for(
    settings: Settings, logs: Sequence[LogSet], limit: int | None = None, before: int | None = None
) -> int:
    """The number of shards of a night. A part should take half a minute to two minutes.

    `settings.shards` overrides the estimate. `limit` is the number of rows after which reading
    ends. `before` is the number of shards of an earlier run of the night. It is used again while it
    is within a factor of two of the best number, so that a late file does not move all other rows.
    """
    if settings.shards:
        return settings.shards
    size = sum((extent(log) for log in logs), Extent())
    if limit is not None and limit < size.rows:
        size = size.times(limit / size.rows)
    best = best_number(settings, size)
    if before and before <= _most(settings) and best <= 2 * before and before <= 2 * best:
        return before
    return best


def best_number(settings: Settings, size: Extent) -> int:
    """The best number of shards for a size; families times shards are at most MOST_TASKS."""
    compute, endpoint = compute_seconds(settings, size), endpoint_seconds(settings, size)
    part = min(max(compute / _PARTS, _SHORTEST), _LONGEST)
    return min(_most(settings), max(1, ceil(compute / part), ceil(endpoint / _LONGEST)))


def compute_seconds(settings: Settings, size: Extent) -> float:
    """Estimated compute time of the slowest family on one core."""
    a_row, a_kb = _ROW_SECONDS, _KB_SECONDS
    if any(metric.prompts for metric in chosen_metrics(settings)):
        # A batch gets as many shards as a local judge.
        kinds = [one.kind for one in settings.panel if not one.live]
        if settings.sample and settings.samples:
            kinds.append(settings.sample.cheap_kind)
        a_kb += sum(kind.seconds_per_kb for kind in kinds)
    return size.rows * a_row + size.text / 1_000 * a_kb


def endpoint_seconds(settings: Settings, size: Extent) -> float:
    """Estimated time that the slowest family waits for endpoints."""
    if not any(metric.prompts for metric in chosen_metrics(settings)):
        return 0.0
    return max(
        (
            size.rows * _CALLS * judge.repeats * _LATENCY * _CONCURRENT_PARTS / judge.concurrency
            for judge in settings.panel
            if judge.live
        ),
        default=0.0,
    )


def _most(settings: Settings) -> int:
    tasks = len(metric_families(chosen_metrics(settings), together=settings.asks_by_row))
    return max(1, MOST_TASKS // max(1, tasks))


def extent(logs: LogSet) -> Extent:
    """Estimate the rows and the text of log files from a few of them."""
    opened = [info for info in logs.infos if not info.refused]
    parquet = [info for info in opened if info.path.lower().endswith(".parquet")]
    others = [info for info in opened if not info.path.lower().endswith(".parquet")]
    total = Extent()
    for infos, most, look in ((parquet, _FOOTERS, _footer), (others, _HEADS, _head)):
        looked = [
            (info.size, size)
            for info in _spread(infos, most)
            if (size := look(logs, info)) is not None
        ]
        known = sum(size for size, _ in looked)
        if known:
            share = sum(info.size for info in infos) / known
            total += sum((size for _, size in looked), Extent()).times(share)
        else:
            total += sum(map(_guess, infos), Extent())
    return total


def _spread(infos: Sequence[FileInfo], most: int) -> list[FileInfo]:
    """At most `most` of the files, evenly spaced."""
    some = [info for info in infos if info.size]
    return (
        [some[number * len(some) // most] for number in range(most)] if most < len(some) else some
    )


def _guess(info: FileInfo) -> Extent:
    factor = next((n for end, n in _TEXT_OF_A_BYTE.items() if info.path.lower().endswith(end)), 1.0)
    return Extent(info.size * factor / _TEXT_OF_A_ROW, info.size * factor)


def _footer(logs: LogSet, info: FileInfo) -> Extent | None:
    """The size that the footer of a Parquet file states; None for a broken file, which staging
    reports.
    """
    try:
        with logs.files.open(info.path) as file:
            return Extent(*parquet_extent(file))
    except (pa.ArrowException, FileTooLarge):
        return None
    except (StoreError, OSError) as error:
        _raise_if_it_may_pass(error, logs.files.uri(info.path))
        return None


def _head(logs: LogSet, info: FileInfo) -> Extent | None:
    """The size of a file, estimated from its first rows; None when no row can be read."""
    try:
        with logs.files.open(info.path) as file:
            head = _Head(logs.files.root, content=file.read(_HEAD))
    except (StoreError, OSError) as error:
        _raise_if_it_may_pass(error, logs.files.uri(info.path))
        return None
    read = replace(logs, files=head, infos=(info,), between=None).read()
    rows = [row for row in islice(read, _MOST_ROWS) if isinstance(row, LogRow)]
    if not rows:
        return None
    return Extent(len(rows), sum(row.size for row in rows)).times(max(1.0, info.size / _HEAD))


def _raise_if_it_may_pass(error: StoreError | OSError, uri: str) -> None:
    """Raise StoreError for a transient error: the number of shards is part of the run's name, so it
    must not depend on chance. A broken file is ignored.
    """
    if isinstance(error, StoreError):
        if error.transient:
            raise error
    elif error.errno is not None or type(error) is not OSError:  # pyarrow's errors have no errno
        raise StoreError(f"reading {uri}: {error}", transient=True) from error


@dataclass(frozen=True)
class _Head(Files):
    """The beginning of one file, as if the file ended there."""

    content: bytes = b""

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        yield cast("BinaryIO", io.BufferedReader(io.BytesIO(self.content)))


def shard_of(row: LogRow, shards: int) -> int:
    """The shard of a row: shards are equal ranges of the question hash."""
    return int(row.question_key, 16) * shards >> 32


def plan_run(
    settings: Settings,
    day: date,
    inputs: NightInputs,
    judged_by: str,
    before: int | None = None,
    topics: TopicModel | None = None,
) -> RunRef:
    """Name the run by a digest of everything that its scores depend on. A repetition then finds
    the finished parts.

    `before` is the number of shards of an earlier run of the night, `topics` those of its rows.
    """
    golden = inputs.golden.infos if inputs.golden else ()
    shards = shards_for(settings, inputs.logs, inputs.limit, before)
    parts = [
        __version__,
        settings.dataset,
        day.isoformat(),
        judged_by,
        shards,
        inputs.limit,
        inputs.golden_first,
        settings.language,
        settings.preset,
        sorted(settings.columns.items()),
        settings.limits.row_bytes,
        *_changed_limits(settings),
        *([settings.context_separator] if settings.context_separator else []),
        *([{"time_zone": settings.time_zone}] if settings.time_zone else []),
        *([{"split_nights": True}] if settings.split_nights else []),
        [metric.digest for metric in chosen_metrics(settings)],
        settings.budget.model_dump(exclude_none=True),
        *([_sample_parts(settings.sample)] if settings.sample and settings.samples else []),
        *([model_digest(topics), settings.redacts_messages] if topics else []),
        [[info.path, info.size, info.version] for info in (*inputs.log_files(), *golden)],
    ]
    digest = hashlib.blake2b(dump_json(parts).encode("utf-8", "surrogatepass"), digest_size=5)
    return RunRef(date=day, run=digest.hexdigest(), shards=shards)


def _sample_parts(sample: SampleSettings) -> dict[str, Any]:
    """The settings of the sample. Defaults that are younger than the others are left out, so that
    run names do not change."""
    younger = {"cheap": "lexical", "draw": "uniform"}
    return sample.model_dump(
        exclude={name for name, default in younger.items() if getattr(sample, name) == default}
    )


def _changed_limits(settings: Settings) -> list[int]:
    """Limits that later versions added. With the defaults the run names do not change."""
    limit = settings.limits.unpacked_bytes
    return [limit] if limit != type(settings.limits)().unpacked_bytes else []
