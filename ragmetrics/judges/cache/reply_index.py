"""Disk-backed index of cached replies: 44 bytes of memory each, the replies in a temporary file.

Replies of many files are found by key, or read in the order of keys. The newest of several replies
to a key counts.
"""

from __future__ import annotations

import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ragmetrics.storage import temporary_file

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
ALWAYS = -(1 << 62)
_KEY = np.dtype("S16")
_ENTRY = np.dtype(
    [
        ("start", "<u8"),
        ("length", "<u4"),
        ("prompt_tokens", "<i4"),
        ("completion_tokens", "<i4"),
        ("judged_at", "<i8"),
    ]
)
_RECENT = 4_096
_BATCH_ROWS, _BATCH_BYTES = 32_768, 4 << 20

Keys = npt.NDArray[np.bytes_]


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


@dataclass
class ReplyIndex:
    """Replies by key: `add` until `settle`, then `find`, `put` and `batches`.

    Raises StoreError if the temporary file cannot be written.
    """

    wanted: WantedReply = field(default_factory=WantedReply)

    def __post_init__(self) -> None:
        # Deleted from the disk when it is closed.
        with temporary_file():
            self._replies = tempfile.TemporaryFile(  # noqa: SIM115
                prefix="ragmetrics-", buffering=0
            )
        self._close = weakref.finalize(self, self._replies.close)
        self._size = 0
        self._keys: Keys = np.empty(0, _KEY)
        self._entries: npt.NDArray[np.void] = np.empty(0, _ENTRY)
        self._more: list[tuple[Keys, npt.NDArray[np.void]]] = []
        self._recent: dict[bytes, tuple[int, int]] = {}

    def __len__(self) -> int:
        """Number of distinct keys, after `settle`."""
        return len(self._keys)

    def close(self) -> None:
        """Close the temporary file."""
        self._close()

    def add(self, table: pa.Table) -> int:
        """Add the wanted replies of a table; return how many of its replies have expired."""
        expired = 0
        for batch in table.to_batches():
            keys = _fixed(batch, "key", _KEY)
            judged_at = _fixed(batch, "judged_at", np.dtype("<i8"))
            expired += int(np.count_nonzero(judged_at < self.wanted.since))
            mask = self.wanted.mask(keys, judged_at)
            if mask.any():
                self._more.append((keys[mask], self._entries_of(batch.filter(pa.array(mask)))))
        return expired

    def _entries_of(self, batch: pa.RecordBatch) -> npt.NDArray[np.void]:
        entries = np.empty(len(batch), _ENTRY)
        for name in ("prompt_tokens", "completion_tokens", "judged_at"):
            entries[name] = _fixed(batch, name, _ENTRY[name])
        replies = batch.column("reply")
        _, offsets, data = replies.buffers()
        ends = np.frombuffer(offsets, np.int32)[replies.offset : replies.offset + len(batch) + 1]
        first, last = int(ends[0]), int(ends[-1])
        entries["start"] = self._size + (ends[:-1] - first).astype(np.uint64)
        entries["length"] = np.diff(ends)
        if last > first:
            self._write(memoryview(data)[first:last])
        return entries

    def _write(self, data: bytes | memoryview) -> int:
        start = self._size
        view = memoryview(data)
        with temporary_file():
            self._replies.seek(start)
            while view:
                view = view[self._replies.write(view) or 0 :]
        self._size += len(data)
        return start

    def settle(self) -> None:
        """Sort by key, and retain the newest reply to each key."""
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._more)])
        entries = np.concatenate([self._entries, *(entries for _, entries in self._more)])
        self._more = []
        halves = keys.view(">u8").reshape(-1, 2).astype(np.uint64)
        order = np.lexsort((entries["judged_at"], halves[:, 1], halves[:, 0]))
        keys = keys[order]
        newest = np.ones(len(keys), np.bool_)
        newest[:-1] = keys[1:] != keys[:-1]
        self._keys, self._entries = keys[newest], entries[order[newest]]

    def lengths(self) -> Counter[int]:
        """Number of replies by length in bytes, after `settle`."""
        found, counts = np.unique(self._entries["length"], return_counts=True)
        return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))

    def find(self, key: bytes) -> bytes | None:
        """The reply to a key of 16 bytes."""
        start, length = self._recent.get(key, (-1, 0))
        if start < 0:
            place = int(self._keys.searchsorted(np.frombuffer(key, _KEY))[0])
            if place == len(self._keys) or self._keys[place] != np.frombuffer(key, _KEY)[0]:
                return None
            entry = self._entries[place]
            start, length = int(entry["start"]), int(entry["length"])
        return self._read(start, length)

    def _read(self, start: int, length: int) -> bytes:
        self._replies.seek(start)
        return self._replies.read(length)

    def put(self, key: bytes, reply: bytes) -> None:
        """Add a new reply; it replaces older ones."""
        self._recent[key] = self._write(reply), len(reply)
        if len(self._recent) >= _RECENT:
            self._fold()

    def _fold(self) -> None:
        keys = sorted(self._recent)
        entries = np.zeros(len(keys), _ENTRY)
        entries["start"], entries["length"] = zip(*map(self._recent.get, keys), strict=True)
        # Before equal keys: `find` returns the first.
        places = self._keys.searchsorted(np.array(keys, _KEY))
        self._keys = np.insert(self._keys, places, np.array(keys, _KEY))
        self._entries = np.insert(self._entries, places, entries)
        self._recent = {}

    def batches(self, cuts: Sequence[str] = ()) -> Iterator[pa.Table]:
        """The replies by key, in tables of a few megabytes; no table spans one of the cuts."""
        total = np.cumsum(self._entries["length"], dtype=np.int64)
        ends = [int(self._keys.searchsorted(np.frombuffer(_key(cut), _KEY))[0]) for cut in cuts]
        start = 0
        while start < len(self._keys):
            before = int(total[start - 1]) if start else 0
            full = int(np.searchsorted(total, before + _BATCH_BYTES)) + 1
            end = min(full, start + _BATCH_ROWS, len(self._keys))
            end = min([end, *(one for one in ends if one > start)])
            yield self._table(start, end)
            start = end

    def _table(self, start: int, end: int) -> pa.Table:
        entries = self._entries[start:end]
        keys = pa.py_buffer(np.ascontiguousarray(self._keys[start:end]))
        places = zip(entries["start"].tolist(), entries["length"].tolist(), strict=True)
        return pa.Table.from_arrays(
            [
                pa.Array.from_buffers(SCHEMA.field("key").type, end - start, [None, keys]),
                pa.array([self._read(*place) for place in places], pa.binary()),
                pa.array(entries["prompt_tokens"]),
                pa.array(entries["completion_tokens"]),
                pa.array(entries["judged_at"]).cast(SCHEMA.field("judged_at").type),
            ],
            schema=SCHEMA,
        )


def _key(beginning: str) -> bytes:
    return bytes.fromhex(beginning.ljust(32, "0"))


def _fixed(batch: pa.RecordBatch, name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """A column of fixed width, copied: the batch may be freed."""
    column = batch.column(name)
    return np.frombuffer(column.buffers()[1], kind)[column.offset :][: len(column)].copy()
