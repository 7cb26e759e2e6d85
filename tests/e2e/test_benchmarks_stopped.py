"""Benchmarks that are stopped leave nothing running."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.fakes.processes import ROOT


@pytest.mark.process
def test_a_benchmark_that_is_interrupted_ends_with_all_that_it_started() -> None:
    """Ctrl-C in the middle of a night: the night's process is gone, and no thread keeps ours."""
    command = [sys.executable, "-m", "benchmarks.dask_scale", "--rows", "500", "--metrics"]
    benchmark = subprocess.Popen(
        [*command, "hit_rate", "--runners", "threads"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        night = _night(benchmark)
        benchmark.send_signal(signal.SIGINT)
        _, err = benchmark.communicate(timeout=180)
        assert err.rstrip().endswith("KeyboardInterrupt")
        assert not night.is_running()
    finally:
        benchmark.kill()


def _night(benchmark: subprocess.Popen[str]) -> psutil.Process:
    """The process of the night, once it computes: before, the benchmark is still starting it."""
    deadline = time.monotonic() + 180
    while True:
        for child in psutil.Process(benchmark.pid).children():
            if "flows.nightly" in child.cmdline() and child.cpu_times().user > 0.1:
                return child
        assert time.monotonic() < deadline
        time.sleep(0.05)
