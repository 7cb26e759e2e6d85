"""Judgements: every usable reply, kept so that it is never paid for twice.

    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.parquet     sorted by key
    judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.jsonl       journal of a run at work,
                                                                     or killed

Keys begin with the hash of the row's question, as shards do, so a part reads only the files of
its own prompts whose range LOW-HIGH meets its own. Replies are journalled as they come: `keep`
returns when the reply is durable, and its request counts as in flight until then. So a killed run
repeats no request beyond those in flight. At the end of a part its journals become one Parquet
file, and many Parquet files one.
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
"""The prompt under which vectors are kept."""
_DAY = 86_400 * 1_000_000


class ReplyCache:
    """The judgements of one judge in one range of keys, for one writer at a time.

    Several writers may share a folder: each has files of its own. `prompts` names those whose
    replies are read, None: all. Replies older than `ttl_days` are not found.
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
        self._known = ReplyIndex(self._wanted)
        self._journals: dict[str, WriteAheadLog] = {}
        self._written: set[str] = set()
        self._seen = ScanReport()
        self._preparing: asyncio.Task[None] | None = None

    def load(self, questions: Collection[str] | None = None) -> None:
        """Read what is known in this range, of some questions (their keys) or of all.

        Damaged files are left aside with a warning. Raises StoreError.
        """
        hashes = None
        if questions is not None:
            hashes = np.unique(np.array([int(one[:8], 16) for one in questions], np.uint32))
        wanted = WantedReply(self._wanted.low, self._wanted.high, self._wanted.since, hashes)
        self._known.close()
        self._known = ReplyIndex(wanted)
        done: set[str] = set()
        missed: set[str] = set()
        # Others merge files meanwhile: what is gone is in a file that was not there before. Done
        # when a listing, made after all was read, has nothing new.
        while new := [one for one in self._listed() if one.path not in done]:
            if {one.path for one in new} == missed:
                for path in sorted(missed):
                    log.warning("%s is listed, but cannot be found", self._files.uri(path))
                break
            done.update(read_all(self._files, new, self._known, self._seen))
            done |= self._seen.damaged
            missed = {one.path for one in new} - done
        self._known.settle()

    def find(self, key: str) -> str | None:
        """The kept reply to a request; what is no text answers nothing."""
        data = self._known.find(bytes.fromhex(key))
        try:
            return None if data is None else data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return None

    def vector_sizes(self) -> Counter[int]:
        """How many kept vectors there are of each size, in numbers."""
        sizes = self._known.lengths()
        return Counter(
            {size // 4: times for size, times in sizes.items() if size and size % 4 == 0}
        )

    def find_vector(self, key: str) -> Vector | None:
        """The kept vector of a text, to the last bit of the float32 numbers that were kept; what
        is no vector is none.
        """
        data = self._known.find(bytes.fromhex(key))
        return np.frombuffer(data, "<f4") if data and len(data) % 4 == 0 else None

    async def prepare(self) -> None:
        """Called before anything is asked: what cannot be kept is not to be paid for.

        Raises StoreError where nothing can be written.
        """
        if self._preparing is None:
            check = asyncio.to_thread(self._files.check_writable, self._folder)
            self._preparing = asyncio.create_task(check)
        if self._preparing.done() and not self._preparing.exception():
            return
        try:
            await asyncio.shield(self._preparing)
        except StoreError as error:  # those who wait must not share a traceback
            raise copy.copy(error) from error.__cause__

    async def keep(self, judgement: CachedReply) -> None:
        """Make a reply durable; returns when it is. Raises StoreError."""
        key = bytes.fromhex(judgement.key)
        if len(key) != 16 or not self._wanted.low <= judgement.key[:8] <= self._wanted.high:
            raise ValueError(f"{judgement.key}: no key of this range")
        await self._journal(judgement.prompt).append(judgement.line(_now()))
        self._known.put(key, judgement.data)

    def _journal(self, prompt: str) -> WriteAheadLog:
        journal = self._journals.get(prompt)
        if journal is None or journal.broken:
            if journal:
                self._written.update(journal.close())
            journal = self._journals[prompt] = self._new_journal(self._prompt_folder(prompt))
        return journal

    def _new_journal(self, folder: str) -> WriteAheadLog:
        def name() -> str:
            return new_name(folder, self._wanted.low, self._wanted.high, "jsonl")

        if self._files.local:
            return FileWriteAheadLog(self._files.local, name())
        return BucketWriteAheadLog(self._files, name)

    def compact(self) -> None:
        """Make the journals, a killed run's among them, and many small files into one of each
        prompt; drop what has expired. Raises StoreError.
        """
        for journal in self._journals.values():
            self._written.update(journal.close())
        written, self._journals = list(self._journals), {}
        found = self._listed(written)
        for _, kept in groupby(found, key=lambda one: one.folder):
            compact(self._files, list(kept), self._written, self._wanted, self._seen)
        self._written = set()

    def close(self) -> None:
        """Give back files that are open; what was kept stays kept, and nothing more is found."""
        for journal in self._journals.values():
            self._written.update(journal.close())
        self._journals = {}
        self._known.close()

    def _listed(self, more: Sequence[str] = ()) -> list[ReplyFile]:
        folders = [self._folder]
        if self._prompts is not None:
            folders = [self._prompt_folder(one) for one in sorted(self._prompts | set(more))]
        return listed(self._files, folders, self._wanted.low, self._wanted.high, self._seen)

    def _prompt_folder(self, prompt: str) -> str:
        return f"{self._folder}/prompt={quote(prompt, safe='')}"


def _now() -> int:
    return time.time_ns() // 1_000
