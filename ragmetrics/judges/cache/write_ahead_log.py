"""Journals: the replies of a run at work, or of one that was killed, one line of JSON each.

In a folder a writer has one journal per prompt and appends to it by one write a reply, 10 to
20 microseconds. It holds the file's lock (flock) as long as it lives, so another knows whether it
may take the journal away. A system without such locks (Windows, some network shares) cannot tell:
there a journal is taken away by its writer alone, and that of a killed run stays and is read.
In a bucket, which cannot append, replies that wait together are put as one journal; it never
changes, so whoever has copied it may remove it.
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
    """A reply worth keeping; its key is 32 hex digits, the first 8 those of the question."""

    key: str
    prompt: str
    reply: str | Vector
    prompt_tokens: int = 0
    completion_tokens: int = 0
    judged_at: datetime | None = None
    """None: now."""

    @property
    def data(self) -> bytes:
        """The reply as it is kept."""
        if isinstance(self.reply, str):
            return self.reply.encode("utf-8", "surrogatepass")
        return np.asarray(self.reply, dtype="<f4").tobytes()

    def line(self, now: int) -> bytes:
        """The judgement as a line of a journal; `now` in microseconds since 1970."""
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
    """Since 1970."""
    return round(moment.timestamp() * 1e6)


def read_lines(lines: Iterable[bytes]) -> Iterator[pa.Table]:
    """Tables of a journal's judgements; raises ValueError at the end if lines of it are none.

    The last line may be torn, where its writer was killed: that reply was not kept yet.
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
        raise ValueError(f"{damaged} of its lines are no judgements")


def _record(line: Any) -> tuple[bytes, bytes, int, int, int]:
    tokens = _count(line["prompt_tokens"]), _count(line["completion_tokens"])
    at = line["judged_at"]
    key = bytes.fromhex(line["key"])
    if not (len(key) == _KEY and type(at) is int and abs(at) < 1 << 62):
        raise ValueError("no judgement")
    return key, _reply(line), *tokens, at


def _count(tokens: int) -> int:
    """A number of tokens as the files hold it: a server's nonsense must not cost the reply."""
    if type(tokens) is not int:
        raise TypeError("no number of tokens")
    return tokens if 0 <= tokens < _INT32 else 0


def _reply(line: Any) -> bytes:
    if "reply" in line:
        reply = line["reply"]
        if not isinstance(reply, str):
            raise TypeError("no reply")
        return reply.encode("utf-8", "surrogatepass")
    vector = base64.b64decode(line["vector"], validate=True)
    if len(vector) % 4:
        raise binascii.Error("no vector")
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
    """One writer's journal of one prompt."""

    broken: bool
    """Whether a write failed half-way: its last line may be torn, so no other may follow."""

    async def append(self, line: bytes) -> None:
        """Make a line durable; returns when it is. Raises StoreError."""
        ...

    def close(self) -> list[str]:
        """End it; the paths of what was written. Raises StoreError."""
        ...


class FileWriteAheadLog:
    """A file that grows, locked by its writer."""

    def __init__(self, folder: Path, path: str) -> None:
        self._folder, self._path, self._uri = folder, path, str(folder / path)
        with _told(self._uri):
            self._handle = _open_new(folder / path)
        self._close = weakref.finalize(self, os.close, self._handle)
        self.broken = False

    async def append(self, line: bytes) -> None:
        """One write, by the time it returns safe from a kill of this process."""
        try:
            with _told(self._uri):
                written = os.write(self._handle, line)
        except StoreError:
            self.broken = True
            raise
        if written < len(line):
            self.broken = True
            raise StoreError(f"writing {self._uri}: no space left", transient=True)

    def close(self) -> list[str]:
        """Unlock it; where somebody took it away meanwhile, write again what it held."""
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
        """Only its writer takes a journal away: without it, replies that were paid for are lost.

        What was removed can be read as long as it is open.
        """
        removed, start = self._uri, self._path.rsplit(".", 2)[0]
        self._path = f"{start}.{_unique()}.jsonl"
        self._uri = str(self._folder / self._path)
        os.lseek(self._handle, 0, os.SEEK_SET)
        with _told(self._uri):
            handle = _open_new(Path(self._uri))
            with os.fdopen(handle, "wb") as copy, os.fdopen(os.dup(self._handle), "rb") as held:
                shutil.copyfileobj(held, copy)
        log.warning("%s was removed while it was written: its replies are kept anew", removed)


class BucketWriteAheadLog:
    """Objects, each of the lines that waited together."""

    broken = False

    def __init__(self, files: Files, name: Callable[[], str]) -> None:
        self._files, self._name = files, name
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._paths: list[str] = []

    async def append(self, line: bytes) -> None:
        """Wait until an object holds the line."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((line, future))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_waiting())
        await future

    async def _write_waiting(self) -> None:
        """Put all that wait as one object; whoever comes meanwhile goes in the next one."""
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
        """Nothing is open; the objects written."""
        paths, self._paths = self._paths, []
        return paths


def _open_new(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
    if sys.platform == "win32":
        return os.open(path, flags, 0o644)
    # Nobody sees it before it is locked.
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
    """Lock an open file for good; False where another holds it, or where there are no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Whether a journal's writer is dead; while this lasts, nobody else finds so."""
    handle = -1
    with suppress(OSError):
        # Network shares lock for writing only what is open for writing.
        handle = os.open(path, os.O_RDWR)
    try:
        yield handle >= 0 and lock(handle)
    finally:
        if handle >= 0:
            os.close(handle)


def new_name(folder: str, low: str, high: str, kind: str) -> str:
    """A path that no other writer takes."""
    return f"{folder}/{low}-{high}.{_unique()}.{kind}"


def _unique() -> str:
    return uuid.uuid4().hex[:12]


@contextmanager
def _told(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"writing {uri}: {error}", transient=True) from error
