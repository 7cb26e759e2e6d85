"""Cached replies as lines of a write-ahead log and as rows of sorted Parquet files."""

from __future__ import annotations

import base64
import binascii
import io
import json
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.errors import StoreError
from ragmetrics.records import Vector
from ragmetrics.storage import Files, temporary_file

if TYPE_CHECKING:
    from ragmetrics.judges.reply_cache import ReplyIndex

FULL = 64 << 20
"""Bytes from which a file is merged only to drop expired replies."""
# Replies are bytes: UTF-8 that may hold lone surrogates, which Parquet does not take as text, or
# the little-endian float32 numbers of a vector.
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary(16), nullable=False),
        pa.field("reply", pa.binary(), nullable=False),
        pa.field("prompt_tokens", pa.int32(), nullable=False),
        pa.field("completion_tokens", pa.int32(), nullable=False),
        pa.field("judged_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
LOGGED = SCHEMA.set(4, pa.field("judged_at", pa.int64(), nullable=False))
"""The same, with the time in microseconds since 1970."""
ALWAYS = -(1 << 62)
Keys = npt.NDArray[np.bytes_]
_KEY = 16
_INT32 = 1 << 31
_LINES = 4_096


@dataclass(frozen=True, slots=True)
class WantedReply:
    """Filter of replies; all keys are hex digits."""

    low: str = "00000000"
    high: str = "ffffffff"
    since: int = ALWAYS
    """Microseconds since 1970; older replies have expired."""
    questions: npt.NDArray[np.uint32] | None = None
    """Sorted prefixes of the wanted keys; None: all."""

    def mask(self, keys: Keys, judged_at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Mask of the replies that pass the filter."""
        first = keys.view(">u4").reshape(-1, 4)[:, 0].astype(np.uint32)
        wanted = (first >= int(self.low, 16)) & (first <= int(self.high, 16))
        wanted &= judged_at >= self.since
        if self.questions is not None:
            wanted &= np.isin(first, self.questions)
        return wanted


@dataclass(frozen=True, slots=True)
class CachedReply:
    """A reply to cache; its key is 32 hex digits, the first 8 those of the question."""

    key: str
    prompt: str
    reply: str | Vector
    prompt_tokens: int = 0
    completion_tokens: int = 0
    judged_at: datetime | None = None
    """Time of the reply; None: now."""

    @property
    def data(self) -> bytes:
        """The reply as stored bytes."""
        if isinstance(self.reply, str):
            return self.reply.encode("utf-8", "surrogatepass")
        return np.asarray(self.reply, dtype="<f4").tobytes()

    def line(self, now: int) -> bytes:
        """The reply as a line of a log; `now` in microseconds since 1970."""
        record: dict[str, Any] = {"key": self.key}
        if isinstance(self.reply, str):
            record["reply"] = self.reply
        else:
            record["vector"] = base64.b64encode(self.data).decode()
        record["prompt_tokens"] = _count(self.prompt_tokens)
        record["completion_tokens"] = _count(self.completion_tokens)
        record["judged_at"] = microseconds(self.judged_at) if self.judged_at else now
        return json.dumps(record).encode() + b"\n"


def new_name(folder: str, low: str, high: str, kind: str) -> str:
    """A unique path."""
    return f"{folder}/{low}-{high}.{unique_id()}.{kind}"


def unique_id() -> str:
    """Twelve hex digits, which no other file of replies has in its name."""
    return uuid.uuid4().hex[:12]


def read_lines(lines: Iterable[bytes]) -> Iterator[pa.Table]:
    """Tables of a log's replies. Raises ValueError at the end if there are damaged lines.

    The last line of a killed writer may be incomplete: that reply was not durable yet.
    """
    records: list[dict[str, Any]] = []
    damaged = 0
    for line in lines:
        try:
            records.append(_record(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            damaged += line.endswith(b"\n")
        if len(records) == _LINES:
            yield pa.Table.from_pylist(records, LOGGED).cast(SCHEMA)
            records = []
    yield pa.Table.from_pylist(records, LOGGED).cast(SCHEMA)
    if damaged:
        raise ValueError(f"{damaged} of its lines are not replies")


def _record(line: Any) -> dict[str, Any]:
    key, at = bytes.fromhex(line["key"]), line["judged_at"]
    if not (len(key) == _KEY and type(at) is int and abs(at) < 1 << 62):
        raise ValueError("not a reply")
    tokens = {name: _count(line[name]) for name in ("prompt_tokens", "completion_tokens")}
    return {"key": key, "reply": _reply(line), "judged_at": at, **tokens}


def _count(tokens: int) -> int:
    """A number of tokens as it is stored; 0 for an impossible one."""
    if type(tokens) is not int:
        raise TypeError("not a number of tokens")
    return tokens if 0 <= tokens < _INT32 else 0


def _reply(line: Any) -> bytes:
    if "reply" in line:
        reply = line["reply"]
        if not isinstance(reply, str):
            raise TypeError("not a reply")
        return reply.encode("utf-8", "surrogatepass")
    vector = base64.b64decode(line["vector"], validate=True)
    if len(vector) % 4:
        raise binascii.Error("not a vector")
    return vector


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return round(moment.timestamp() * 1e6)


def read_table(files: Files, path: str, wanted: WantedReply) -> Iterator[pa.Table]:
    """The row groups of a Parquet file that may hold wanted replies. Raises StoreError."""
    with files.open(path) as file:
        source = _Source(file, files.uri(path))
        parquet = _open(source)
        for number in range(parquet.num_row_groups):
            if _meets(parquet.metadata.row_group(number), wanted):
                table = parquet.read_row_group(number, columns=SCHEMA.names, use_threads=False)
                yield table.cast(SCHEMA)


def _open(source: _Source) -> pq.ParquetFile:
    """An open file, whose data no thread of Arrow reads: see `storage.parts`."""
    return pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=False)


def _meets(group: pq.RowGroupMetaData, wanted: WantedReply) -> bool:
    """Whether a row group may hold wanted keys, by its statistics."""
    keys = group.column(0)
    statistics = keys.statistics if keys.path_in_schema == "key" else None
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = bytes.fromhex(wanted.low), bytes.fromhex(wanted.high)
    return bool(statistics.min[:4] <= high and low <= statistics.max[:4])


def newest_reply(files: Files, path: str) -> datetime | None:
    """When the newest reply was given; None where the file does not say so."""
    with files.open(path) as file:
        metadata = _open(_Source(file, files.uri(path))).metadata
    newest: list[datetime] = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = (group.column(at) for at in range(group.num_columns))
        column = next((column for column in columns if column.path_in_schema == "judged_at"), None)
        statistics = column.statistics if column else None
        if statistics is None or not statistics.has_min_max:
            return None
        newest.append(statistics.max)
    return max(newest, default=None)


class _Source(io.RawIOBase):
    """A file whose read errors are StoreErrors, unlike errors of Arrow in its content."""

    def __init__(self, file: BinaryIO, uri: str) -> None:
        self._file, self._uri = file, uri

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As in any file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As in any file."""
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        """As in any file. Raises StoreError."""
        try:
            return self._file.read(size)
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(f"reading {self._uri}: {error}", transient=True) from error


def write(files: Files, folder: str, index: ReplyIndex, low: str, high: str) -> None:
    """Write the index as sorted files; a file ends when it is full and at the range's bounds.

    Raises StoreError.
    """
    below, above = int(low, 16) - 1, int(high, 16) + 1
    ranges = (0, below), (below + 1, above - 1), (above, 0xFFFFFFFF)
    with temporary_file(), tempfile.TemporaryDirectory(prefix="ragmetrics-") as local:
        target = Path(local) / "made.parquet"
        for first, last in ranges:
            if first > last:
                continue
            tables = index.tables(f"{first:08x}", f"{last:08x}")
            while keys := _write_file(target, tables):
                # Named by its keys: a killed run may have had another range.
                files.put(target, new_name(folder, *keys, "parquet"))


def _write_file(path: Path, tables: Iterator[pa.Table]) -> tuple[str, str] | None:
    """Write tables until the file is full; return its first and last question, if there is any."""
    table = next(tables, None)
    if table is None:
        return None
    first = _question(table, 0)
    with path.open("wb") as sink, _writer(sink) as writer:
        writer.write_table(table)
        while sink.tell() < FULL and (more := next(tables, None)) is not None:
            table = more
            writer.write_table(table)
    return first, _question(table, -1)


def _writer(sink: BinaryIO) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        sink,
        SCHEMA,
        compression="zstd",
        use_dictionary=["reply"],
        write_statistics=["key"],
        write_page_checksum=True,
    )


def _question(table: pa.Table, place: int) -> str:
    return str(table["key"][place].as_py()[:4].hex())
