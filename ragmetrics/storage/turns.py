"""Locks on local files, and taking turns at work of which one store should have one at a time.

The system lets go of a lock when its process ends, however it ends. A bucket has no locks.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from ragmetrics.storage.files import Files
from ragmetrics.text import clean

_PAUSE = 0.5
"""Seconds between two looks at whether the other process has ended."""
_LONGEST = 200
log = logging.getLogger(__name__)


def lock(handle: int) -> bool:
    """Lock an open file; False if another process holds it, or if there are no locks."""
    with suppress(OSError):
        return _lock(handle)
    return False


def _lock(handle: int) -> bool:
    """Lock an open file; False if another process holds it. Raises OSError if it has no locks."""
    if sys.platform == "win32":
        raise OSError("no locks")
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def taking_turns(files: Files, work: str, what: str) -> Iterator[None]:
    """Run the body when no other process runs such work in this store, and say whom it waits for.

    `work` names the kind of work, and its hidden file; `what` is this work in words. In a bucket,
    and where a folder has no locks, the body runs at once.
    """
    handle = _open(files, work)
    try:
        if handle is not None:
            _wait(handle, files.uri(), what)
        yield
    finally:
        if handle is not None:
            with suppress(OSError):  # the next one to take its turn may have removed it
                _remove_unused(files, work)
            os.close(handle)


def _remove_unused(files: Files, work: str) -> None:
    """Remove a store's folder that holds nothing but the lock: the work wrote nothing."""
    folder = files.local
    if folder and [path.name for path in folder.iterdir()] == [_file(work)]:
        (folder / _file(work)).unlink(missing_ok=True)
        folder.rmdir()


def _file(work: str) -> str:
    return f".{work}.lock"


def _open(files: Files, work: str) -> int | None:
    """The open file of the lock; None where there is none."""
    if files.local is None or sys.platform == "win32":
        return None
    try:
        files.local.mkdir(parents=True, exist_ok=True)
        return os.open(files.local / _file(work), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:  # whatever is written next says so as an error
        log.warning("%s cannot be locked for one %s at a time: %s", files.uri(), work, error)
        return None


def _wait(handle: int, store: str, what: str) -> None:
    """Lock the file, and write into it who holds it."""
    told = False
    while not _is_ours(handle, store, what):
        if not told:
            holder = clean(os.pread(handle, _LONGEST, 0).decode("utf-8", "replace"), _LONGEST)
            log.warning("%s waits for %s, which runs in %s", what, holder or "another one", store)
        told = True
        time.sleep(_PAUSE)
    os.ftruncate(handle, 0)
    host = os.uname().nodename if sys.platform != "win32" else ""
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    os.pwrite(handle, f"{what} (process {os.getpid()} on {host}, since {now})".encode(), 0)


def _is_ours(handle: int, store: str, what: str) -> bool:
    """Whether this process has the lock, or can have none."""
    try:
        return _lock(handle)
    except OSError as error:
        log.warning("%s has no locks, so %s does not wait for others: %s", store, what, error)
        return True
