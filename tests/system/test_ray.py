"""Nights on Ray, on real ones of this machine: as on threads, and one Ray for several at once."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from ragmetrics.pipeline import Backfill
from ragmetrics.storage import Files, Runs
from tests.fakes.clients import JudgeServer
from tests.fakes.http_server import free_port
from tests.fakes.logs import NIGHT
from tests.fakes.processes import ROOT
from tests.fakes.runner_nights import (
    ROWS,
    killing,
    need,
    run,
    scores,
    slow,
    write_log,
    write_settings,
)

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")

RAY = {"name": "ray", "workers": 2}
NIGHTS = [NIGHT + dt.timedelta(days=number) for number in range(3)]


@pytest.fixture(autouse=True, scope="module")
def ray() -> None:
    """The extra."""
    need("ray")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes a settings file for one runner, with a store of its own, for nights run elsewhere than
    in the checkout.
    """
    for night in NIGHTS:
        write_log(tmp_path, night)
    monkeypatch.chdir(tmp_path)
    return partial(write_settings, tmp_path)


def is_running() -> bool:
    """Whether this process has a Ray."""
    import ray

    return bool(ray.is_initialized())


def test_nights_at_once_share_one_ray_and_have_the_same_scores(
    settings: Callable[..., str], tmp_path: Path
) -> None:
    """It is neither started twice in the process nor ended with the first night. Its workers write,
    value by value, what threads write; then Ray is gone."""
    published = []
    for name, runner in (("threads", "threads"), ("ray", RAY)):
        done = backfill(settings(name, runner))
        assert done.dates("published") == NIGHTS, str(done)
        published.append(Runs(Files(str(tmp_path / f"store-{name}"))).nights())
    here, there = published
    assert [(night.run, night.metrics) for night in there] == [
        (night.run, night.metrics) for night in here
    ]
    assert [night.problems for night in there] == [[]] * len(NIGHTS)
    pd.testing.assert_frame_equal(scores(tmp_path, "ray"), scores(tmp_path, "threads"))
    assert not is_running()


WITHOUT_TOKEN = {**os.environ, "RAY_AUTH_MODE": "disabled"}  # whatever is in this user's home
IMPATIENT = """
import sys
from flows import nightly, runners
runners.WORKER_SECONDS = 2.0
sys.exit(nightly.main())
"""


@contextmanager
def head_without_cpu(folder: Path) -> Iterator[str]:
    """A Ray that others may join and that runs nothing itself, as on Kubernetes; its address."""
    port = free_port()
    command = ["start", "--head", "--block", "--num-cpus=0", f"--port={port}"]
    quiet = ["--include-dashboard=false", "--disable-usage-stats"]
    log = folder / "ray.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *command, *quiet],
            stdout=output,
            stderr=output,
            env=WITHOUT_TOKEN,
        )
    try:
        while "Ray runtime started" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()  # it ends what it started
        process.wait(60)


def test_a_ray_that_gets_no_cpu_is_not_waited_for_for_ever(
    settings: Callable[..., str], tmp_path: Path
) -> None:
    """The night ends with one sentence: the address, and what to start there. In a process of its
    own, as Ray asks once in a process whether there are tokens."""
    with head_without_cpu(tmp_path) as address:
        path = settings("ray", {"name": "ray", "address": address})
        ended = subprocess.run(
            [sys.executable, "-c", IMPATIENT, "--settings", path, "--date", str(NIGHT)],
            cwd=ROOT,
            env=WITHOUT_TOKEN,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode != 0
    assert (
        f"runner: ray: the Ray at {address} has had no CPU for tasks for 2 s; start a node "
        "that has some: ray start --address HEAD:PORT"
    ) in ended.stderr


def backfill(path: str) -> Backfill:
    """Run the flow in this process, two nights at once."""
    from flows import backfill as flows

    done: Backfill = flows.backfill(path, NIGHTS[0], NIGHTS[-1], at_once=2)
    return done


def test_a_night_survives_the_death_of_a_worker(
    settings: Callable[..., str], judge_server: JudgeServer
) -> None:
    """Killed in the middle of its part, whose rows others then score: the night ends whole."""
    path = settings("ray", RAY, judge=slow(judge_server), metrics=["context_relevance"])
    with killing(judge_server, after=8) as killed:
        manifest = run(path).manifest
    assert len(killed) == 1
    assert not is_running()
    (metric,) = manifest.metrics
    assert (metric.scored, manifest.problems) == (ROWS, [])
