"""The same night on other runners: processes of this machine, a Dask cluster, a Ray one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
import yaml
from prefect import flow

from flows.runners import RunnerFailed
from flows.scoring import score_all
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.night import NightResult, parts, stage_night
from ragmetrics.settings import load_settings
from ragmetrics.stage import open_store
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.processes import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROWS = 60
METRICS = ["context_relevancy", "context_recall", "hit_rate"]
SCORED = pytest.mark.usefixtures("prefect_server")


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., str]:
    """Writes a settings file for one runner, with a store of its own."""
    ids = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]}
    log = tmp_path / "logs" / f"dt={NIGHT}" / "log.jsonl"
    write_jsonl(log, make_rows(ROWS, good=0.6, **ids))

    def write(name: str, runner: Any, **changes: Any) -> str:
        values = {
            "store": f"store-{name}",
            "metrics": METRICS,
            "shards": 3,
            "runner": runner,
            "alerts": {"rules": []},
            **changes,
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(values))
        return str(path)

    return write


def run(path: str) -> NightResult:
    """Run the flow in this process."""
    from flows.nightly import nightly

    found: NightResult = nightly(path, NIGHT)
    return found


def scores(folder: Path, name: str) -> pd.DataFrame:
    """All scores of a store, row by row."""
    files = sorted((folder / f"store-{name}" / "scores").rglob("*.parquet"))
    read = [pd.read_parquet(file, partitioning=None).assign(part=file.name) for file in files]
    return pd.concat(read, keys=[file.parent.name for file in files])


@SCORED
@pytest.mark.parametrize("name", ["processes", "dask", "ray"])
def test_a_night_has_the_same_scores_on_every_runner(
    name: str, settings: Callable[..., str], tmp_path: Path
) -> None:
    """Two worker processes write, value by value, what the threads of one write."""
    if name != "processes":
        pytest.importorskip({"dask": "prefect_dask", "ray": "ray"}[name])
    here = run(settings("threads", "threads")).manifest
    there = run(settings(name, {"name": name, "workers": 2})).manifest
    assert (there.run, there.metrics) == (here.run, here.metrics)
    assert there.problems == []
    pd.testing.assert_frame_equal(scores(tmp_path, name), scores(tmp_path, "threads"))
    assert multiprocessing.active_children() == []


@SCORED
def test_people_can_watch(settings: Callable[..., str]) -> None:
    """Task runs say what they score, and each family of metrics has its artifact of progress."""
    pytest.importorskip("prefect_dask")
    run(settings("dask", {"name": "dask", "workers": 2}, dataset="watched"))
    from prefect.client.orchestration import get_client

    wanted = {f"context_recall · shard {number}/3" for number in (1, 2, 3)}
    deadline = time.monotonic() + 60
    with get_client(sync_client=True) as client:
        # The server writes task runs a little later.
        while not wanted <= {one.name for one in client.read_task_runs(limit=200)}:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        found = client.request(
            "POST",
            "/artifacts/filter",
            json={"artifacts": {"key": {"like_": "ragmetrics-watched-progress-%"}}},
        ).json()
    assert {one["key"].rpartition("progress-")[2] for one in found} >= {
        "context-recall",
        "hit-rate",
    }
    assert {(one["type"], one["data"]) for one in found} == {("progress", 100.0)}


def _slow(judge: JudgeServer) -> dict[str, Any]:
    """An endpoint that gives time to kill somebody."""
    judge.faults(latency_ms=300)
    return {"name": "openai", "model": "m", "base_url": judge.base_url, "concurrency": 2}


@contextmanager
def killing(judge: JudgeServer, after: int) -> Iterator[list[int]]:
    """Kill a worker process once the judge was asked so often; its id."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(0.05):
            workers = [one.pid for one in psutil.Process().children(recursive=True) if _works(one)]
            if workers and judge.stats()["requests"] >= after:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def _works(process: psutil.Process) -> bool:
    """Whether it is a spawned worker; servers and their helpers run modules."""
    with suppress(psutil.Error):
        return any("spawn_main" in word for word in process.cmdline())
    return False


@SCORED
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_a_night_survives_the_death_of_a_worker(
    name: str, settings: Callable[..., str], judge_server: JudgeServer
) -> None:
    """Killed in the middle of its part, whose rows others then score: the night ends whole."""
    if name == "dask":
        pytest.importorskip("prefect_dask")
    runner = {"name": name, "workers": 2}
    path = settings(name, runner, judge=_slow(judge_server), metrics=["context_relevance"])
    with killing(judge_server, after=8) as killed:
        manifest = run(path).manifest
    assert len(killed) == 1
    (metric,) = manifest.metrics
    assert (metric.scored, manifest.problems) == (ROWS, [])


@SCORED
def test_an_error_in_a_worker_is_the_same_error_here(settings: Callable[..., str]) -> None:
    """A part whose rows are gone comes back as what it raised; the others are scored."""
    pytest.importorskip("prefect_dask")
    chosen = load_settings(settings("dask", {"name": "dask", "workers": 2}, metrics=["hit_rate"]))
    staged = stage_night(chosen, NIGHT)
    files = open_store(chosen)
    files.remove(staged.ref.rows(1))

    @flow
    def scoring() -> list[RagmetricsError]:
        return score_all(chosen, staged.ref, parts(chosen, staged))

    (error,) = scoring()
    assert isinstance(error, StoreError) and str(error).endswith("shard-001.parquet: no such file")
    assert [files.exists(staged.ref.scores("hit_rate", n)) for n in range(3)] == [True, False, True]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with a worker, both started as an administrator starts them."""
    pytest.importorskip("prefect_dask")
    with _scheduler(tmp_path_factory.mktemp("dask"), {"PYTHONPATH": str(ROOT)}) as address:
        yield address


@contextmanager
def _scheduler(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    port = address.rpartition(":")[2]
    base = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    commands = [
        [*base, "--host", "127.0.0.1", "--port", port, "--no-dashboard"],
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
         "--no-dashboard", "--local-directory", str(folder)],
    ]  # fmt: skip
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with ExitStack() as stack:
        for number, command in enumerate(commands):
            output = stack.enter_context((folder / f"{number}.log").open("wb"))
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**variables, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            stack.callback(_end, process)
        _wait_for_worker(address, folder)
        yield address


def _wait_for_worker(address: str, folder: Path) -> None:
    from distributed import Client

    deadline = time.monotonic() + 120
    while True:
        with suppress(OSError), Client(address, timeout=5, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            return
        logs = [path.read_text() for path in folder.glob("*.log")]
        assert time.monotonic() < deadline, "\n".join(logs)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@SCORED
def test_a_cluster_that_runs_already_is_used(
    cluster: str, settings: Callable[..., str], tmp_path: Path
) -> None:
    """It is reached at its address, gives the same scores, and is there afterwards."""
    run(settings("threads", "threads"))
    for _ in range(2):
        run(settings("dask", {"name": "dask", "address": cluster}))
    pd.testing.assert_frame_equal(scores(tmp_path, "dask"), scores(tmp_path, "threads"))


@SCORED
def test_a_worker_that_lacks_our_tasks_is_told_of(
    settings: Callable[..., str], tmp_path: Path
) -> None:
    """Before any part is lost on it, with what to do."""
    pytest.importorskip("prefect_dask")
    with _scheduler(tmp_path, {}) as address:
        path = settings("dask", {"name": "dask", "address": address})
        with pytest.raises(RunnerFailed, match=r"cannot import tasks.*PYTHONPATH=CHECKOUT"):
            run(path)


@SCORED
def test_a_cluster_that_is_not_there_is_told(settings: Callable[..., str]) -> None:
    """In one sentence with its address."""
    config = pytest.importorskip("dask.config")
    pytest.importorskip("prefect_dask")
    path = settings("dask", {"name": "dask", "address": "tcp://127.0.0.1:9"})
    with (
        config.set({"distributed.comm.timeouts.connect": "2s"}),
        pytest.raises(RunnerFailed, match=r"dask: cannot be reached at tcp://127\.0\.0\.1:9"),
    ):
        run(path)


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_by_hand_workers_speak_to_the_server_of_the_run(
    name: str, settings: Callable[..., str], tmp_path: Path
) -> None:
    """Without any Prefect server of one's own the command starts one, which serves workers too."""
    if name == "dask":
        pytest.importorskip("prefect_dask")
    path = settings(name, {"name": name, "workers": 2}, metrics=["context_recall"])
    command = [sys.executable, "-m", "flows.nightly", "--settings", path, "--date", str(NIGHT)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, "PREFECT_HOME": str(tmp_path / "prefect")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Starting temporary server") == 1
    assert done.stderr.count("Finished in state Completed()") >= 4
    assert "INFO    | distributed" not in done.stderr  # some thirty lines of it
    assert len(scores(tmp_path, name)) == ROWS
