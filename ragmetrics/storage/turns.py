"""Locks on local files, and taking turns at work of which one store should have one at a time.

The system lets go of a lock when its process ends, however it ends. A bucket of S3 has no locks,
so a turn there is an object with a number, which is made only if it is absent, and renewed while
its owner works. The highest number counts, and is never removed: so of two that take the same turn
the slower one is refused, or finds a higher number. An owner is given up once nobody has renewed
its turn for a minute, as the one who waits counts it, so that clocks need not agree. An owner that
was suspended for longer goes on beside the next one: then both may pay for an equal request.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from ragmetrics.errors import StoreError
from ragmetrics.storage.files import Files
from ragmetrics.text import clean

_PAUSE = 0.5
"""Seconds between two looks at whether the other process has ended."""
_LOOKS = 120
"""Looks at a turn in a bucket that was not renewed, after which its owner counts as killed. Looks
are counted, not seconds: in an outage of the bucket neither owner nor waiter gets through."""
_RENEWED_EVERY = 10.0
"""Seconds between two renewals: an owner may miss four."""
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

    `work` names the kind of work, and its lock; `what` is this work in words. Where a folder has
    no locks, or a bucket does not refuse to overwrite, a warning says so and the body runs at once.
    """
    if files.root.startswith(("s3://", "s3a://")):
        turn = _take_turn(files.at(f"turns/{work}"), files.uri(), what)
        with _renewing(turn) if turn else nullcontext():
            yield
        return
    with _locked(files, work, what):
        yield


@contextmanager
def _locked(files: Files, work: str, what: str) -> Iterator[None]:
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
            _say_whom(os.pread(handle, _LONGEST, 0), store, what)
        told = True
        time.sleep(_PAUSE)
    os.ftruncate(handle, 0)
    os.pwrite(handle, _owner(what).encode(), 0)


def _owner(what: str) -> str:
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{what} (process {os.getpid()} on {socket.gethostname()}, since {now})"


def _say_whom(content: bytes, store: str, what: str) -> None:
    """Say for whom this work waits. The first line of a lock or turn names its owner."""
    line = content.decode("utf-8", "replace").partition("\n")[0]
    holder = clean(line, _LONGEST) or "another one"
    log.warning("%s waits for %s, which runs in %s", what, holder, store)


def _is_ours(handle: int, store: str, what: str) -> bool:
    """Whether this process has the lock, or can have none."""
    try:
        return _lock(handle)
    except OSError as error:
        log.warning("%s has no locks, so %s does not wait for others: %s", store, what, error)
        return True


@dataclass(frozen=True)
class _Turn:
    """A turn in a bucket. Its file is not empty until the work has ended."""

    files: Files
    path: str
    text: str

    def renew(self, ended: threading.Event) -> None:
        """Change the file from time to time, until the work has ended."""
        count = 0
        while not ended.wait(_RENEWED_EVERY):
            count += 1
            with suppress(StoreError):  # tried again; whatever the work writes says so as an error
                self.files.write(self.path, f"{self.text}\n{count}".encode())


@contextmanager
def _renewing(turn: _Turn) -> Iterator[None]:
    """Renew a turn while the body runs, then end it."""
    ended = threading.Event()
    thread = threading.Thread(target=turn.renew, args=(ended,), name="ragmetrics-turn", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # so that no renewal follows the end
        with suppress(StoreError):  # then the next one waits until this turn counts as given up
            turn.files.write(turn.path, b"")


def _take_turn(files: Files, store: str, what: str) -> _Turn | None:
    """Wait for a turn and take it; None if this bucket has none."""
    try:
        while True:
            number = _last_turn(files, store, what)
            turn = _Turn(files, _turn(number + 1), f"{_owner(what)}\n{uuid.uuid4()}")
            if not files.create(turn.path, turn.text.encode()):
                continue
            if files.create(turn.path, b"0"):
                files.discard(turn.path)
                problem = "the server overwrites what it is told not to"
                break
            numbers = _numbers(files)
            if max(numbers, default=0) > number + 1:  # others came and went meanwhile
                files.discard(turn.path)
                continue
            for old in numbers[:-1]:
                files.discard(_turn(old))
            return turn
    except StoreError as error:
        problem = str(error)
    log.warning("%s has no turns, so %s does not wait for others: %s", store, what, problem)
    return None


def _last_turn(files: Files, store: str, what: str) -> int:
    """The number of the last turn, once its owner has ended or is given up; 0 if there is none."""
    number, content, unchanged = 0, b"", 0
    while numbers := _numbers(files):
        last = (number, content)
        number = numbers[-1]
        content = files.find(_turn(number)) or b""
        if not content:
            break
        unchanged = unchanged + 1 if last == (number, content) else 0
        if number != last[0]:
            _say_whom(content, store, what)
        if unchanged >= _LOOKS:
            log.warning("%s does not wait longer: nobody has renewed that turn", what)
            break
        time.sleep(_PAUSE)
    return number


def _numbers(files: Files) -> list[int]:
    names = [info.path for info in files.below()]
    return sorted(int(name) for name in names if name.isdecimal())


def _turn(number: int) -> str:
    return f"{number:06d}"
