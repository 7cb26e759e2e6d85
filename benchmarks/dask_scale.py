"""Dask: the same night on the threads of one process and on a cluster of two worker processes.

    python -m benchmarks.dask_scale --rows 200000 --metrics context_relevance,context_recall

Each run is a whole `python -m flows.nightly` with the lexical judge, a store and a Prefect server
of its own, over a log none of whose texts repeats. Their scores are compared value by value. Memory
is the sum over all processes of a run, Prefect's server among them: Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import yaml

from benchmarks.scale import make_rows
from benchmarks.two_cores import Memory, loops, started
from ragmetrics.config.settings import DEFAULT_METRICS

_ROOT = Path(__file__).resolve().parents[1]
_NIGHT = "2026-01-01"
_TARGET = 0.65
_WORKERS = 2


@dataclass(frozen=True)
class Run:
    """What one night took on one runner."""

    runner: str
    store: Path
    wall_seconds: float
    peak_mb: float

    @property
    def parts(self) -> dict[str, Path]:
        """The files of its scores, by their place below the run's folder."""
        folder = next((self.store / "scores" / f"dt={_NIGHT}").glob("run=*"))
        return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.parquet"))}


def report(rows: int, metrics: Sequence[str], runners: Sequence[str]) -> str:
    """Run the night on each runner in turn; compare times, memory and scores with the first."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        _write_log(folder / "logs" / f"dt={_NIGHT}" / "log.jsonl", rows)
        runs = [measure(folder, runner, metrics) for runner in runners]
        first, *others = runs
        lines = [
            f"{rows:,} rows, {', '.join(metrics)}: {len(first.parts):,} parts",
            *(
                f"{run.runner:>10}: {run.wall_seconds:8.1f} s wall, {rows / run.wall_seconds:6.1f} "
                f"rows/s, {run.peak_mb:6.0f} MB at the peak of all processes together"
                for run in runs
            ),
        ]
        for other in others:
            ratio = other.wall_seconds / first.wall_seconds
            values = compare(first, other)
            lines.append(
                f"{other.runner} / {first.runner}: {ratio:.2f} of the time (target {_TARGET}); "
                f"{values:,} scores, all identical"
            )
    plain = loops(_WORKERS) / loops(1)
    lines.append(
        f"the machine: two processes do {plain:.2f} times the plain loops of one, just now"
    )
    return "\n".join(lines)


def measure(folder: Path, runner: str, metrics: Sequence[str]) -> Run:
    """Run the night in a process of its own, by so many workers where the runner has some."""
    store = folder / f"store-{runner}"
    chosen = {"name": runner} if runner == "threads" else {"name": runner, "workers": _WORKERS}
    settings = folder / f"{runner}.yaml"
    values: dict[str, object] = {
        "logs": str(folder / "logs" / "dt={date}"),
        "store": str(store),
        "metrics": list(metrics),
        "runner": chosen,
        "alerts": {"rules": []},
    }
    settings.write_text(yaml.safe_dump(values), encoding="utf-8")
    command = [sys.executable, "-m", "flows.nightly", "--settings", str(settings), "--date", _NIGHT]
    environment = {
        **os.environ,
        "PREFECT_HOME": str(folder / f"prefect-{runner}"),
        "PREFECT_LOGGING_LEVEL": "WARNING",
    }
    start = time.monotonic()
    with started(command, environment, _ROOT) as process, Memory(process.pid) as memory:
        status = process.wait()
    wall = time.monotonic() - start
    if status:
        raise RuntimeError(f"the night on {runner}: exit code {status}")
    return Run(runner, store, wall, memory.peak_mb)


def compare(one: Run, other: Run) -> int:
    """Hold all scores of two runs against each other; return how many there are.

    Raises RuntimeError for the first part that differs.
    """
    ours, theirs = one.parts, other.parts
    if ours.keys() != theirs.keys():
        raise RuntimeError(f"other parts: {sorted(ours.keys() ^ theirs.keys())}")
    values = 0
    for place, path in ours.items():
        table = pq.read_table(path, partitioning=None)
        if not table.equals(pq.read_table(theirs[place], partitioning=None)):
            raise RuntimeError(f"{place}: {one.runner} and {other.runner} give different scores")
        values += table.num_rows
    return values


def _write_log(path: Path, rows: int) -> None:
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in make_rows(rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--metrics", default=",".join(DEFAULT_METRICS), help="default: %(default)s")
    parser.add_argument("--runners", default="threads,dask", help="default: %(default)s")
    told = parser.parse_args(arguments)
    print(report(told.rows, told.metrics.split(","), told.runners.split(",")))


if __name__ == "__main__":
    main()
