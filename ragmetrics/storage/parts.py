"""Parts: Parquet files with the rows or scores of one shard. DuckDB and pandas can read them.

rows/dt=DATE/run=ID/shard-000.parquet                   the rows as staged
scores/dt=DATE/run=ID/metric=NAME/shard-000.parquet     one line per row, in the same order
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.errors import StoreError
from ragmetrics.records import LogRow, Score, Status, dump_json, question_key
from ragmetrics.storage.file_systems import temporary_file
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import note_damage
from ragmetrics.storage.retry import is_missing

log = logging.getLogger(__name__)
_GROUP, _BATCH = 1_000, 256
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
        ("feedback", pa.string()),
        *((name, pa.list_(pa.string())) for name in ("clicked_context_ids", "last_contexts")),
        ("context_propensities", pa.list_(pa.float64())),
        ("hop", pa.int64()),
        ("hop_queries", pa.list_(pa.string())),
        ("hop_sizes", pa.list_(pa.int64())),
        ("session_id", pa.string()),
        ("turn", pa.int64()),
        ("nuggets", pa.list_(pa.struct([("text", pa.string()), ("importance", pa.string())]))),
        *((name, pa.float64()) for name in ("retrieval_ms", "score_place", "new_words")),
        ("retrieval_error", pa.string()),
        ("retrieved_context_dates", pa.list_(pa.timestamp("us", tz="UTC"))),
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
            with self._path.open("rb") as file:
                digest = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=12))
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


@dataclass(frozen=True)
class StoredPart:
    """A part for reading. Single records are read by position; only the row groups that contain
    them are read.
    """

    files: Files
    path: str

    def row_batches(self) -> Generator[list[LogRow], None, None]:
        """The rows of a part in batches of some hundreds."""
        with self.open() as part:
            for batch in part.iter_batches(batch_size=_BATCH, use_threads=False):
                yield [row_of(record) for record in batch.to_pylist()]

    def question_keys(self) -> set[str]:
        """The keys of all questions of a part of rows."""
        return {question_key(record["user_input"]) for record in self.records(["user_input"])}

    def records(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The records, in bounded memory."""
        with self.open() as part:
            for batch in part.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False):
                yield from batch.to_pylist()

    def columns(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of the whole part."""
        with self.open() as part:
            return part.read(list(columns), use_threads=False)

    def at(
        self, positions: Collection[int], columns: Sequence[str] | None = None
    ) -> dict[int, dict[str, Any]]:
        """The records at some positions, with all or some columns."""
        records: dict[int, dict[str, Any]] = {}
        wanted, start = sorted(positions), 0
        with self.open() as part:
            for number in range(part.num_row_groups):
                end = start + part.metadata.row_group(number).num_rows
                here = [position for position in wanted if start <= position < end]
                if here:
                    group = part.read_row_group(number, columns=columns, use_threads=False)
                    taken = group.take(pa.array([position - start for position in here]))
                    records.update(zip(here, taken.to_pylist(), strict=True))
                start = end
        return records

    def notes(self) -> dict[str, Any]:
        """The notes of a part. Only its footer is fetched."""
        with self.reading():
            metadata = pq.ParquetFile(self._footer(), pre_buffer=False).metadata.metadata or {}
            ours = (key for key in metadata if not key.startswith((b"ARROW:", b"pandas")))
            return {key.decode(): json.loads(metadata[key]) for key in ours}

    def _footer(self) -> pa.BufferReader:
        """The end with the whole footer. The last eight bytes contain the footer's length."""
        size, needed = 0, _TAIL
        while size < needed:
            size = needed
            tail = self.files.tail(self.path, size)
            needed = int.from_bytes(tail[-8:-4], "little") + 8
        return pa.BufferReader(tail)

    def is_whole(self) -> bool:
        """True when a part exists and has its footer. A truncated or damaged part is made again."""
        return _can_be_read(self.notes)

    def is_readable(self) -> bool:
        """True when a part exists and can be read to its end, not only its footer."""

        def read() -> None:
            with self.open() as part:
                for number in range(part.num_row_groups):
                    part.read_row_group(number, use_threads=False)

        return _can_be_read(read)

    def copy(self, target: str, notes: Mapping[str, Any]) -> None:
        """Copy a part of scores with other notes. Raises DamagedPart when it cannot be read."""
        with workspace() as folder, self.open() as part:
            writer = PartWriter(folder, SCORE_SCHEMA)
            for number in range(part.num_row_groups):
                table = part.read_row_group(number, use_threads=False)
                for field in SCORE_SCHEMA:  # parts of older versions lack newer columns
                    if field.name not in table.column_names:
                        table = table.append_column(field, pa.nulls(len(table), field.type))
                writer.add_table(table.select(SCORE_SCHEMA.names))
            writer.finish(self.files, target, notes)

    @contextmanager
    def open(self) -> Iterator[pq.ParquetFile]:
        """Open the current version; another run may replace it meanwhile.

        Read it with `use_threads=False`: threads of Arrow that hold a file of Python may crash the
        process when it ends (https://github.com/apache/arrow/issues/50482). They are no faster
        here. `pre_buffer` would read in such threads too.
        """
        with self.files.open_as_is(self.path) as file, self.reading():
            yield pq.ParquetFile(file, pre_buffer=False)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of Arrow and Python about the content of the part into DamagedPart."""
        try:
            yield
        except (pa.ArrowException, OSError, *_INVALID) as error:
            if isinstance(error, OSError) and error.errno is not None:  # Arrow's have no errno
                raise
            reason = " ".join(str(error).split())
            note_damage(f"{self.files.uri(self.path)} is damaged")
            raise DamagedPart(f"{self.files.uri(self.path)} is damaged ({reason})") from error


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


class DamagedPart(StoreError):
    """A part is not valid Parquet, or is truncated."""


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
        temporary = tempfile.TemporaryDirectory(prefix="ragmetrics-")
    with temporary as folder:
        yield Path(folder)
