"""Reply cache: stores every usable reply, so that it is never paid for twice.

    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.parquet     sorted by key
    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.jsonl       write-ahead log of a running
                                                                     or killed run

A key begins with the hash of the row's question, as a shard does. So a part reads only the files
of its own prompts whose range LOW-HIGH overlaps its own. Each reply is logged when it comes: `add`
returns when the reply is durable; until then the request counts as in flight. So a killed run
repeats only the requests that were in flight. At the end of a part its logs become one Parquet
file, and many Parquet files are merged into one.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from urllib.parse import quote

import numpy as np

from ragmetrics.errors import StoreError
from ragmetrics.judges.cache.compaction import compact
from ragmetrics.judges.cache.reply_files import ReplyFile, ScanReport, listed, read_all
from ragmetrics.judges.cache.reply_index import ALWAYS, ReplyIndex, WantedReply
from ragmetrics.judges.cache.write_ahead_log import (
    BucketWriteAheadLog,
    CachedReply,
    FileWriteAheadLog,
    WriteAheadLog,
    new_name,
)
from ragmetrics.model import Vector
from ragmetrics.storage import Files

__all__ = ["EMBEDDING", "CachedReply", "ReplyCache"]

log = logging.getLogger(__name__)

EMBEDDING = "embedding"
"""Prompt name under which vectors are cached."""
_DAY = 86_400 * 1_000_000


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
        hashes = None
        if questions is not None:
            hashes = np.unique(np.array([int(one[:8], 16) for one in questions], np.uint32))
        wanted = WantedReply(self._wanted.low, self._wanted.high, self._wanted.since, hashes)
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
