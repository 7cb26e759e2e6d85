"""Two nights of many rows, step by step: `python -m benchmarks scale --rows 1000000`.

Each night is one process (with its workers) that runs the steps of `ragmetrics nightly` with the
lexical judge and the default metrics. Four in five rows of the second night are those of the
first.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path

from benchmarks.scale import make_rows
from benchmarks.two_cores import Memory, started
from ragmetrics.config import make_settings
from ragmetrics.pipeline import Night
from ragmetrics.scoring import collect_seldom, list_parts, score_parts

NIGHTS = (date(2026, 11, 18), date(2026, 11, 19))
REPEATS = 0.8
MOST_MINUTES, MOST_GB, SECOND = 60, 1.5, 1 / 3
"""Targets for a million rows on two cores."""


@dataclass(frozen=True)
class Figures:
    """What one night took."""

    seconds: dict[str, float]
    """By step."""
    peak_mb: float

    @property
    def whole(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.values())


def report(rows: int) -> Iterator[str]:
    """Run both nights; a line for each, and one for the second beside the first."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        size = write_logs(folder, rows)
        nights = []
        for day in NIGHTS:
            night = measure(folder, day)
            nights.append(night)
            steps = ", ".join(f"{step} {seconds:,.0f} s" for step, seconds in night.seconds.items())
            yield (
                f"night of {rows:,} rows ({size / 1e6:,.0f} MB): {night.whole / 60:.1f} minutes "
                f"({steps}), {rows / night.whole:,.0f} rows a second, {night.peak_mb:,.0f} MB at "
                f"the peak (a million: at most {MOST_MINUTES} minutes and {MOST_GB * 1000:,.0f} MB)"
            )
        first, second = nights
        yield (
            f"a second night, of which {REPEATS:.0%} repeats: {second.whole / first.whole:.2f} "
            f"times the first (target {SECOND:.2f})"
        )


def write_logs(folder: Path, rows: int) -> int:
    """Write the logs of both nights; return the size of one."""
    repeated = int(rows * REPEATS)
    made = make_rows(2 * rows - repeated)
    first, second = (folder / f"{day}.jsonl" for day in NIGHTS)
    with first.open("w", encoding="utf-8") as one, second.open("w", encoding="utf-8") as other:
        for number, row in enumerate(islice(made, rows)):
            line = json.dumps(row) + "\n"
            one.write(line)
            if number < repeated:
                other.write(line)
        other.writelines(json.dumps(row) + "\n" for row in made)
    return first.stat().st_size


def measure(folder: Path, day: date) -> Figures:
    """Run one night in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large_night", str(folder), day.isoformat()]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with started(command, environment, folder) as process, Memory(process.pid) as memory:
        if status := process.wait():
            raise RuntimeError(f"the night of {day}: exit code {status}")
    return Figures(json.loads((folder / f"{day}.json").read_text("utf-8")), memory.peak_mb)


def run_night(folder: Path, day: date) -> None:
    """The steps of a night, with the seconds of each written to a file."""
    collect_seldom()
    settings = make_settings(
        {
            "logs": str(folder / "{date}.jsonl"),
            "store": str(folder / "store"),
            "alerts": {"rules": []},
        }
    )
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(step: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        seconds[step] = time.monotonic() - start

    with timed("stage"):
        staged = Night(settings).stage(day)
    with timed("score"):
        if problems := score_parts(settings, staged, list_parts(settings, staged)):
            raise problems[0]
    with timed("publish"):
        manifest = Night(settings).publish(staged)
    with timed("show"):
        Night(settings).show(manifest)
    (folder / f"{day}.json").write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    run_night(Path(sys.argv[1]), date.fromisoformat(sys.argv[2]))
