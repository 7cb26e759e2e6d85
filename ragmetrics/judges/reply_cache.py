"""Reply cache: stores every usable reply, so that it is never paid for twice.

A key begins with the hash of the row's question, as a shard does. So a part reads only the files
of its own prompts whose range of keys overlaps its own (see `reply_files`). Each reply is logged
when it comes: `add` returns when the reply is durable; until then the request counts as in flight.
So a killed run repeats only the requests that were in flight.

The loaded replies are in a temporary file, with an index of 44 bytes of memory each.

At the end of a part its logs become one Parquet file, and many small files are merged into one.
The merged file is written before its sources are removed. So no reply is lost when a process dies,
or when two processes compact at the same time.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ragmetrics.errors import StoreError
from ragmetrics.judges.reply_files import (
    ALWAYS,
    FULL,
    SCHEMA,
    BucketWriteAheadLog,
    CachedReply,
    FileWriteAheadLog,
    Keys,
    ReplyFile,
    ScanReport,
    WantedReply,
    WriteAheadLog,
    listed,
    new_name,
    read_all,
    try_lock,
    write,
)
from ragmetrics.model import Vector
from ragmetrics.storage import Files, remove_file, temporary_file

log = logging.getLogger(__name__)
EMBEDDING = "embedding"
"""Prompt name under which vectors are cached."""
_DAY = 86_400 * 1_000_000
MOST_FILES = 8
"""Most Parquet files inside a range, and most that reach beyond it; more are merged into one."""
_MOST_LOGS = 256
_AT_ONCE = 16
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
_BATCH_ROWS, _BATCH_BYTES = 32_768, 4 << 20


class ReplyCache:
    """Cached replies of one judge in one range of keys, for one writer at a time.

    Several writers may share a folder: each has its own files. Only replies to `prompts` are read;
    None: to all. Replies older than `ttl_days` are not found.
    """

    def __init__(
        self,
        files: Files,
        fingerprint: str,
        low: str,
        high: str,
        *,
        prompts: Sequence[str] | None = None,
        ttl_days: int | None = None,
    ) -> None:
        self._files = files
        self._folder = f"judgements/judge={fingerprint}"
        self._prompts = None if prompts is None else set(prompts)
        since = ALWAYS if ttl_days is None else _now() - ttl_days * _DAY
        self._wanted = WantedReply(low, high, since)
        self._index = ReplyIndex(self._wanted)
        self._logs: dict[str, WriteAheadLog] = {}
        self._written: set[str] = set()
        self._report = ScanReport()
        self._preparing: asyncio.Task[None] | None = None

    def load(self, questions: Collection[str] | None = None) -> None:
        """Read the cached replies in this range, for some questions (their keys) or for all.

        Damaged files are ignored with a warning. Raises StoreError.
        """
        wanted = self._wanted
        if questions is not None:
            hashes = np.unique(np.array([int(one[:8], 16) for one in questions], np.uint32))
            wanted = replace(wanted, questions=hashes)
        self._index.close()
        self._index = ReplyIndex(wanted)
        done: set[str] = set()
        missed: set[str] = set()
        # Other processes may merge files meanwhile: a reply of a removed file is in a new one. So
        # the folder is listed again until the listing has no new file.
        while new := [one for one in self._listed() if one.path not in done]:
            if {one.path for one in new} == missed:
                for path in sorted(missed):
                    log.warning("%s is listed, but cannot be read", self._files.uri(path))
                break
            done.update(read_all(self._files, new, self._index, self._report))
            done |= self._report.damaged
            missed = {one.path for one in new} - done
        self._index.settle()

    def find(self, key: str) -> str | None:
        """The cached reply to a request; None if it is not text."""
        data = self._index.find(bytes.fromhex(key))
        try:
            return None if data is None else data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None

    def vector_sizes(self) -> Counter[int]:
        """Number of cached vectors by dimension."""
        sizes = self._index.lengths()
        return Counter(
            {size // 4: times for size, times in sizes.items() if size and size % 4 == 0}
        )

    def find_vector(self, key: str) -> Vector | None:
        """The cached vector of a text, in float32 bit by bit; None if it is not a vector."""
        data = self._index.find(bytes.fromhex(key))
        return np.frombuffer(data, "<f4") if data and len(data) % 4 == 0 else None

    async def prepare(self) -> None:
        """Check that the folder is writable, before any request is paid for. Raises StoreError."""
        if self._preparing is None:
            check = asyncio.to_thread(self._files.check_writable, self._folder)
            self._preparing = asyncio.create_task(check)
        if self._preparing.done() and not self._preparing.exception():
            return
        try:
            await asyncio.shield(self._preparing)
        except StoreError as error:  # those who wait must not share a traceback
            raise copy.copy(error) from error.__cause__

    async def add(self, judgement: CachedReply) -> None:
        """Add a reply; return when it is durable. Raises StoreError."""
        key = bytes.fromhex(judgement.key)
        if len(key) != 16 or not self._wanted.low <= judgement.key[:8] <= self._wanted.high:
            raise ValueError(f"{judgement.key}: not a key of this range")
        await self._log_for(judgement.prompt).append(judgement.line(_now()))
        self._index.put(key, judgement.data)

    def _log_for(self, prompt: str) -> WriteAheadLog:
        writer = self._logs.get(prompt)
        if writer is None or writer.broken:
            if writer:
                self._written.update(writer.close())
            writer = self._logs[prompt] = self._new_log(self._prompt_folder(prompt))
        return writer

    def _new_log(self, folder: str) -> WriteAheadLog:
        def name() -> str:
            return new_name(folder, self._wanted.low, self._wanted.high, "jsonl")

        if self._files.local:
            return FileWriteAheadLog(self._files.local, name())
        return BucketWriteAheadLog(self._files, name)

    def compact(self) -> None:
        """Merge the logs (also those of killed runs) and the small files of each prompt into one
        file; drop expired replies. Raises StoreError.
        """
        for writer in self._logs.values():
            self._written.update(writer.close())
        written, self._logs = list(self._logs), {}
        found = self._listed(written)
        for _, group in groupby(found, key=lambda one: one.folder):
            compact(self._files, list(group), self._written, self._wanted, self._report)
        self._written = set()

    def close(self) -> None:
        """Close the open files. Stored replies stay; `find` finds nothing any more."""
        for writer in self._logs.values():
            self._written.update(writer.close())
        self._logs = {}
        self._index.close()

    def _listed(self, more: Sequence[str] = ()) -> list[ReplyFile]:
        folders = [self._folder]
        if self._prompts is not None:
            folders = [self._prompt_folder(one) for one in sorted(self._prompts | set(more))]
        return listed(self._files, folders, self._wanted.low, self._wanted.high, self._report)

    def _prompt_folder(self, prompt: str) -> str:
        return f"{self._folder}/prompt={quote(prompt, safe='')}"


def _now() -> int:
    return time.time_ns() // 1_000


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
        self._new: dict[bytes, tuple[int, int]] = {}

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
        if key in self._new:
            return self._read(*self._new[key])
        (sought,) = np.frombuffer(key, _KEY)
        place = int(self._keys.searchsorted(sought))
        if place == len(self._keys) or self._keys[place] != sought:
            return None
        entry = self._entries[place]
        return self._read(int(entry["start"]), int(entry["length"]))

    def _read(self, start: int, length: int) -> bytes:
        self._replies.seek(start)
        return self._replies.read(length)

    def put(self, key: bytes, reply: bytes) -> None:
        """Add a new reply; it replaces older ones."""
        self._new[key] = self._write(reply), len(reply)

    def batches(self, cuts: Sequence[str] = ()) -> Iterator[pa.Table]:
        """The replies by key, in tables of a few megabytes; no table spans one of the cuts."""
        total = np.cumsum(self._entries["length"], dtype=np.int64)
        ends = [
            int(self._keys.searchsorted(np.frombuffer(bytes.fromhex(cut.ljust(32, "0")), _KEY))[0])
            for cut in cuts
        ]
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


def _fixed(batch: pa.RecordBatch, name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """A column of fixed width, copied: the batch may be freed."""
    column = batch.column(name)
    return np.frombuffer(column.buffers()[1], kind)[column.offset :][: len(column)].copy()


def compact(
    files: Files,
    reply_files: Sequence[ReplyFile],
    own_logs: Collection[str],
    wanted: WantedReply,
    report: ScanReport,
) -> None:
    """Compact the files of one prompt that overlap the wanted range.

    Only files that can be removed are read, and only files that were read completely are removed.
    """
    reply_files = [one for one in reply_files if one.path not in report.damaged]
    with ExitStack() as locks:
        logs = list(_removable_logs(files, reply_files, own_logs, locks))
        sources = [*logs, *_tables_to_merge(reply_files, wanted, bool(logs), report)]
        if not sources:
            return
        index = ReplyIndex(WantedReply(since=wanted.since))
        try:
            complete = read_all(files, sources, index, report)
            index.settle()
            write(files, sources[0].folder, index, wanted.low, wanted.high)
        finally:
            index.close()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(partial(remove_file, files), complete))


def _removable_logs(
    files: Files, reply_files: Sequence[ReplyFile], own_logs: Collection[str], locks: ExitStack
) -> Iterator[ReplyFile]:
    """The logs that may be merged: in a folder, its own and those of dead writers."""
    logs = [one for one in reply_files if one.is_log]
    if files.local is None:
        yield from logs
        return
    for one in logs[:_MOST_LOGS]:
        if one.path in own_logs or locks.enter_context(try_lock(files.local / one.path)):
            yield one


def _tables_to_merge(
    reply_files: Sequence[ReplyFile], wanted: WantedReply, another: bool, report: ScanReport
) -> Iterator[ReplyFile]:
    """The Parquet files to merge; with `another`, the logs will add one file."""
    tables = [one for one in reply_files if not one.is_log]
    inside = [one for one in tables if wanted.low <= one.low and one.high <= wanted.high]
    beyond = [one for one in tables if one not in inside]
    for group, more in ((inside, another), (beyond, False)):
        small = [one for one in group if one.size < FULL]
        due = len(small) + more > MOST_FILES
        yield from (one for one in group if one.path in report.expired or (due and one.size < FULL))
