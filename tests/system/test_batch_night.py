"""Nights judged by batches: killed at any moment, and waited for without holding a worker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.builders import judge_at, save_settings, scores_of
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_live import started
from tests.fakes.processes import ROOT

ROWS = 40
NIGHTLY = """
import sys
from datetime import date
from ragmetrics.pipeline.nightly import run_night
from ragmetrics.config import load_settings
run_night(load_settings(sys.argv[1]), date.fromisoformat(sys.argv[2]))
"""


def write_settings(folder: Path, judge: JudgeServer, **changes: Any) -> Path:
    """A night of two shards in a local folder, with metrics that ask in two waves."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(ROWS, good=0.7))
    return save_settings(
        folder,
        metrics=["context_relevance", "faithfulness"],
        shards=2,
        judge=judge_at(judge, name="openai-batch", poll_seconds=0.1) | changes,
    )


def command(settings: Path) -> list[str]:
    """One night in a process of its own."""
    return [sys.executable, "-c", NIGHTLY, str(settings), str(NIGHT)]


def on_record(folder: Path) -> list[Path]:
    """The batches on record."""
    return list((folder / "ragmetrics-store" / "batches").rglob("*.json"))


def finish(settings: Path) -> None:
    """Run the night to its end."""
    done = subprocess.run(command(settings), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def start_and_kill(settings: Path, judge: JudgeServer, step: str, times: int, pause: float) -> None:
    """Kill the night with SIGKILL when the server has done a step so often, and a little later."""
    with started(command(settings), ROOT, os.environ, settings.with_name("output")) as process:
        deadline = time.monotonic() + 120
        while judge.batch_stats()["steps"].get(step, 0) < times:
            assert process.poll() is None, f"the night ended before its {step} number {times}"
            assert time.monotonic() < deadline, f"there never was a {step} number {times}"
            time.sleep(0.01)
        time.sleep(pause)


@pytest.fixture(scope="module")
def undisturbed(
    judge_process: JudgeServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The scores of a night that nobody disturbs, and what the Batch API was asked."""
    judge_process.reset()
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "testing")
        finish(write_settings(folder, judge_process))
    assert on_record(folder) == []
    return scores_of(folder / "ragmetrics-store"), judge_process.batch_stats()


@pytest.mark.parametrize(
    ("step", "times", "held", "pause"),
    [
        ("upload", 1, True, 0.0),
        ("create", 1, True, 0.0),
        ("create", 2, True, 0.0),
        ("look", 1, True, 0.0),
        ("look", 3, False, 0.05),
        ("content", 1, True, 0.0),
        ("content", 1, False, 0.1),
        ("content", 2, False, 0.3),
    ],
)
def test_a_night_killed_at_any_moment_pays_nothing_twice(
    judge_server: JudgeServer,
    undisturbed: tuple[pd.DataFrame, dict[str, Any]],
    tmp_path: Path,
    step: str,
    times: int,
    held: bool,
    pause: float,
) -> None:
    """After kill -9 the same command gives an undisturbed run's scores and asks nothing twice.

    `held`: the server does the step and never answers, so the kill falls right into it.
    """
    expected, needed = undisturbed
    judge_server.batch_faults(delay_seconds=0.3, hold={step: times} if held else {})
    settings = write_settings(tmp_path, judge_server)
    start_and_kill(settings, judge_server, step, times, pause)
    judge_server.batch_faults(hold={})
    finish(settings)
    told = judge_server.batch_stats()
    assert told["requests"] == needed["requests"]
    assert told["answered"] == needed["answered"]
    pd.testing.assert_frame_equal(scores_of(tmp_path / "ragmetrics-store"), expected)


def test_faults_lose_no_row(
    judge_server: JudgeServer, undisturbed: tuple[pd.DataFrame, dict[str, Any]], tmp_path: Path
) -> None:
    """Error lines, missing lines, unreadable replies, an expiry and bad connections at once: every
    row has the score of an undisturbed run."""
    expected, _ = undisturbed
    shares = {"429": 0.1, "500": 0.05, "drop": 0.03, "malformed": 0.05}
    judge_server.faults(fail=shares, fail_attempts=2)
    judge_server.batch_faults(
        expire_at=0.5, expire_batches=1, drop_steps={"create": 1, "look": 2}, fail_steps={"look": 2}
    )
    finish(write_settings(tmp_path, judge_server))
    pd.testing.assert_frame_equal(scores_of(tmp_path / "ragmetrics-store"), expected)


async def deployed() -> str:
    """The id of a deployment of the nightly."""
    from prefect import get_client

    from flows.nightly import nightly

    async with get_client() as client:
        flow = await client.create_flow(nightly)
        return str(await client.create_deployment(flow_id=flow, name=f"night {time.time_ns()}"))


async def planned(deployment: str) -> list[Any]:
    """The runs of a deployment."""
    from prefect import get_client
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

    which = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
    async with get_client() as client:
        return list(await client.read_flow_runs(deployment_filter=which))


@pytest.mark.usefixtures("prefect_server")
def test_a_deployed_night_gives_its_worker_back_and_comes_again(
    judge_server: JudgeServer,
    undisturbed: tuple[pd.DataFrame, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While batches are at work the run ends as Waiting, publishes nothing, and the same night is
    scheduled for later; that run finds the batches and publishes."""
    from flows import run_state as waiting
    from flows.nightly import nightly

    judge_server.batch_faults(delay_seconds=3600)
    settings = write_settings(tmp_path, judge_server, wait_seconds=1)
    deployment = asyncio.run(deployed())
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", deployment)
    state = nightly(str(settings), NIGHT, return_state=True)
    assert (state.name, state.is_completed()) == ("Waiting", True), state
    assert "is still in progress" in str(state.message)
    assert not (tmp_path / "ragmetrics-store" / "runs").exists()

    (later,) = asyncio.run(planned(deployment))
    assert later.state.is_scheduled()
    assert later.parameters == {"settings": str(settings), "date": str(NIGHT)}
    ahead = later.state.state_details.scheduled_time - datetime.now(UTC)
    assert timedelta(0) < ahead <= waiting.BACK_AFTER

    judge_server.batch_faults(delay_seconds=0)
    for _ in range(3):  # a wave each
        state = nightly(**later.parameters, return_state=True)
        if state.name != "Waiting":
            break
    assert state.is_completed(), state
    expected, needed = undisturbed
    pd.testing.assert_frame_equal(scores_of(tmp_path / "ragmetrics-store"), expected)
    assert judge_server.batch_stats()["answered"] == needed["answered"]


@pytest.mark.usefixtures("prefect_server")
def test_a_deployed_night_does_not_wait_for_ever(
    judge_server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days after it began, the night is published as far as it got, and fails as such."""
    from flows import run_state as waiting
    from flows.nightly import nightly

    monkeypatch.setattr(waiting, "LONGEST", timedelta(0))
    judge_server.batch_faults(delay_seconds=3600)
    settings = write_settings(tmp_path, judge_server, wait_seconds=1)
    deployment = asyncio.run(deployed())
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", deployment)
    state = nightly(str(settings), NIGHT, return_state=True)
    assert state.is_failed()
    assert list((tmp_path / "ragmetrics-store" / "runs").rglob("*.json"))
    assert asyncio.run(planned(deployment)) == []


@pytest.mark.usefixtures("prefect_server")
def test_a_night_by_hand_does_not_wait_longer_than_it_is_told(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Without a deployment there is nobody to come back: the run fails and says what to do."""
    from flows.nightly import nightly

    judge_server.batch_faults(delay_seconds=3600)
    settings = write_settings(tmp_path, judge_server, wait_seconds=1)
    state = nightly(str(settings), NIGHT, return_state=True)
    assert state.is_failed()
    assert "the same command continues with it" in str(state.message)
    assert on_record(tmp_path)
