"""Compaction: many small files of judgements become one, and what has expired is dropped.

The new file is written first, then those that it stands for are removed; so nothing is lost,
whoever dies, and whoever else does the same at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from ragmetrics.judges.cache.reply_files import FULL, ReplyFile, ScanReport, read_all, write
from ragmetrics.judges.cache.reply_index import ReplyIndex, WantedReply
from ragmetrics.judges.cache.write_ahead_log import held
from ragmetrics.storage import Files, remove_file

MOST_FILES = 8
"""Parquet files in a range, and as many that reach beyond it; where there are more, they become
one.
"""
_MOST_JOURNALS = 256
_AT_ONCE = 16


def compact(
    files: Files,
    kept: Sequence[ReplyFile],
    mine: Collection[str],
    wanted: WantedReply,
    seen: ScanReport,
) -> None:
    """Compact the files of one prompt that meet the wanted range; `mine` are journals to take.

    Reads only what it can remove, and removes only what it has read whole.
    """
    kept = [one for one in kept if one.path not in seen.damaged]
    with ExitStack() as locks:
        journals = list(_free(files, kept, mine, locks))
        sources = [*journals, *_due(kept, wanted, bool(journals), seen)]
        if not sources:
            return
        gathered = ReplyIndex(WantedReply(since=wanted.since))
        try:
            whole = read_all(files, sources, gathered, seen)
            gathered.settle()
            write(files, sources[0].folder, gathered, wanted.low, wanted.high)
        finally:
            gathered.close()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(partial(remove_file, files), whole))


def _free(
    files: Files, kept: Sequence[ReplyFile], mine: Collection[str], locks: ExitStack
) -> Iterator[ReplyFile]:
    """The journals that may be taken: in a folder, those whose writer lives are its own."""
    journals = [one for one in kept if one.is_journal]
    if files.local is None:
        yield from journals
        return
    for one in journals[:_MOST_JOURNALS]:
        if one.path in mine or locks.enter_context(held(files.local / one.path)):
            yield one


def _due(
    kept: Sequence[ReplyFile], wanted: WantedReply, another: bool, seen: ScanReport
) -> Iterator[ReplyFile]:
    """The Parquet files to merge, where the journals make `another` or not."""
    tables = [one for one in kept if not one.is_journal]
    inside = [one for one in tables if wanted.low <= one.low and one.high <= wanted.high]
    beyond = [one for one in tables if one not in inside]
    for group, more in ((inside, another), (beyond, False)):
        small = [one for one in group if one.size < FULL]
        due = len(small) + more > MOST_FILES
        yield from (one for one in group if one.path in seen.expired or (due and one.size < FULL))
