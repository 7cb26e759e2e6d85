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
from dataclasses import replace
from datetime import datetime
from functools import partial
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from types import ModuleType
from typing import ParamSpec, Protocol, TypeVar

from ragmetrics.config import Settings
from ragmetrics.errors import JudgeRefused, RagmetricsError
from ragmetrics.scoring.cheap_part import CheapRunScorer
from ragmetrics.scoring.garbage import collect_seldom
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.part import Done, Part, Record, RunScorer
from ragmetrics.scoring.staging import Staged
from ragmetrics.storage import Files

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


class WorkerDied(RagmetricsError):
    """A worker process died during its work."""

    transient = True


def score_parts(
    settings: Settings,
    staged: Staged,
    todo: Sequence[Part],
    record: Record | None = None,
    done: Done | None = None,
    kept: Files | None = None,
    until: datetime | None = None,
) -> list[RagmetricsError]:
    """Score the parts of a run. Returns the errors of parts that could not be scored.

    `kept` is the store with the reply cache; None: the run's store. `record` works only in this
    process, so a local judge then gets no workers. After `until` no request is sent.
    Raises JudgeRefused when a local judge cannot run.
    """
    scorer = RunScorer(settings, staged.ref, record, kept, until)
    if any(one.remote for one in settings.panel) or settings.embedder.remote:
        return scorer.score_together(todo, done)
    judged = {metric.name for metric in chosen_metrics(settings) if metric.prompts}
    heavy = [part for part in todo if judged & set(part[0])]
    processes = min(settings.workers or cpu_count(), len(heavy))
    alone = record is not None or processes < 2 or staged.source.rows < FEWEST_ROWS
    if alone or current_process().daemon:  # a daemon cannot start processes
        return _score_here(scorer, todo, done)
    light = [part for part in todo if part not in heavy]
    problems = _score_here(scorer, light, done)
    return problems + _score_by_workers(replace(scorer, kept=None), heavy, processes, done)


def score_cheap_parts(
    settings: Settings, staged: Staged, wanted: Sequence[str], learned: str = ""
) -> None:
    """Compute and store the cheap scores of all rows for some metrics, before the draw.

    By several processes, as for a judge that computes on this machine. Parts that are stored are
    not computed again. `learned` is the path of the learned judge, if the night uses one. Raises
    the first error of a part.
    """
    scorer = CheapRunScorer(settings, staged.ref, learned)
    families = [[one for one in family if one in wanted] for family in score_families(settings)]
    todo = [(own, n) for own in families if own for n in range(staged.ref.shards)]
    processes = min(settings.workers or cpu_count(), len(todo))
    if processes < 2 or staged.source.rows < FEWEST_ROWS or current_process().daemon:
        problems = _score_here(scorer, todo, None)
    else:
        problems = _score_by_workers(scorer, todo, processes, None)
    for problem in problems:
        raise problem


def cpu_count() -> int:
    """The cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _score_here(
    scorer: _PartScorer, todo: Sequence[Part], done: Done | None
) -> list[RagmetricsError]:
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
    pool: _Pool,
    queue: _LongestFirst,
    work: Callable[[Sequence[str], int], float],
    processes: int,
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


def list_parts(settings: Settings, staged: Staged) -> list[tuple[list[str], int]]:
    """All parts of a run: each is a family of metrics and a shard."""
    return [
        (family, shard) for family in score_families(settings) for shard in range(staged.ref.shards)
    ]
