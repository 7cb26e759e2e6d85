"""Reads the records of a Parquet file. The memory is bounded before anything is unpacked.

Texts stay in their dictionaries, so that a long text that many rows share is in memory once. The
size of a row is checked before its texts are created.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragmetrics.records import BadRow, bad_row

_BATCH = 256
_BUFFER = 1 << 20
_ROWS_HELD = 64
"""Limit of a row group in memory, as a multiple of `limits: row_bytes`."""
_RATIO = 100
"""Alternative limit, as a multiple of the compressed size. Text is compressed to a tenth."""
_A_VALUE = 12
"""Bytes per value of a list for its position."""
_FEW_ROWS = 1_000_000
_LONGEST_FIXED = 64
_SMALL = 1 << 20
"""Unpacked bytes of a column in a row group up to which its dictionary is small."""
_UNEVEN = 4
"""How many times as large as the mean the rows of a batch may be."""
_TAIL = 8
"""Bytes after the footer: its length, and the letters of the format."""
_MOST_COLUMNS = 10_000
"""A log has some dozen columns; each takes 2 kB while a file is open."""
_LONGEST_FOOTER = 16 << 20
"""Bytes of a footer, which takes some sixteen times as much memory."""
_UNREADABLE = (
    ValueError,  # also Arrow's errors; invalid UTF-8; a year after 9999
    ArithmeticError,
    LookupError,  # an unknown time zone
    TypeError,
    NotImplementedError,
    RecursionError,
)


class FileTooLarge(Exception):
    """A file exceeds the limit when it is unpacked. The content before the limit was read."""


def parquet_records(
    file: BinaryIO, row_bytes: int, unpacked_bytes: int, wanted: Collection[str]
) -> Iterator[tuple[int, Any]]:
    """The records of a file by number, with the `wanted` columns. An unreadable cell affects only
    its own record.

    Raises FileTooLarge for a file that would not fit into memory, and ArrowException for a damaged
    file.
    """
    with _as_arrow_errors():
        table = _open(file)
        table.check(wanted)
    number, left = 0, unpacked_bytes
    for group in range(table.metadata.num_row_groups):
        for batch in _batches(file, table, group, row_bytes, wanted):
            for size, record in _decoded(batch, row_bytes):
                number, left = number + 1, left - size
                if left < 0:
                    raise FileTooLarge(
                        f"it unpacks to more than {unpacked_bytes:,} bytes (limits: unpacked_bytes)"
                    )
                yield number, record


def parquet_extent(file: BinaryIO) -> tuple[int, int]:
    """Number of rows and their bytes according to the footer. Raises ArrowException,
    or FileTooLarge for too many columns.
    """
    with _as_arrow_errors():
        footer = _open(file).metadata
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        return max(0, footer.num_rows), max(0, sum(group.total_byte_size for group in groups))


def _open(file: BinaryIO) -> _Columns:
    """The columns of a file. Raises FileTooLarge for too many, and before a long footer is read."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - _TAIL))
    size = int.from_bytes(file.read(4), "little")
    if _LONGEST_FOOTER < size < end:
        raise FileTooLarge(f"its footer has {size:,} bytes, {_LONGEST_FOOTER:,} allowed")
    file.seek(0)
    table = _Columns(file)
    if (columns := table.metadata.num_columns) > _MOST_COLUMNS:
        raise FileTooLarge(f"it has {columns:,} columns, {_MOST_COLUMNS:,} allowed")
    return table


class _Columns(pq.ParquetFile):  # type: ignore[misc] # Arrow has no types
    """A Parquet file whose columns can be selected, also those with unusual names."""

    def _build_nested_paths(self) -> Mapping[str, list[int]]:
        """Indexes of leaf columns by the name of their top-level column."""
        nested = defaultdict(list)
        for index, path in self.leaves():
            nested[path.partition(".")[0]].append(index)
        return nested

    def leaves(self) -> Iterator[tuple[int, str]]:
        """Index and path of each leaf column. Names that are not UTF-8 are left out."""
        schema = self.metadata.schema
        for index in range(len(schema)):
            try:
                yield index, schema.column(index).path
            except UnicodeDecodeError:
                continue

    def check(self, wanted: Collection[str]) -> None:
        """Raise ArrowInvalid for a file without a wanted column, FileTooLarge for too many rows."""
        rows = self.metadata.num_rows
        heads = self._build_nested_paths()
        if rows and not any(name in wanted for name in heads):
            names = ", ".join(list(heads)[:10])
            raise pa.ArrowInvalid(f"none of its columns is one of a log: {names}")
        if rows > max(_FEW_ROWS, size := self._size()):
            raise FileTooLarge(f"its footer states {rows:,} rows, in {size:,} bytes")

    def _size(self) -> int:
        groups = (self.metadata.row_group(n) for n in range(self.metadata.num_row_groups))
        return sum(g.column(n).total_compressed_size for g in groups for n in range(g.num_columns))


@dataclass(frozen=True)
class _Leaf:
    """A leaf column in one row group, by the footer."""

    path: str
    text: bool
    nested: bool
    fixed: int
    packed: int
    unpacked: int
    values: int
    has_dictionary: bool
    prefixes: bool
    """True when values are stored as differences from the value before."""

    @property
    def stays_dictionary(self) -> bool:
        """True when texts stay in the dictionary. That is slow, and impossible with prefixes."""
        grows = self.nested or self.unpacked > _SMALL
        return self.text and self.has_dictionary and grows and not self.prefixes

    @property
    def value(self) -> int:
        """Largest size of a value that repeats a stored value."""
        if self.fixed > _LONGEST_FIXED:
            return self.fixed
        repeats = self.prefixes or (self.text and self.has_dictionary)
        return self.unpacked if repeats and not self.stays_dictionary else 0

    @property
    def bytes(self) -> int:
        """Largest size in memory. A list is unpacked one row group at a time."""
        return self.unpacked + (self.nested * self.values * (self.value + _A_VALUE))


def _batches(
    file: BinaryIO, table: _Columns, group: int, row_bytes: int, wanted: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """The batches of a row group. Each has so many rows that it fits into memory."""
    budget = _ROWS_HELD * row_bytes
    with _as_arrow_errors():
        leaves = list(_leaves(table, group, wanted))
        size, packed = sum(leaf.bytes for leaf in leaves), sum(leaf.packed for leaf in leaves)
        if size > max(budget, _RATIO * packed):
            raise FileTooLarge(
                f"a row group of {packed:,} bytes unpacks to {size:,}, and {budget:,} are allowed "
                f"({_ROWS_HELD} times limits: row_bytes)"
            )
        rows = max(1, table.metadata.row_group(group).num_rows)
        row = sum(_UNEVEN * leaf.unpacked // rows + leaf.value for leaf in leaves)
        opened = _Columns(
            file,
            metadata=table.metadata,
            read_dictionary=[leaf.path for leaf in leaves if leaf.stays_dictionary],
            pre_buffer=False,
            buffer_size=_BUFFER,
        )
        yield from opened.iter_batches(
            batch_size=max(1, min(_BATCH, budget // max(1, row))),
            row_groups=[group],
            columns=list(dict.fromkeys(leaf.path.partition(".")[0] for leaf in leaves)),
            use_threads=False,  # as in storage/parts.py
        )


def _leaves(table: _Columns, group: int, wanted: Collection[str]) -> Iterator[_Leaf]:
    for index, path in table.leaves():
        if path.partition(".")[0] not in wanted:
            continue
        schema = table.metadata.schema.column(index)
        chunk = table.metadata.row_group(group).column(index)
        yield _Leaf(
            path,
            text=schema.physical_type == "BYTE_ARRAY",
            nested=schema.max_repetition_level > 0,
            fixed=schema.length or 0,
            packed=max(0, chunk.total_compressed_size),
            unpacked=max(0, chunk.total_uncompressed_size),
            values=max(0, chunk.num_values),
            has_dictionary=chunk.has_dictionary_page,
            prefixes="DELTA_BYTE_ARRAY" in chunk.encodings,
        )


@contextmanager
def _as_arrow_errors() -> Iterator[None]:
    """Turn all errors of Arrow and its Python code into ArrowException."""
    try:
        yield
    except pa.ArrowException:
        raise
    except _UNREADABLE as error:
        raise pa.ArrowInvalid(f"{type(error).__name__}: {error}") from error


def _decoded(batch: pa.RecordBatch, limit: int) -> Iterator[tuple[int, Any]]:
    """The records of a batch, each with its estimated size. A batch that is too large or invalid is
    split in half, down to the bad record.
    """
    size = _size_of(batch)
    if size <= limit:
        try:
            records = cast("list[Any]", _plain(batch).to_pylist())
        except _UNREADABLE as error:
            if batch.num_rows == 1:
                yield size, _cell_by_cell(batch, error)
                return
        else:
            share = size // max(1, batch.num_rows)
            yield from ((share, _row(record)) for record in records)
            return
    elif batch.num_rows == 1:
        yield size, bad_row(f"too large: {size:,} bytes, {limit:,} allowed")
        return
    half = batch.num_rows // 2
    yield from _decoded(batch.slice(0, half), limit)
    yield from _decoded(batch.slice(half), limit)


def _size_of(batch: pa.RecordBatch) -> int:
    return sum(map(_size, batch.columns), 8 * batch.num_rows)


def _size(array: pa.Array) -> int:
    """Estimated size of the values in bytes, without dictionaries."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            return cast("int", array.nbytes)
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return 8 * len(array) + cast("int", pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return 8 * len(array) + sum(map(_size, array.flatten()))
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        pairs = (array.keys.slice(first, last - first), array.items.slice(first, last - first))
        return 8 * len(array) + sum(map(_size, pairs))
    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        return 8 * len(array) + _size(array.flatten())
    return max(cast("int", array.nbytes), 8 * len(array))


def _is_text(kind: pa.DataType) -> bool:
    return any(
        is_one(kind)
        for is_one in (
            pa.types.is_string,
            pa.types.is_binary,
            pa.types.is_large_string,
            pa.types.is_large_binary,
        )
    )


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without dictionaries, which are slow to convert, and with all times in UTC, so that
    no time zone has to be known.
    """
    for index, field in enumerate(batch.schema):
        kind = _plain_type(field.type)
        if kind != field.type:
            batch = batch.set_column(index, field.name, batch.column(index).cast(kind))
    return batch


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz:
        return pa.timestamp(kind.unit, tz="UTC")
    if pa.types.is_dictionary(kind) and _is_text(kind.value_type):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    return kind


def _cell_by_cell(batch: pa.RecordBatch, error: BaseException) -> dict[str, Any] | BadRow:
    """A record of which some cells cannot be read: each of them is a BadRow with the reason."""
    record: dict[str, Any] = {}
    for index, name in enumerate(batch.schema.names):
        try:
            record[name] = _plain(batch.select([index])).to_pylist()[0][name]
        except _UNREADABLE as failure:
            why = "not UTF-8" if isinstance(failure, UnicodeDecodeError) else str(failure)
            record[name] = bad_row(" ".join(f"{name}: {why}".split()))
    if any(isinstance(value, BadRow) for value in record.values()):
        return _row(record)
    return bad_row(" ".join(str(error).split()))  # such as two columns of one name


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a map column, which is a list of pairs, and drop null cells."""
    row = {name: value for name, value in record.items() if value is not None}
    tags = row.get("tags")
    if isinstance(tags, list) and all(isinstance(pair, tuple) for pair in tags):
        try:
            row["tags"] = dict(tags)
        except TypeError:  # a list or a mapping as a key
            row["tags"] = bad_row("tags: its keys should be texts")
    return row
