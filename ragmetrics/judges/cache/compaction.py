"""Compaction: merges many small files of replies into one, and drops expired replies.

The merged file is written before its sources are removed. So no reply is lost when a process dies,
or when two processes compact at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from ragmetrics.judges.cache.reply_files import FULL, ReplyFile, ScanReport, read_all, write
from ragmetrics.judges.cache.reply_index import ReplyIndex, WantedReply
from ragmetrics.judges.cache.write_ahead_log import try_lock
from ragmetrics.storage import Files, remove_file

MOST_FILES = 8
"""Most Parquet files inside a range, and most that reach beyond it; more are merged into one."""
_MOST_LOGS = 256
_AT_ONCE = 16


def compact(
    files: Files,
    reply_files: Sequence[ReplyFile],
    own_logs: Collection[str],
    wanted: WantedReply,
    report: ScanReport,
) -> None:
    """Compact the files of one prompt that overlap the wanted range.

    `mine` are this writer's own logs. Only files that can be removed are read, and only files that
    were read completely are removed.
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
