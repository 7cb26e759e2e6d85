"""Removes what `prune` found, and logs it first: `prune/2026-11-22T030000.104233Z-0001.jsonl`.

Each line of a log names a file with its size, its ETag (in a folder the time of writing) and, in a
versioned bucket, its version. The log of some files is written before they are removed. So it names
every file that was removed, whenever the removal stops; files that it names may still be there.

Just before its removal each file is looked at again. A file that changed since it was listed stays,
and so does an unfinished run that has a manifest or a new file by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import count

from ragmetrics.dashboard import refresh_builds
from ragmetrics.pipeline.retention import UNFINISHED, PrunePlan
from ragmetrics.pipeline.store_references import IN_PROGRESS, RunKey, run_key
from ragmetrics.storage import FileInfo, Files, RunRef

FOLDER = "prune"
_AT_ONCE = 500
"""Files per log: a removal that stops has logged at most so many files that are still there."""

_RESOLUTION = 2.0
"""Seconds by which two times of one write may differ."""


@dataclass(frozen=True)
class Removed:
    """How many files were removed, and the logs that name them."""

    files: int
    left: int
    """Files that changed since they were listed, and stay."""
    logs: tuple[str, ...]


def prune(
    files: Files, plan: PrunePlan, tell: Callable[[int, int], None] = lambda *_: None
) -> Removed:
    """Log and remove the files of a plan, and write the overview again.

    `tell` receives the number of files that were looked at, and of all files. A repeated call with
    a new plan continues. Raises StoreError; where the log cannot be written, nothing is removed.
    """
    todo, begun, removed = plan.files, datetime.now(UTC), 0
    logs: list[str] = []
    numbers = count(1)
    for start in range(0, len(todo), _AT_ONCE):
        listed = todo[start : start + _AT_ONCE]
        unchanged = [
            info for info in files.side_by_side(partial(_unchanged, files), listed) if info
        ]
        if unchanged:
            logs.append(_log(files, begun, len(logs) + 1, unchanged))
        removed += _remove(files, unchanged, plan, lambda: tell(next(numbers), len(todo)))
    tell(len(todo), len(todo))
    if removed:
        refresh_builds(files)
    return Removed(removed, len(todo) - removed, tuple(logs))


def _remove(
    files: Files, infos: Sequence[FileInfo], plan: PrunePlan, tell: Callable[[], None]
) -> int:
    """Remove files, but none of an unfinished run that was resumed; return their number."""
    unfinished, idle, removed = plan.paths(UNFINISHED), dict[RunKey, bool](), 0
    for info in infos:
        key = run_key(info.path) if info.path in unfinished else None
        if key and key not in idle:
            idle[key] = _is_idle(files, key, plan.at - IN_PROGRESS)
        if key is None or idle[key]:
            files.remove(info.path)
            removed += 1
        tell()
    return removed


def _unchanged(files: Files, listed: FileInfo) -> FileInfo | None:
    """A file as it is now; None where it is gone, or is not as it was listed."""
    now = files.info(listed.path)
    if now is None or now.size != listed.size:
        return None
    same = now.version == listed.version or not listed.version
    # The times are compared as well, since equal content has an equal ETag. They may differ by
    # a rounding: the answer about one file has whole seconds, a listing has fractions.
    times = [info.modified for info in (now, listed) if info.modified is not None]
    return now if same and max(times, default=0.0) - min(times, default=0.0) < _RESOLUTION else None


def _is_idle(files: Files, key: RunKey, since: datetime) -> bool:
    """Whether a run still has no manifest, and none of its files changed since a moment."""
    ref = RunRef(date=key.night, run=key.run, shards=1)
    if files.exists(ref.manifest):
        return False
    infos = [info for kind in ("rows", "scores") for info in files.below(ref.folder(kind))]
    return all(info.modified is not None and info.modified < since.timestamp() for info in infos)


def _log(files: Files, begun: datetime, number: int, infos: Sequence[FileInfo]) -> str:
    """Write the log of some files; return its path."""
    path = f"{FOLDER}/{begun:%Y-%m-%dT%H%M%S.%fZ}-{number:04d}.jsonl"
    lines = []
    for info in infos:
        entry = {"path": info.path, "size": info.size, "version": info.version}
        entry |= {"version_id": info.version_id} if info.version_id else {}
        lines.append(f"{json.dumps(entry)}\n")
    files.write(path, "".join(lines).encode())
    return path
