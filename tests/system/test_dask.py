"""The same night and the same gate on other runners: processes of this machine, a Dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from prefect import flow

from flows.runners import RunnerFailed
from flows.scoring import score_all
from ragmetrics.config import load_settings
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.pipeline import Night
from ragmetrics.records import Gate
from ragmetrics.scoring import list_parts
from ragmetrics.storage import open_store
from tests.fakes.build_logs import METRICS, damaged, golden, write_build
from tests.fakes.clients import JudgeServer
from tests.fakes.http_server import free_port
from tests.fakes.logs import NIGHT
from tests.fakes.prefect_database import write_database
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
from tests.fakes.slack import SlackServer

SCORED = pytest.mark.usefixtures("prefect_server", "without_pages")


@pytest.fixture(autouse=True, scope="module")
def dask() -> None:
    """The extra."""
    need("dask")


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., str]:
    """Writes a settings file for one runner, with a store of its own."""
    write_log(tmp_path)
    return partial(write_settings, tmp_path)


@SCORED
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_a_night_has_the_same_scores_on_every_runner(
    name: str, settings: Callable[..., str], tmp_path: Path
) -> None:
    """Two worker processes write, value by value, what the threads of one write."""
    here = run(settings("threads", "threads")).manifest
    there = run(settings(name, {"name": name, "workers": 2})).manifest
    assert (there.run, there.metrics) == (here.run, here.metrics)
    assert there.problems == []
    pd.testing.assert_frame_equal(scores(tmp_path, name), scores(tmp_path, "threads"))
    assert multiprocessing.active_children() == []


@SCORED
def test_people_can_watch(cluster: str, settings: Callable[..., str]) -> None:
    """Task runs say what they score, and each family of metrics has its artifact of progress."""
    run(settings("dask", {"name": "dask", "address": cluster}, dataset="watched"))
    from prefect.client.orchestration import get_client

    wanted = {f"context_recall · shard {number}/3 · {NIGHT}" for number in (1, 2, 3)}
    wanted |= {f"{step} · {NIGHT}" for step in ("stage", "publish", "alert")}
    deadline = time.monotonic() + 180
    with get_client(sync_client=True) as client:
        # The server writes task runs a little later.
        while not wanted <= {one.name for one in client.read_task_runs(limit=200)}:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        found = client.request(
            "POST",
            "/artifacts/filter",
            json={"artifacts": {"key": {"like_": "ragmetrics-watched-night-progress-%"}}},
        ).json()
    assert {one["key"].rpartition("progress-")[2] for one in found} >= {
        "context-recall",
        "hit-rate",
    }
    assert {(one["type"], one["data"]) for one in found} == {("progress", 100.0)}


@SCORED
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_a_night_survives_the_death_of_a_worker(
    name: str, settings: Callable[..., str], judge_server: JudgeServer
) -> None:
    """Killed in the middle of its part, whose rows others then score: the night ends whole."""
    runner = {"name": name, "workers": 2}
    path = settings(name, runner, judge=slow(judge_server), metrics=["context_relevance"])
    with killing(judge_server, after=8) as killed:
        manifest = run(path).manifest
    assert len(killed) == 1
    (metric,) = manifest.metrics
    assert (metric.scored, manifest.problems) == (ROWS, [])


@SCORED
def test_an_error_in_a_worker_is_the_same_error_here(
    cluster: str, settings: Callable[..., str]
) -> None:
    """A part whose rows are gone comes back as what it raised; the others are scored."""
    runner = {"name": "dask", "address": cluster}
    chosen = load_settings(settings("dask", runner, metrics=["hit_rate"]))
    staged = Night(chosen).stage(NIGHT)
    files = open_store(chosen)
    files.remove(staged.ref.rows(1))

    @flow
    def scoring() -> list[RagmetricsError]:
        return score_all(chosen, staged.ref, list_parts(chosen, staged)).errors

    (error,) = scoring()
    assert isinstance(error, StoreError) and str(error).endswith("shard-001.parquet: no such file")
    assert [files.exists(staged.ref.scores("hit_rate", n)) for n in range(3)] == [True, False, True]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with a worker, both started as an administrator starts them."""
    with _scheduler(tmp_path_factory.mktemp("dask"), {}) as address:
        yield address


@contextmanager
def _scheduler(folder: Path, environment: dict[str, str], workers: int = 1) -> Iterator[str]:
    port = str(free_port())
    address = f"tcp://127.0.0.1:{port}"
    base = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    commands = [
        [*base, "--host", "127.0.0.1", "--port", port, "--no-dashboard"],
        *[[*worker, "--no-dashboard", "--local-directory", str(folder)]] * workers,
    ]
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
        _wait_for(address, folder, workers)
        yield address


def _wait_for(address: str, folder: Path, workers: int) -> None:
    from distributed import Client

    deadline = time.monotonic() + 120
    while True:
        with suppress(OSError), Client(address, timeout=5, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=120)
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
def test_a_gate_gives_the_same_verdict_on_dask(
    cluster: str, settings: Callable[..., str], tmp_path: Path, slack_server: SlackServer
) -> None:
    """All that it says of a damaged build, and the scores of both builds, are those of threads."""
    write_build(tmp_path, "serving", golden())
    write_build(tmp_path, "damaged", damaged(golden(), share=0.15, seed=1))
    changes = {"metrics": METRICS, "gate": {"logs": "builds/{build}.jsonl"}}
    here = gated(settings("threads", "threads", **changes))
    there = gated(settings("dask", {"name": "dask", "address": cluster}, **changes))
    assert here.verdict == "hold"
    moments = {"started_at", "finished_at"}
    assert there.model_dump(exclude=moments) == here.model_dump(exclude=moments)
    pd.testing.assert_frame_equal(scores(tmp_path, "dask"), scores(tmp_path, "threads"))


def gated(path: str) -> Gate:
    """Run the flow of the damaged build in this process."""
    from flows.index_build import index_build

    payload = {"dataset": load_settings(path).dataset, "build": "damaged", "serving": "serving"}
    gate: Gate = index_build(payload, path)
    return gate


@SCORED
def test_a_worker_that_lacks_our_tasks_is_told_of(
    settings: Callable[..., str], tmp_path: Path
) -> None:
    """Before any part is lost on it, with what to do: here another package has the name."""
    theirs = tmp_path / "theirs" / "tasks"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").touch()
    (theirs / "nightly.py").write_text("import their_library")
    with _scheduler(tmp_path, {"PYTHONPATH": str(theirs.parent)}) as address:
        path = settings("dask", {"name": "dask", "address": address})
        with pytest.raises(RunnerFailed, match=r"cannot import their_library.*pip install"):
            run(path)


@SCORED
def test_a_cluster_that_gets_no_worker_is_not_waited_for_for_ever(
    settings: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The night ends with one sentence: the address, and what to start there."""
    monkeypatch.setattr("flows.runners.WORKER_SECONDS", 2.0)
    with _scheduler(tmp_path, {}, workers=0) as address:
        path = settings("dask", {"name": "dask", "address": address})
        with pytest.raises(RunnerFailed) as error:
            run(path)
    assert str(error.value) == (
        f"runner: dask: the scheduler at {address} has had no worker for 2 s; "
        f"start one: dask worker {address}"
    )


@SCORED
def test_a_cluster_that_grows_as_tasks_come_may_begin_without_a_worker(
    settings: Callable[..., str],
) -> None:
    """It is given something to do, and starts one."""
    growing = {"n_workers": 0, "adapt": {"minimum": 0, "maximum": 1}}
    path = settings("dask", {"name": "dask", "cluster": growing}, metrics=["hit_rate"])
    assert run(path).manifest.problems == []


@SCORED
def test_a_cluster_that_is_not_there_is_told(settings: Callable[..., str]) -> None:
    """In one sentence with its address."""
    from dask import config

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
    path = settings(name, {"name": name, "workers": 2}, metrics=["context_recall"])
    command = [sys.executable, "-m", "flows.nightly", "--settings", path, "--date", str(NIGHT)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    write_database(tmp_path / "prefect" / "prefect.db")
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
