"""Ten times the rows: how much more memory and time `ragmetrics score` takes.

Both runs are whole processes with the lexical judge over five contexts a row, none of which
repeats.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FACTOR = 10
_WORDS = 5_000
_CONTEXTS = 5
_SENTENCES = 5


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    rows: int
    peak_mb: float
    cpu_seconds: float
    wall_seconds: float


def report(rows: int) -> str:
    """Measure both sizes in turn and give the ratios."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as folder:
        small, large = (measure(Path(folder), n) for n in (rows, rows * _FACTOR))
    lines = [
        f"{cost.rows:>8,} rows: {cost.peak_mb:6.0f} MB peak, {cost.cpu_seconds:7.1f} s CPU, "
        f"{cost.wall_seconds:7.1f} s wall"
        for cost in (small, large)
    ]
    ratios = (
        f"{_FACTOR} times the rows: {large.peak_mb / small.peak_mb:.2f} times the memory, "
        f"{large.cpu_seconds / small.cpu_seconds:.1f} times the CPU, "
        f"{large.wall_seconds / small.wall_seconds:.1f} times the wall time"
    )
    return "\n".join([*lines, ratios])


def measure(folder: Path, rows: int, *options: str) -> Cost:
    """Score a log of so many rows in a process of its own; `options` are those of `score`."""
    log = folder / f"{rows}.jsonl"
    with log.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in make_rows(rows))
    command = [sys.executable, "-m", "ragmetrics", "score", str(log), "--json", *options]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(rows, usage.ru_maxrss / 1024, cpu, time.monotonic() - start)


def make_rows(count: int) -> Iterator[dict[str, object]]:
    """Rows of random words, the same in every run."""
    draw = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(_WORDS)]

    def sentence() -> str:
        return " ".join(draw.choices(words, k=draw.randint(8, 16))).capitalize() + "."

    for number in range(count):
        contexts = [" ".join(sentence() for _ in range(_SENTENCES)) for _ in range(_CONTEXTS)]
        yield {
            "id": str(number),
            "user_input": sentence(),
            "retrieved_contexts": contexts,
            "response": sentence(),
            "reference": f"{sentence()} {sentence()}",
        }
