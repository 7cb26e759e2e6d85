"""Parts: Parquet files with the rows or scores of one shard. DuckDB and pandas can read them.

rows/dt=DATE/run=ID/shard-000.parquet                   the rows as staged
scores/dt=DATE/run=ID/metric=NAME/shard-000.parquet     one line per row, in the same order

Single records are read by position; only the row groups that contain them are read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.errors import StoreError
from ragmetrics.records import LogRow, Record, Score, Status, dump_json, question_key
from ragmetrics.storage.damage import note_damage
from ragmetrics.storage.files import Files, temporary_file
from ragmetrics.storage.retry import is_missing

log = logging.getLogger(__name__)
_GROUP = 1_000
_BATCH = 256
_TAIL = 64 << 10  # enough for most footers
# Arrow's Python code raises these for invalid names, times and types.
_INVALID = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError)
_TAGS = pa.map_(pa.string(), pa.string())

ROW_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("user_input", pa.string(), nullable=False),
        pa.field("retrieved_contexts", pa.list_(pa.string()), nullable=False),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("response", pa.string()),
        ("reference", pa.string()),
        ("reference_contexts", pa.list_(pa.string())),
        ("retrieved_context_ids", pa.list_(pa.string())),
        ("reference_context_ids", pa.list_(pa.string())),
        ("retrieved_context_scores", pa.list_(pa.float64())),
        ("index_build", pa.string()),
        ("language", pa.string()),
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("tags", _TAGS),
    ]
)
SCORE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("question", pa.string(), nullable=False),  # LogRow.question_key
        ("value", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        ("reason", pa.string()),
        ("details", pa.string()),  # JSON
        ("index_build", pa.string()),
        ("language", pa.string()),
        ("tags", _TAGS),
        ("votes", pa.list_(pa.float64())),  # values of a panel's judges, in the manifest's order
        ("failed", pa.list_(pa.string())),  # judges without a usable verdict
        ("spread", pa.float64()),
        ("cheap", pa.float64()),  # the cheap judge's value, on sampled nights
        ("probability", pa.float64()),  # of a judged row to be judged, with active sampling
        ("compared", pa.bool_()),  # false: judged, but in no comparison of nights
    ]
)

_ROW_FIELDS = tuple(field.name for field in fields(LogRow))
RowLocation: TypeAlias = tuple[int, int]
"""The shard of a row, and its position in the shard."""


class RunRef(Record):
    """A reference to one run of one night. Tasks pass it to each other."""

    date: date
    run: str
    shards: int

    def folder(self, kind: str) -> str:
        """The folder of one kind of the run's files, such as `rows/dt=2026-11-19/run=ab12`."""
        return f"{kind}/dt={self.date.isoformat()}/run={self.run}"

    def rows(self, shard: int) -> str:
        """The path of a shard's rows."""
        return f"{self.folder('rows')}/shard-{shard:03d}.parquet"

    def cheap(self, metric: str, shard: int) -> str:
        """The path of a shard's cheap scores by one metric, of active sampling."""
        return f"{self.folder('rows')}/cheap/metric={metric}/shard-{shard:03d}.parquet"

    def scores(self, metric: str, shard: int) -> str:
        """The path of a shard's scores by one metric."""
        return f"{self.folder('scores')}/metric={metric}/shard-{shard:03d}.parquet"


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its score by every metric of the run."""

    row: LogRow
    scores: Mapping[str, Score]


class PartWriter:
    """Writes one Parquet file in bounded memory; `finish` puts it into the store.

    Raises StoreError when the temporary file cannot be written.
    """

    def __init__(self, folder: Path, schema: pa.Schema, group_bytes: int = 1 << 20) -> None:
        with (
            temporary_file(),
            tempfile.NamedTemporaryFile(dir=folder, suffix=".parquet", delete=False) as file,
        ):
            self._path = Path(file.name)
        self._schema, self._group_bytes = schema, group_bytes
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[dict[str, Any]] = []
        self._bytes = 0
        self.rows = 0

    def add(self, record: dict[str, Any], size: int = 0) -> None:
        """Add one record of about `size` bytes."""
        self._waiting.append(record)
        self._bytes += size
        self.rows += 1
        if len(self._waiting) >= _GROUP or self._bytes >= self._group_bytes:
            self._flush()

    def add_table(self, table: pa.Table) -> None:
        """Add the records of a table with the schema's columns."""
        self._flush()
        self._write(table.replace_schema_metadata(None).cast(self._schema))
        self.rows += len(table)

    def finish(self, files: Files, path: str, notes: Mapping[str, Any] | None = None) -> str:
        """Write the whole file to the store. `notes` become its key-value metadata as JSON.

        Returns a digest of the file: equal records in equal order give equal files.
        """
        self._flush()
        metadata = {key: dump_json(value) for key, value in (notes or {}).items()}
        with temporary_file():
            writer = self._writer or pq.ParquetWriter(self._path, self._schema, compression="zstd")
            writer.add_key_value_metadata(metadata)
            writer.close()
            with self._path.open("rb") as made:
                digest = hashlib.file_digest(made, partial(hashlib.blake2b, digest_size=12))
        files.put(self._path, path)
        self._path.unlink()
        return digest.hexdigest()

    def _flush(self) -> None:
        if self._waiting:
            self._write(pa.Table.from_pylist(self._waiting, self._schema))
            self._waiting, self._bytes = [], 0

    def _write(self, table: pa.Table) -> None:
        with temporary_file():
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
            self._writer.write_table(table)


def row_record(row: LogRow) -> dict[str, Any]:
    """A row as a record of ROW_SCHEMA."""
    return {
        name: list(value.items()) if name == "tags" else value
        for name in _ROW_FIELDS
        if (value := getattr(row, name)) is not None
    }


def row_size(row: LogRow) -> int:
    """Estimated size of a row in bytes."""
    return 200 + row.size


def score_record(row: LogRow, score: Score) -> dict[str, Any]:
    """A score as a record of SCORE_SCHEMA."""
    return {
        "id": row.id,
        "question": row.question_key,
        "value": score.value,
        "status": score.status.value,
        "reason": score.reason or None,
        "details": dump_json(dict(score.details)) if score.details else None,
        "index_build": row.index_build,
        "language": row.language,
        "tags": list(row.tags.items()),
        "votes": score.votes,
        "failed": score.failed or None,
        "spread": score.spread,
        "cheap": score.cheap,
        "probability": score.probability,
        "compared": None if score.probability is None and score.compared else score.compared,
    }


def read_rows(files: Files, path: str) -> Iterator[LogRow]:
    """The rows of a part, in bounded memory."""
    for batch in read_row_batches(files, path):
        yield from batch


def question_keys(files: Files, path: str) -> set[str]:
    """The keys of all questions of a part."""
    with open_part(files, path) as part:
        return {
            question_key(question)
            for batch in part.iter_batches(columns=["user_input"], use_threads=False)
            for question in batch.column(0).to_pylist()
        }


def read_row_batches(files: Files, path: str) -> Generator[list[LogRow], None, None]:
    """The rows of a part in batches of some hundreds."""
    with open_part(files, path) as part:
        for batch in part.iter_batches(batch_size=_BATCH, use_threads=False):
            yield [row_of(record) for record in batch.to_pylist()]


def read_records(
    files: Files, path: str, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The records of a part, in bounded memory."""
    with open_part(files, path) as part:
        for batch in part.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False):
            yield from batch.to_pylist()


def read_columns(files: Files, path: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a whole part."""
    with open_part(files, path) as part:
        return part.read(list(columns), use_threads=False)


def read_notes(files: Files, path: str) -> dict[str, Any]:
    """The notes of a part. Only its footer is fetched."""
    with reading_part(files, path):
        metadata = pq.ParquetFile(_footer(files, path), pre_buffer=False).metadata.metadata or {}
        ours = (key for key in metadata if not key.startswith((b"ARROW:", b"pandas")))
        return {key.decode(): json.loads(metadata[key]) for key in ours}


def _footer(files: Files, path: str) -> pa.BufferReader:
    """The end of a part with its whole footer. The last eight bytes contain the footer's length."""
    size, needed = 0, _TAIL
    while size < needed:
        size = needed
        tail = files.tail(path, size)
        needed = int.from_bytes(tail[-8:-4], "little") + 8
    return pa.BufferReader(tail)


def is_whole(files: Files, path: str) -> bool:
    """True when a part exists and has its footer. A truncated or damaged part is made again."""
    return _can_be_read(lambda: read_notes(files, path))


def is_readable(files: Files, path: str) -> bool:
    """True when a part exists and can be read to its end; its footer may be whole without that."""

    def read() -> None:
        with open_part(files, path) as part:
            for number in range(part.num_row_groups):
                part.read_row_group(number, use_threads=False)

    return _can_be_read(read)


def _can_be_read(read: Callable[[], object]) -> bool:
    """Whether reading a part succeeds. Raises StoreError unless the part is damaged or missing."""
    try:
        read()
    except DamagedPart as error:
        log.warning("%s, so it is made again", error)
        return False
    except StoreError as error:
        if not is_missing(error):
            raise
        return False
    return True


def copy_part(files: Files, source: str, target: str, notes: Mapping[str, Any]) -> None:
    """Copy a part of scores with other notes. Raises DamagedPart when it cannot be read."""
    with workspace() as folder, open_part(files, source) as part:
        writer = PartWriter(folder, SCORE_SCHEMA)
        for number in range(part.num_row_groups):
            table = part.read_row_group(number, use_threads=False)
            for field in SCORE_SCHEMA:  # parts of older versions lack newer columns
                if field.name not in table.column_names:
                    table = table.append_column(field, pa.nulls(len(table), field.type))
            writer.add_table(table.select(SCORE_SCHEMA.names))
        writer.finish(files, target, notes)


class DamagedPart(StoreError):
    """A part is not valid Parquet, or is truncated."""


@contextmanager
def open_part(files: Files, path: str) -> Iterator[pq.ParquetFile]:
    """Open the current version of a part; another run may replace it meanwhile.

    Read it with `use_threads=False`: threads of Arrow that hold a file of Python may crash the
    process when it ends (https://github.com/apache/arrow/issues/50482). They are no faster here.
    `pre_buffer` would read in such threads too.
    """
    with files.open_as_is(path) as file, reading_part(files, path):
        yield pq.ParquetFile(file, pre_buffer=False)


@contextmanager
def reading_part(files: Files, path: str) -> Iterator[None]:
    """Turn errors of Arrow and Python about the content of a part into DamagedPart."""
    try:
        yield
    except (pa.ArrowException, OSError, *_INVALID) as error:
        if isinstance(error, OSError) and error.errno is not None:  # Arrow's errors have no errno
            raise
        reason = " ".join(str(error).split())
        note_damage(f"{files.uri(path)} is damaged")
        raise DamagedPart(f"{files.uri(path)} is damaged ({reason})") from error


def row_of(record: Mapping[str, Any]) -> LogRow:
    """The row of a record of ROW_SCHEMA, or of some of its columns."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    values["tags"] = dict(record.get("tags") or [])
    return LogRow(**values)


def score_of(record: Mapping[str, Any]) -> Score:
    """The score of a record of SCORE_SCHEMA."""
    details = json.loads(record["details"]) if record["details"] else {}
    return Score(
        record["value"],
        record["reason"] or "",
        details,
        Status(record["status"]),
        votes=tuple(votes) if (votes := record.get("votes")) is not None else None,
        failed=tuple(record.get("failed") or ()),
        spread=record.get("spread"),
        cheap=record.get("cheap"),
        probability=record.get("probability"),
        compared=record.get("compared") is not False,
    )


@contextmanager
def workspace() -> Iterator[Path]:
    """A temporary local folder for parts that are being written."""
    with temporary_file():
        made = tempfile.TemporaryDirectory(prefix="ragmetrics-")
    with made as folder:
        yield Path(folder)


def records_at(
    files: Files, path: str, positions: Collection[int], columns: Sequence[str] | None = None
) -> dict[int, dict[str, Any]]:
    """The records at some positions of a part, with all or some columns."""
    found: dict[int, dict[str, Any]] = {}
    wanted, start = sorted(positions), 0
    with open_part(files, path) as part:
        for number in range(part.num_row_groups):
            end = start + part.metadata.row_group(number).num_rows
            here = [position for position in wanted if start <= position < end]
            if here:
                group = part.read_row_group(number, columns=columns, use_threads=False)
                taken = group.take(pa.array([position - start for position in here]))
                found.update(zip(here, taken.to_pylist(), strict=True))
            start = end
    return found


def scores_at(
    files: Files,
    ref: RunRef,
    metrics: Sequence[str],
    shard: int,
    positions: Collection[int],
    columns: Sequence[str] | None = None,
) -> dict[str, dict[int, dict[str, Any]]]:
    """Scores at some positions of a shard, by metric. A metric without its part is left out."""
    found = {}
    for metric in metrics:
        try:
            found[metric] = records_at(files, ref.scores(metric, shard), positions, columns)
        except StoreError as error:
            if not is_missing(error):
                raise
    return found


def scored_rows(
    files: Files, ref: RunRef, metrics: Sequence[str], wanted: Mapping[int, Collection[int]]
) -> dict[RowLocation, ScoredRow]:
    """The rows at some locations, `{shard: positions}`, with their scores."""
    found: dict[RowLocation, ScoredRow] = {}
    for shard, positions in wanted.items():
        scores = scores_at(files, ref, metrics, shard, positions)
        rows = records_at(files, ref.rows(shard), positions)
        with reading_part(files, ref.rows(shard)):
            for position, record in rows.items():
                of_row = {name: score_of(of_metric[position]) for name, of_metric in scores.items()}
                found[shard, position] = ScoredRow(row_of(record), of_row)
    return found


def by_shard(places: Collection[RowLocation]) -> dict[int, set[int]]:
    """Group locations as `{shard: positions}`."""
    found: dict[int, set[int]] = {}
    for shard, position in places:
        found.setdefault(shard, set()).add(position)
    return found
