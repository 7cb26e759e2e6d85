"""Reply cache: stores every usable reply, so that it is never paid for twice.

A key begins with the hash of the row's question, as a shard does. So a part reads only the files
of its own prompts whose range of keys overlaps its own (see `reply_files`). Each reply is logged
when it comes: `add` returns when the reply is durable; until then the request counts as in flight.
So a killed run repeats only the requests that were in flight.

At the end of a part its logs become one Parquet file, and many small files are merged into one.
The merged file is written before its sources are removed. So no reply is lost when a process dies,
or when two processes compact at the same time.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import sqlite3
import time
import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from ragmetrics.errors import StoreError
from ragmetrics.judges.reply_files import (
    BucketWriteAheadLog,
    FileWriteAheadLog,
    ReplyFile,
    ScanReport,
    listed,
    read_all,
    try_lock,
)
from ragmetrics.judges.reply_tables import (
    ALWAYS,
    FULL,
    LOGGED,
    SCHEMA,
    CachedReply,
    Keys,
    WantedReply,
    new_name,
    write,
)
from ragmetrics.records import Vector
from ragmetrics.storage import Files, temporary_file

log = logging.getLogger(__name__)
EMBEDDING = "embedding"
"""Prompt name under which vectors are cached."""
_DAY = 86_400 * 1_000_000
MOST_FILES = 8
"""Most Parquet files inside a range, and most that reach beyond it; more are merged into one."""
_MOST_LOGS = 256
_TABLE = """
PRAGMA journal_mode = OFF;
CREATE TABLE replies (
    key BLOB PRIMARY KEY, reply BLOB, prompt_tokens INT, completion_tokens INT, judged_at INT
);
BEGIN;
"""  # never committed: the database is not read again
_ADD = """
INSERT INTO replies VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
    reply = excluded.reply, prompt_tokens = excluded.prompt_tokens,
    completion_tokens = excluded.completion_tokens, judged_at = excluded.judged_at
WHERE excluded.judged_at >= judged_at
"""
_WriteAheadLog: TypeAlias = FileWriteAheadLog | BucketWriteAheadLog
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
        self._logs: dict[str, _WriteAheadLog] = {}
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

    def find(self, key: str) -> str | None:
        """The cached reply to a request; None if it is not text."""
        data = self._index.find(bytes.fromhex(key))
        try:
            return None if data is None else data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None

    def vector_sizes(self) -> Counter[int]:
        """Number of cached vectors by dimension."""
        lengths = self._index.lengths()
        return Counter({size // 4: lengths[size] for size in lengths if size and size % 4 == 0})

    def find_vector(self, key: str) -> Vector | None:
        """The cached vector of a text, in float32 bit by bit; None if it is not a vector."""
        data = self._index.find(bytes.fromhex(key))
        return np.frombuffer(data, "<f4") if data and len(data) % 4 == 0 else None

    async def prepare(self) -> None:
        """Check that the folder is writable, before any request is paid for. Raises StoreError."""
        if self._preparing is None:
            check = asyncio.to_thread(self._files.check_writable, self._folder)
            self._preparing = asyncio.create_task(check)
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

    def _log_for(self, prompt: str) -> _WriteAheadLog:
        writer = self._logs.get(prompt)
        if writer is None or writer.broken:
            if writer:
                self._written.update(writer.close())
            writer = self._logs[prompt] = self._new_log(self._prompt_folder(prompt))
        return writer

    def _new_log(self, folder: str) -> _WriteAheadLog:
        def name() -> str:
            return new_name(folder, self._wanted.low, self._wanted.high, "jsonl")

        if self._files.local:
            return FileWriteAheadLog(self._files.local, name())
        return BucketWriteAheadLog(self._files, name)

    def compact(self) -> None:
        """Merge the logs (also those of killed runs) and the small files of each prompt into one
        file; drop expired replies. Raises StoreError.
        """
        prompts = list(self._logs)
        self._close_logs()
        listing = self._listed(prompts)
        for _, group in groupby(listing, key=lambda one: one.folder):
            compact(self._files, list(group), self._written, self._wanted, self._report)
        self._written = set()

    def close(self) -> None:
        """Close the open files. Stored replies stay."""
        self._close_logs()
        self._index.close()

    def _close_logs(self) -> None:
        for writer in self._logs.values():
            self._written.update(writer.close())
        self._logs = {}

    def _listed(self, more: Sequence[str] = ()) -> list[ReplyFile]:
        folders = [self._folder]
        if self._prompts is not None:
            folders = [self._prompt_folder(prompt) for prompt in sorted(self._prompts | set(more))]
        return listed(self._files, folders, self._wanted.low, self._wanted.high, self._report)

    def _prompt_folder(self, prompt: str) -> str:
        return f"{self._folder}/prompt={quote(prompt, safe='')}"


def _now() -> int:
    return time.time_ns() // 1_000


class ReplyIndex:
    """Wanted replies of many files by key, in a temporary SQLite database on the disk.

    The newest of several replies to a key counts. Raises StoreError if the disk is full.
    """

    def __init__(self, wanted: WantedReply) -> None:
        self.wanted = wanted
        with _database_errors():
            # The database without a name is deleted when it is closed.
            self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            self._database.executescript(_TABLE)
        self._close = weakref.finalize(self, self._database.close)

    def close(self) -> None:
        """Delete the database."""
        self._close()

    def add(self, table: pa.Table) -> int:
        """Add the wanted replies of a table; return how many of its replies have expired."""
        expired = 0
        for batch in table.cast(LOGGED).to_batches():
            judged_at = batch["judged_at"].to_numpy()
            expired += int(np.count_nonzero(judged_at < self.wanted.since))
            mask = self.wanted.mask(_keys(batch["key"]), judged_at)
            wanted = batch.filter(pa.array(mask))
            with _database_errors():
                rows = zip(*(column.to_pylist() for column in wanted.columns), strict=True)
                self._database.executemany(_ADD, rows)
        return expired

    def put(self, key: bytes, reply: bytes) -> None:
        """Add a new reply; it replaces older ones."""
        with _database_errors():
            self._database.execute("REPLACE INTO replies VALUES (?, ?, 0, 0, 0)", (key, reply))

    def find(self, key: bytes) -> bytes | None:
        """The reply to a key of 16 bytes."""
        cursor = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,))
        row = cursor.fetchone()
        return row[0] if row else None

    def lengths(self) -> dict[int, int]:
        """Number of replies by length in bytes."""
        query = "SELECT length(reply), count(*) FROM replies GROUP BY 1"
        return dict(self._database.execute(query).fetchall())

    def tables(self, low: str, high: str) -> Iterator[pa.Table]:
        """The replies to a range of questions by key, in tables of a few megabytes."""
        bounds = bytes.fromhex(low.ljust(32, "0")), bytes.fromhex(high.ljust(32, "f"))
        query = "SELECT * FROM replies WHERE key BETWEEN ? AND ? ORDER BY key"
        rows: list[tuple[Any, ...]] = []
        size = 0
        for row in self._database.execute(query, bounds):
            rows.append(row)
            size += len(row[1])
            if len(rows) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield _table(rows)
                rows, size = [], 0
        if rows:
            yield _table(rows)


def _keys(column: pa.FixedSizeBinaryArray) -> Keys:
    return np.frombuffer(column.buffers()[1], "S16")[column.offset :][: len(column)]


def _table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(one, of.type) for one, of in zip(columns, LOGGED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=LOGGED).cast(SCHEMA)


@contextmanager
def _database_errors() -> Iterator[None]:
    with temporary_file():
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(str(error)) from error


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
    reply_files = [file for file in reply_files if file.path not in report.damaged]
    with ExitStack() as locks:
        logs = list(_removable_logs(files, reply_files, own_logs, locks))
        sources = [*logs, *_tables_to_merge(reply_files, wanted, bool(logs), report)]
        if not sources:
            return
        index = ReplyIndex(WantedReply(since=wanted.since))
        try:
            complete = read_all(files, sources, index, report)
            write(files, sources[0].folder, index, wanted.low, wanted.high)
        finally:
            index.close()
        files.side_by_side(files.discard, complete)


def _removable_logs(
    files: Files, reply_files: Sequence[ReplyFile], own_logs: Collection[str], locks: ExitStack
) -> Iterator[ReplyFile]:
    """The logs that may be merged: in a folder, its own and those of dead writers."""
    logs = [file for file in reply_files if file.is_log]
    if files.local is None:
        yield from logs
        return
    for log_file in logs[:_MOST_LOGS]:
        if log_file.path in own_logs or locks.enter_context(try_lock(files.local / log_file.path)):
            yield log_file


def _tables_to_merge(
    reply_files: Sequence[ReplyFile], wanted: WantedReply, another: bool, report: ScanReport
) -> Iterator[ReplyFile]:
    """The Parquet files to merge; with `another`, the logs will add one file."""
    tables = [file for file in reply_files if not file.is_log]
    inside = [table for table in tables if wanted.low <= table.low and table.high <= wanted.high]
    beyond = [table for table in tables if table not in inside]
    for group, more in ((inside, another), (beyond, False)):
        small = [one for one in group if one.size < FULL]
        due = len(small) + more > MOST_FILES
        yield from (one for one in group if one.path in report.expired or (due and one.size < FULL))
