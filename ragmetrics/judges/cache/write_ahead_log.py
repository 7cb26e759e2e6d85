"""Write-ahead logs: the replies of a running or killed run, one line of JSON each.

In a folder a writer has one log per prompt, and appends each reply with one write of 10 to 20
microseconds. The writer holds a lock (flock) on the file while it lives; others may remove the log
when the lock is free. Without such locks (Windows, some network shares) only the writer removes
its log; the log of a killed run stays and is read.
A bucket cannot append: replies that wait together are written as one object. It never changes, so
any process that has copied it may remove it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import os
import shutil
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ragmetrics.errors import StoreError
from ragmetrics.judges.cache.reply_index import SCHEMA
from ragmetrics.model import Vector
from ragmetrics.storage import Files

log = logging.getLogger(__name__)

_KEY = 16
_INT32 = 1 << 31
_LINES = 4_096


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


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return round(moment.timestamp() * 1e6)


def read_lines(lines: Iterable[bytes]) -> Iterator[pa.Table]:
    """Tables of a log's replies. Raises ValueError at the end if there are damaged lines.

    The last line of a killed writer may be incomplete: that reply was not durable yet.
    """
    records: list[tuple[bytes, bytes, int, int, int]] = []
    damaged = 0
    for line in lines:
        try:
            records.append(_record(json.loads(line)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            damaged += line.endswith(b"\n")
        if len(records) == _LINES:
            yield _table(records)
            records = []
    yield _table(records)
    if damaged:
        raise ValueError(f"{damaged} of its lines are not replies")


def _record(line: Any) -> tuple[bytes, bytes, int, int, int]:
    tokens = _count(line["prompt_tokens"]), _count(line["completion_tokens"])
    at = line["judged_at"]
    key = bytes.fromhex(line["key"])
    if not (len(key) == _KEY and type(at) is int and abs(at) < 1 << 62):
        raise ValueError("not a reply")
    return key, _reply(line), *tokens, at


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


def _table(records: list[tuple[bytes, bytes, int, int, int]]) -> pa.Table:
    columns = zip(*records, strict=True) if records else ([] for _ in SCHEMA)
    arrays = [
        pa.array(list(values), pa.int64() if pa.types.is_timestamp(field.type) else field.type)
        for field, values in zip(SCHEMA, columns, strict=True)
    ]
    arrays[-1] = arrays[-1].cast(SCHEMA[-1].type)
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


class WriteAheadLog(Protocol):
    """Log of one writer for one prompt."""

    broken: bool
    """Whether a write failed: the last line may be incomplete, so no other may follow."""

    async def append(self, line: bytes) -> None:
        """Append a line; return when it is durable. Raises StoreError."""
        ...

    def close(self) -> list[str]:
        """Close it; return the paths that were written. Raises StoreError."""
        ...


class FileWriteAheadLog:
    """A file that its writer appends to and locks."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder, self._path, self._uri = folder, path, str(folder / path)
        with _as_store_error(self._uri):
            self._handle = _open_new(folder / path)
        self._close = weakref.finalize(self, os.close, self._handle)
        self.broken = False

    async def append(self, line: bytes) -> None:
        """Append by one write; after it, a kill of this process does not lose the line."""
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
        self._path = f"{start}.{_unique()}.jsonl"
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


def lock(handle: int) -> bool:
    """Lock an open file; False if another process holds it, or if there are no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


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


def new_name(folder: str, low: str, high: str, kind: str) -> str:
    """A unique path."""
    return f"{folder}/{low}-{high}.{_unique()}.{kind}"


def _unique() -> str:
    return uuid.uuid4().hex[:12]


@contextmanager
def _as_store_error(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"writing {uri}: {error}", transient=True) from error
