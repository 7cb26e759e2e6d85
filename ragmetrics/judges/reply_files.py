"""Files of cached replies: names, write-ahead logs, and sorted Parquet files.

    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.parquet     sorted by key
    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.jsonl       write-ahead log of a running
                                                                     or killed run, lines of JSON

Files never change, except the log of an active writer. A file is removed only after its replies
are in another one. So a reader that has read all listed files has read all replies.

In a folder a writer has one log per prompt, and appends each reply with one write of 10 to 20
microseconds. The writer holds a lock (flock) on the file while it lives; others may remove the log
when the lock is free. Without such locks (Windows, some network shares) only the writer removes
its log; the log of a killed run stays and is read.
A bucket cannot append: replies that wait together are written as one object. It never changes, so
any process that has copied it may remove it.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import shutil
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ragmetrics.errors import StoreError
from ragmetrics.judges.reply_tables import (
    WantedReply,
    newest_reply,
    read_lines,
    read_table,
    unique_id,
)
from ragmetrics.storage import FileInfo, Files, lock

if TYPE_CHECKING:
    from ragmetrics.judges.reply_cache import ReplyIndex

log = logging.getLogger(__name__)
_AT_ONCE = 16
_NAME = re.compile(r"(.+/prompt=[^/]+)/([0-9a-f]{8})-([0-9a-f]{8})\.[0-9a-f]+\.(parquet|jsonl)")
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, EOFError)


@dataclass(frozen=True, slots=True)
class ReplyFile:
    """One file of replies, as its name describes it."""

    path: str
    size: int
    folder: str
    low: str
    high: str
    kind: str

    @property
    def is_log(self) -> bool:
        """Whether it is a write-ahead log, not Parquet."""
        return self.kind == "jsonl"


@dataclass
class ScanReport:
    """Problems found while the files of a range were read."""

    damaged: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    expired: set[str] = field(default_factory=set)
    """Files with more than half of their replies expired."""


def listed(
    files: Files, folders: Sequence[str], low: str, high: str, report: ScanReport
) -> list[ReplyFile]:
    """The files whose range overlaps this one; other files are ignored with a warning."""
    listing = []
    for info in (info for folder in folders for info in files.below(folder)):
        if not info.size and not files.local:  # an empty object is a removed one
            continue
        if reply_files := _named(info):
            if reply_files.low <= high and low <= reply_files.high:
                listing.append(reply_files)
        elif info.path not in report.foreign:
            report.foreign.add(info.path)
            log.warning("%s is ignored: it is not a file of replies", files.uri(info.path))
    return listing


def outdated_replies(files: Files, before: datetime) -> Iterator[FileInfo]:
    """The files in which every reply was given before a moment, by the statistics of Parquet."""
    for info in files.below("judgements"):
        reply_file = _named(info)
        if reply_file is None or reply_file.is_log or not info.size:
            continue
        try:
            newest = newest_reply(files, reply_file.path)
        except pa.ArrowException:
            continue  # a damaged file, which the next night reports
        if newest is not None and newest < before:
            yield info


def _named(info: FileInfo) -> ReplyFile | None:
    parts = _NAME.fullmatch(info.path)
    return ReplyFile(info.path, info.size, *parts.groups()) if parts else None


def read_all(
    files: Files, reply_files: Sequence[ReplyFile], into: ReplyIndex, report: ScanReport
) -> list[str]:
    """Read the files into an index; return the paths of those that were read completely.

    Removed files are skipped, and damaged ones with a warning. Raises StoreError.
    """
    complete = []
    for reply_file, tables in _open_all(files, reply_files, into.wanted):
        try:
            expired = rows = 0
            for table in tables:
                expired, rows = expired + into.add(table), rows + len(table)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue
            raise
        except _UNREADABLE as error:
            report.damaged.add(reply_file.path)
            text = "%s is damaged (%s): it is ignored, and lost replies are requested again"
            log.warning(text, files.uri(reply_file.path), error)
            continue
        complete.append(reply_file.path)
        if 2 * expired > rows:
            report.expired.add(reply_file.path)
    return complete


def _open_all(
    files: Files, reply_files: Sequence[ReplyFile], wanted: WantedReply
) -> Iterator[tuple[ReplyFile, Iterator[pa.Table]]]:
    """Each file with its tables; logs in a bucket are small objects and read in parallel.

    Logs come first: the replies of a removed log are in a file of the next listing.
    """
    logs = [one for one in reply_files if one.is_log]
    if files.local:
        yield from ((one, _read_log(files, one)) for one in logs)
    else:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for start in range(0, len(logs), 4 * _AT_ONCE):
                some = logs[start : start + 4 * _AT_ONCE]
                reads = [pool.submit(copy_context().run, files.read, one.path) for one in some]
                yield from (
                    (log_file, _read_object(read))
                    for log_file, read in zip(some, reads, strict=True)
                )
    yield from ((one, read_table(files, one.path, wanted)) for one in reply_files if not one.is_log)


def _read_log(files: Files, log_file: ReplyFile) -> Iterator[pa.Table]:
    with files.open(log_file.path) as file:
        yield from read_lines(file)


def _read_object(read: Future[bytes]) -> Iterator[pa.Table]:
    yield from read_lines(io.BytesIO(read.result()))


class FileWriteAheadLog:
    """The log of one writer for one prompt: a file that its writer appends to and locks."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder, self._path, self._uri = folder, path, str(folder / path)
        with _as_store_error(self._uri):
            self._handle = _open_new(folder / path)
        self._close = weakref.finalize(self, os.close, self._handle)
        self.broken = False
        """Whether a write failed: the last line may be incomplete, so no other may follow."""

    async def append(self, line: bytes) -> None:
        """Append by one write; after it, a kill of this process does not lose the line.

        Raises StoreError.
        """
        try:
            with _as_store_error(self._uri):
                written = os.write(self._handle, line)
        except StoreError:
            self.broken = True
            raise
        if written < len(line):
            self.broken = True
            raise StoreError(f"writing {self._uri}: no space left", transient=True)

    def close(self) -> list[str]:
        """Unlock it; if another process removed it, write its content again."""
        if not self._close.alive:
            return [self._path]
        try:
            if not self._is_there():
                self._write_again()
        finally:
            self._close()
        return [self._path]

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(Path(self._uri).stat(), os.fstat(self._handle))
        except OSError:
            return False

    def _write_again(self) -> None:
        """Copy the content of the removed file, which can be read while it is open."""
        removed, start = self._uri, self._path.rsplit(".", 2)[0]
        self._path = f"{start}.{unique_id()}.jsonl"
        self._uri = str(self._folder / self._path)
        os.lseek(self._handle, 0, os.SEEK_SET)
        with _as_store_error(self._uri):
            handle = _open_new(Path(self._uri))
            with os.fdopen(handle, "wb") as copy, os.fdopen(os.dup(self._handle), "rb") as try_lock:
                shutil.copyfileobj(try_lock, copy)
        log.warning("%s was removed while it was open: its replies are written again", removed)


class BucketWriteAheadLog:
    """Objects; each holds the lines that waited together."""

    broken = False

    def __init__(self, files: Files, name: Callable[[], str]) -> None:
        self._files, self._name = files, name
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._paths: list[str] = []

    async def append(self, line: bytes) -> None:
        """Append a line; return when an object holds it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((line, future))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_waiting())
        await future

    async def _write_waiting(self) -> None:
        """Write the waiting lines as one object; later lines go in the next one."""
        while self._waiting:
            group, self._waiting = self._waiting, []
            path = self._name()
            error: Exception | None = None
            try:
                data = b"".join(line for line, _ in group)
                await asyncio.to_thread(self._files.write, path, data)
                self._paths.append(path)
            except Exception as raised:
                error = raised
            for _, future in group:
                if future.done():
                    continue
                if error:
                    future.set_exception(error)
                else:
                    future.set_result(None)

    def close(self) -> list[str]:
        """Return the paths of the objects; none is open."""
        paths, self._paths = self._paths, []
        return paths


def _open_new(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
    if sys.platform == "win32":
        return os.open(path, flags, 0o644)
    # Hidden until it is locked.
    hidden = path.with_name(f".{path.name}")
    handle = os.open(hidden, flags, 0o644)
    try:
        lock(handle)
        hidden.rename(path)
    except OSError:
        os.close(handle)
        hidden.unlink(missing_ok=True)
        raise
    return handle


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Try to lock a log: True if its writer is dead. The lock is held within the context."""
    handle = -1
    with suppress(OSError):
        # Network shares give write locks only on files that are open for writing.
        handle = os.open(path, os.O_RDWR)
    try:
        yield handle >= 0 and lock(handle)
    finally:
        if handle >= 0:
            os.close(handle)


@contextmanager
def _as_store_error(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"writing {uri}: {error}", transient=True) from error
