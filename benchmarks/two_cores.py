"""Two cores: how much faster a log is scored by two processes, and how much more memory it takes.

    python -m benchmarks.two_cores --rows 100000

Each run is a whole `ragmetrics score` with the lexical judge in a process of its own, the same
log by one worker and by two. The two runs take turns of some seconds, one stopped while the other
works, and each one's time is that of its own turns: a shared machine is faster now and slower then,
by a tenth and more within minutes, and so meets both alike. Memory is the sum over the process and
all its workers at the moment where it is highest, sampled from /proc: Linux only. Pages that
processes share count in each.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from benchmarks.scale import make_rows
from ragmetrics.config import make_settings
from ragmetrics.logs import NightInputs, log_set
from ragmetrics.scoring import plan_run, stage_run

_SAMPLE_SECONDS = 0.5
_TURN_SECONDS = 20.0
_LOOP = """
import time
end, done = time.monotonic() + 5, 0
while time.monotonic() < end:
    done += len([number * number % 7 for number in range(20_000)]) > 0
print(done)
"""


@dataclass(frozen=True)
class Run:
    """What one run took."""

    rows: int
    workers: int
    wall_seconds: float
    cpu_seconds: float
    peak_mb: float

    @property
    def rows_per_second(self) -> float:
        """Rows a second of wall time."""
        return self.rows / self.wall_seconds

    def __str__(self) -> str:
        return (
            f"{self.rows:>8,} rows, {self.workers} worker(s): {self.rows_per_second:6.1f} rows/s, "
            f"{self.wall_seconds:7.1f} s wall, {self.cpu_seconds:7.1f} s CPU, "
            f"{self.peak_mb:6.0f} MB at the peak of all processes together"
        )


def report(rows: int) -> str:
    """Measure both and give the ratios."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        log, small = _log(folder, rows), _log(folder, rows // 10)
        (few,) = measure([(small, rows // 10, 2)])
        one, two = measure([(log, rows, 1), (log, rows, 2)])
        staging = _staging(log)
    plain = loops(2) / loops(1)
    return "\n".join(
        [
            *map(str, (few, one, two)),
            f"two workers: {two.rows_per_second / one.rows_per_second:.2f} times the rows a second",
            f"the machine: two processes do {plain:.2f} times the plain loops of one, just now",
            f"ten times the rows: {two.peak_mb / few.peak_mb:.2f} times the memory",
            f"serial: staging takes {staging:.1f} s, "
            f"{100 * staging / one.wall_seconds:.1f}% of one worker's wall time",
        ]
    )


def measure(wanted: Sequence[tuple[Path, int, int]]) -> list[Run]:
    """Score logs of so many rows by so many workers, each in a process of its own, by turns."""
    with ExitStack() as stack:
        scorings = [stack.enter_context(_scoring(*one)) for one in wanted]
        left = list(scorings)
        while left:
            left = [one for one in left if not one.take_turn()]
    return [scoring.run() for scoring in scorings]


@contextmanager
def _scoring(log: Path, rows: int, workers: int) -> Iterator[_Scoring]:
    command = [sys.executable, "-m", "ragmetrics", "score", str(log), "--json"]
    environment = {**os.environ, "RAGMETRICS_WORKERS": str(workers)}
    with started(command, environment) as process:
        os.killpg(process.pid, signal.SIGSTOP)
        ended = os.pidfd_open(process.pid)
        try:
            with Memory(process.pid) as memory:
                yield _Scoring(rows, workers, process, ended, memory)
        finally:
            os.close(ended)


@dataclass
class _Scoring:
    """A run in its own process, stopped but for its turns."""

    rows: int
    workers: int
    process: subprocess.Popen[bytes]
    ended: int
    """Its pidfd: ready to be read once the process has ended."""
    memory: Memory
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0

    def take_turn(self) -> bool:
        """Work for a turn; return whether the run has ended in it."""
        start = time.monotonic()
        os.killpg(self.process.pid, signal.SIGCONT)
        # So long that all get equally far, if so many workers are as many times as fast.
        ended, _, _ = select.select([self.ended], [], [], _TURN_SECONDS / self.workers)
        if not ended:
            os.killpg(self.process.pid, signal.SIGSTOP)
        self.wall_seconds += time.monotonic() - start
        if ended:
            _, status, usage = os.wait4(self.process.pid, 0)  # with that of its workers
            self.process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return bool(ended)

    def run(self) -> Run:
        """What it took. Raises RuntimeError where it failed."""
        if self.process.returncode:
            raise RuntimeError(f"{self.workers} workers: exit code {self.process.returncode}")
        return Run(
            self.rows, self.workers, self.wall_seconds, self.cpu_seconds, self.memory.peak_mb
        )


@contextmanager
def started(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process for the time of a block; one that still runs then is ended, with all below it."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        env=environment,
        cwd=folder,
        start_new_session=True,  # a group of its own, to be stopped as one
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            for pid in _family(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


class Memory:
    """Samples the memory of a process and of all below it for the time of a block."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak = pid, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def peak_mb(self) -> float:
        """The highest sum seen."""
        return self._peak / 2**20

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._ended.wait(_SAMPLE_SECONDS):
            pages = sum(_resident(pid) for pid in _family(self._pid))
            self._peak = max(self._peak, pages * page)


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(place.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it has ended meanwhile
            continue
        children.setdefault(parent, []).append(int(place.parent.name))
    found = [pid]
    for process in found:
        found += children.get(process, [])
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0


def _staging(log: Path) -> float:
    """Seconds to stage the log, which one process does before any other begins."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as store:
        settings = make_settings({"store": store})
        inputs = NightInputs((log_set(settings, str(log)),), None)
        start = time.monotonic()
        ref = plan_run(settings, date(1970, 1, 1), inputs, "bench")
        stage_run(settings, ref, inputs, datetime.now(UTC))
        return time.monotonic() - start


def loops(processes: int) -> int:
    """How many plain loops so many processes do in some seconds: more no program can gain."""
    begun = [
        subprocess.Popen([sys.executable, "-c", _LOOP], stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    return sum(int(one.communicate()[0]) for one in begun)


def _log(folder: Path, rows: int) -> Path:
    path = folder / f"{rows}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in make_rows(rows))
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    print(report(parser.parse_args(arguments).rows))


if __name__ == "__main__":
    main()
