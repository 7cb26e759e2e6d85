"""Scores parts in parallel, with several processes when the judge computes on this machine.

One event loop keeps a remote judge busy. A local judge needs one process per core. Workers write
their parts into the store and return only errors. They end when the process that started them ends.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from types import ModuleType
from typing import ParamSpec, Protocol, TypeVar

from ragmetrics.errors import JudgeRefused, RagmetricsError, WorkerDied
from ragmetrics.scoring.garbage import collect_seldom
from ragmetrics.scoring.part import Done, Part

FEWEST_ROWS = 1_000
"""A worker takes two seconds to start. With fewer rows one process is faster."""

_DIED = (
    "a worker process died, perhaps because memory ran out; finished parts are stored; run again "
    "with fewer `workers:` in the settings"
)

P = ParamSpec("P")

T = TypeVar("T")


class _PartScorer(Protocol):
    """Does something with one part of a run, and stores the result."""

    def score(self, names: Sequence[str], shard: int) -> object: ...


def score_in_processes(
    scorer: _PartScorer, todo: Sequence[Part], workers: int, rows: int, done: Done | None = None
) -> list[RagmetricsError]:
    """Score the parts of so many rows by worker processes, or here where these would not pay.

    Returns the errors of parts that could not be scored.
    """
    processes = min(workers, len(todo))
    # A daemon cannot start processes.
    if processes < 2 or rows < FEWEST_ROWS or current_process().daemon:
        return score_here(scorer, todo, done)
    return _score_by_workers(scorer, todo, processes, done)


def score_here(
    scorer: _PartScorer, todo: Sequence[Part], done: Done | None
) -> list[RagmetricsError]:
    """Score parts one by one. Returns the errors of parts that could not be scored."""
    problems: list[RagmetricsError] = []
    for family, shard in todo:
        try:
            scorer.score(family, shard)
        except JudgeRefused:
            raise
        except RagmetricsError as error:
            problems.append(error)
        if done:
            done(family)
    return problems


def _score_by_workers(
    scorer: _PartScorer, todo: Sequence[Part], processes: int, done: Done | None
) -> list[RagmetricsError]:
    problems: list[RagmetricsError] = []
    queue = _LongestFirst(todo)
    work = partial(_score, scorer)
    try:
        with _workers(processes) as pool:
            for part, future in _run_parts(pool, queue, work, processes):
                try:
                    queue.took(part, future.result())
                except JudgeRefused:
                    raise
                except RagmetricsError as error:
                    problems.append(error)
                if done:
                    done(part[0])
    except BrokenProcessPool as error:
        problems.append(WorkerDied(f"{_DIED} ({error})"))
    return problems


def _run_parts(
    pool: _Pool, queue: _LongestFirst, work: Callable[[Sequence[str], int], float], processes: int
) -> Iterator[tuple[Part, Future[float]]]:
    """Run the parts, one at a time in each process, and return them as they finish."""
    running: dict[Future[float], Part] = {}
    while True:
        while len(running) < processes and (part := queue.take()):
            running[pool.submit(work, *part)] = part
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future


class _LongestFirst:
    """A queue of parts. Families that have taken longest go first, so that no long part is left for
    the end. A family that has not run yet goes before all others.
    """

    def __init__(self, todo: Sequence[Part]) -> None:
        self._shards: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
        for family, shard in todo:
            self._shards[tuple(family)].append(shard)
        self._seconds: dict[tuple[str, ...], float] = {}
        self._begun: set[tuple[str, ...]] = set()

    def take(self) -> Part | None:
        """The next part; None when the queue is empty."""
        left = [family for family, shards in self._shards.items() if shards]
        if not left:
            return None
        family = max(left, key=lambda one: (one not in self._begun, self._seconds.get(one, 0.0)))
        self._begun.add(family)
        return family, self._shards[family].popleft()

    def took(self, part: Part, seconds: float) -> None:
        """Record how long a part took."""
        family = tuple(part[0])
        self._seconds[family] = max(seconds, self._seconds.get(family, 0.0))


@contextmanager
def _workers(processes: int) -> Iterator[_Pool]:
    """A pool of worker processes. An error in the block ends them at once."""
    context = get_context("spawn")  # forking a process with threads may hang
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragmetrics-workers-"))
        alive, ours = context.Pipe(duplex=False)
        stack.callback(alive.close)
        stack.callback(ours.close)
        pool = stack.enter_context(_Pool(processes, context, _start_worker, (alive, folder)))
        try:
            yield pool
        except BaseException:
            ours.close()
            raise


class _Pool(ProcessPoolExecutor):
    """Starts its processes without the main module of this process.

    Otherwise each worker would run a script without `if __name__ == "__main__":` again.
    """

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue the work, and start a worker if fewer than the maximum are running."""
        with _starting:
            ours = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return super().submit(work, *args, **kwargs)
            finally:
                sys.modules["__main__"] = ours


_starting = threading.Lock()


def _start_worker(alive: Connection, folder: str) -> None:
    """Initialise a worker process."""
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    tempfile.tempdir = folder  # the parent removes it, also when a worker is killed
    threading.Thread(target=_exit_with_parent, args=(alive,), daemon=True).start()


def _exit_with_parent(alive: Connection) -> None:
    """Exit when the parent closes the other end of the pipe, which `kill -9` does too."""
    try:
        alive.recv()
    except (EOFError, OSError):
        os._exit(1)


def _score(scorer: _PartScorer, family: Sequence[str], shard: int) -> float:
    """Score one part in a worker. Returns the seconds it took."""
    start = time.monotonic()
    scorer.score(family, shard)
    return time.monotonic() - start
