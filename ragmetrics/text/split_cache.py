"""Cache of split texts: in memory, and in a file shared by processes.

The file lives as long as a run. The cache is optional: a text that is not found is split again. Two
processes or threads that need a new text at the same time both split it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""pysbd's code of a language, and a text."""

_SHORTEST = 40
"""Characters; splitting a shorter text is about as fast as a look-up."""
_PATIENCE = 0.02
"""Seconds to wait for a writing process; less than splitting most texts takes."""
_TOGETHER = 64
"""Splits per transaction."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS splits (key BLOB PRIMARY KEY, split TEXT) WITHOUT ROWID"


class Split(NamedTuple):
    """The sentences of a text."""

    sentences: tuple[str, ...]
    reason: str | None
    """Why the plain splitter was used, if it was."""


class Recent:
    """LRU cache of the texts split in this process; thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Split, int]] = OrderedDict()
        self._held = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Split | None:
        """The split of a text, if it is cached."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Key, found: Split) -> None:
        """Add a split."""
        size = sum(map(sys.getsizeof, (key[1], found, *found.sentences)))
        with self._lock:
            if key in self._entries:  # another thread was faster
                return
            self._entries[key] = (found, size)
            self._held += size
            while self._held > self._limit:
                self._held -= self._entries.popitem(last=False)[1][1]


class SharedSplitCache:
    """The texts split by the processes of a run, in one SQLite file; thread-safe.

    No failure of the file fails a split: the first one is logged, and the text is split here; so
    it is, silently, where another process holds the file for too long.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        self._waiting: dict[bytes, str] = {}
        self._logged = self._closed = False

    def get(self, key: Key) -> Split | None:
        """The split of a text, if a process has stored it."""
        if len(key[1]) < _SHORTEST:
            return None
        try:
            found = self._find(_digest(key))
            return _unpacked(found, key[1]) if found else None
        except (sqlite3.Error, ValueError, TypeError) as error:
            self._tell(error)
            return None

    def put(self, key: Key, found: Split) -> None:
        """Store a split for all processes, in the next transaction or at the close."""
        if len(key[1]) < _SHORTEST:
            return
        with self._lock:
            if self._closed:
                return
            self._waiting[_digest(key)] = _packed(found, key[1])
            if len(self._waiting) >= _TOGETHER:
                self._write()

    def close(self) -> None:
        """Close the file for good; other threads may still use this object."""
        with self._lock:
            if self._waiting and not self._closed:
                self._write()
            self._closed = True
            if self._opened and self._opened[0] == os.getpid():
                self._opened[1].close()
            self._opened = None

    def _write(self) -> None:
        together, self._waiting = list(self._waiting.items()), {}
        try:
            with self._file() as file:
                file.execute("BEGIN")
                file.executemany("INSERT OR IGNORE INTO splits VALUES (?, ?)", together)
        except sqlite3.Error as error:
            self._tell(error)

    def _find(self, digest: bytes) -> str | None:
        with self._lock:
            if self._closed:
                return None
            if digest in self._waiting:
                return self._waiting[digest]
            command = "SELECT split FROM splits WHERE key = ?"
            found = self._file().execute(command, (digest,)).fetchone()
        return cast("str", found[0]) if found else None

    def _file(self) -> sqlite3.Connection:
        """The connection of this process: SQLite connections must not cross a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            file = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            # Deleted with the run: no need to survive a crash.
            file.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {_SCHEMA}")
            self._opened = (os.getpid(), file)
        return self._opened[1]

    def _tell(self, error: Exception) -> None:
        busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        if not (busy or self._logged):
            self._logged = True
            log.warning("sentences are not shared between processes: %s: %s", self.path, error)


@contextmanager
def splits_file() -> Iterator[Path]:
    """A path for the splits of one run, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-splits-") as folder:
        yield Path(folder) / "splits.sqlite"


def _digest(key: Key) -> bytes:
    code, text = key
    data = f"{code}\0{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()


def _packed(found: Split, text: str) -> str:
    """A split as JSON: the sentences as positions in the text, or as text if they are not in it."""
    places: list[int] = []
    end = 0
    for sentence in found.sentences:
        start = text.find(sentence, end)
        if start < 0:
            return json.dumps([found.reason, found.sentences])
        end = start + len(sentence)
        places += [start, end]
    return json.dumps([found.reason, places])


def _unpacked(packed: str, text: str) -> Split:
    reason, found = json.loads(packed)
    if found and isinstance(found[0], int):
        found = [text[start:end] for start, end in zip(found[::2], found[1::2], strict=True)]
    return Split(tuple(found), reason)
