"""Parts scored side by side: by several processes where the judge computes on this machine.

A judge elsewhere is kept busy by one event loop; one that computes here needs a process per core.
Workers write their parts into the store and give back nothing but errors. They end with the
process that started them, however it ends.
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
from datetime import datetime
from functools import partial
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar

from ragmetrics.config import Settings
from ragmetrics.errors import JudgeRefused, RagmetricsError
from ragmetrics.judges import Record
from ragmetrics.scoring.garbage import collect_seldom
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.part import score_part, score_together
from ragmetrics.scoring.staging import Staged
from ragmetrics.storage import Files, RunRef
from ragmetrics.text import sharing_splits

Part = tuple[Sequence[str], int]
"""The names of a family of metrics, and a shard."""
Done = Callable[[Sequence[str]], None]
"""Called after each part with its metrics' names."""

FEWEST_ROWS = 1_000
"""A worker takes two seconds to start: fewer rows are scored sooner without."""

_DIED = (
    "a worker process died, for lack of memory perhaps; what was finished is kept: run again, "
    "with fewer `workers:` in the settings"
)
P = ParamSpec("P")
T = TypeVar("T")


class WorkerDied(RagmetricsError):
    """A worker process came to an end in the middle of its work."""

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
    """Score the parts of a run; return why some of them could not be scored.

    `kept` has the judgements; None: the run's store. With `record`, which needs this process, a
    judge that computes is not given more of them. After `until` no judge is asked.
    Raises JudgeRefused where a judge that computes here cannot.
    """
    if any(one.remote for one in settings.panel) or settings.embeddings.name == "openai":
        return score_together(settings, staged.ref, todo, record, done, kept, until)
    judged = {metric.name for metric in chosen_metrics(settings) if metric.prompts}
    heavy = [part for part in todo if judged & set(part[0])]
    processes = min(settings.workers or cpu_count(), len(heavy))
    alone = record is not None or processes < 2 or staged.source.rows < FEWEST_ROWS
    if alone or current_process().daemon:  # which may have no children
        return _score_here(settings, staged.ref, todo, record, done, until)
    light = [part for part in todo if part not in heavy]
    problems = _score_here(settings, staged.ref, light, None, done, until)
    return problems + _score_by_workers(settings, staged.ref, heavy, processes, done, until)


def cpu_count() -> int:
    """The cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _score_here(
    settings: Settings,
    ref: RunRef,
    todo: Sequence[Part],
    record: Record | None,
    done: Done | None,
    until: datetime | None,
) -> list[RagmetricsError]:
    problems: list[RagmetricsError] = []
    for family, shard in todo:
        try:
            score_part(settings, ref, family, shard, record, until=until)
        except JudgeRefused:
            raise
        except RagmetricsError as error:
            problems.append(error)
        if done:
            done(family)
    return problems


def _score_by_workers(
    settings: Settings,
    ref: RunRef,
    todo: Sequence[Part],
    processes: int,
    done: Done | None,
    until: datetime | None,
) -> list[RagmetricsError]:
    problems: list[RagmetricsError] = []
    queue = _LongestFirst(todo)
    work = partial(_score, settings, ref, until)
    try:
        with _workers(processes) as pool:
            for part, future in _played(pool, queue, work, processes):
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


def _played(
    pool: _Pool,
    queue: _LongestFirst,
    work: Callable[[Sequence[str], int], float],
    processes: int,
) -> Iterator[tuple[Part, Future[float]]]:
    """The parts as they are done, one at a time in each process."""
    running: dict[Future[float], Part] = {}
    while True:
        while len(running) < processes and (part := queue.take()):
            running[pool.submit(work, *part)] = part
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future


class _LongestFirst:
    """The parts that wait. Those of the family that took longest go first, so that no long part
    is left for the end; a family of which nothing is known goes before all others.
    """

    def __init__(self, todo: Sequence[Part]) -> None:
        self._shards: dict[tuple[str, ...], deque[int]] = defaultdict(deque)
        for family, shard in todo:
            self._shards[tuple(family)].append(shard)
        self._seconds: dict[tuple[str, ...], float] = {}
        self._begun: set[tuple[str, ...]] = set()

    def take(self) -> Part | None:
        """The next part; None where there is none left."""
        left = [family for family, shards in self._shards.items() if shards]
        if not left:
            return None
        family = max(left, key=lambda one: (one not in self._begun, self._seconds.get(one, 0.0)))
        self._begun.add(family)
        return family, self._shards[family].popleft()

    def took(self, part: Part, seconds: float) -> None:
        """Learn how long a part took."""
        family = tuple(part[0])
        self._seconds[family] = max(seconds, self._seconds.get(family, 0.0))


@contextmanager
def _workers(processes: int) -> Iterator[_Pool]:
    """A pool of worker processes; leaving by an error ends them at once."""
    context = get_context("spawn")  # a fork of a process with threads may hang
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ragmetrics-workers-"))
        splits = stack.enter_context(sharing_splits())
        alive, ours = context.Pipe(duplex=False)
        stack.callback(alive.close)
        stack.callback(ours.close)
        pool = stack.enter_context(_Pool(processes, context, _begin, (alive, folder, splits)))
        try:
            yield pool
        except BaseException:
            ours.close()
            raise


class _Pool(ProcessPoolExecutor):
    """Starts its processes without the module that this one was started with.

    A script that calls us without `if __name__ == "__main__":` would be run again in each worker.
    """

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a worker if there is room for one, and queue the work."""
        with _starting:
            ours = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                return super().submit(work, *args, **kwargs)
            finally:
                sys.modules["__main__"] = ours


_starting = threading.Lock()
_of_this_worker = ExitStack()


def _begin(alive: Connection, folder: str, splits: Path) -> None:
    """What each worker does first."""
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    tempfile.tempdir = folder  # goes with the run, even where a worker is ended in its work
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    _of_this_worker.enter_context(sharing_splits(splits))


def _end_with(alive: Connection) -> None:
    """End this worker when the other end of the pipe is closed, as it is by `kill -9` too."""
    try:
        alive.recv()
    except (EOFError, OSError):
        os._exit(1)


def _score(
    settings: Settings, ref: RunRef, until: datetime | None, family: Sequence[str], shard: int
) -> float:
    """Score one part in a worker; return the seconds it took."""
    start = time.monotonic()
    score_part(settings, ref, family, shard, until=until)
    return time.monotonic() - start
