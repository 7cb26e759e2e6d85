"""Worker and flow killed with `kill -9` in mid-night: it is noticed, and the night finished."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROWS = 160
CONCURRENCY = 4
PLANNED = "2026-11-20T05:30:00+00:00"
"""When the schedule wanted the night of NIGHT to run."""
HEARTBEAT = "30"
"""Seconds, the least that Prefect allows;"""
ZOMBIE_AFTER = "60s"
"""and how long a run may be silent."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A Prefect server."""
    with prefect_live(tmp_path_factory.mktemp("prefect")) as server:
        yield server


def write_settings(folder: Path, judge: JudgeServer) -> Path:
    """A night of two shards in a local folder, whose recall is below what its rule allows."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(ROWS, good=0.7))
    path = folder / "ragmetrics.yaml"
    values = {
        "metrics": ["context_relevance", "context_recall"],
        "shards": 2,
        "judge": {
            "name": "openai",
            "model": "fake",
            "base_url": judge.base_url,
            "concurrency": CONCURRENCY,
        },
        "alerts": {"rules": [{"metric": "context_recall", "min": 0.9}]},
    }
    path.write_text(yaml.safe_dump(values))
    return path


def scores(folder: Path) -> pd.DataFrame:
    """All scores of a store, in a fixed order."""
    parts = sorted((folder / "ragmetrics-store" / "scores").rglob("*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)


def run_by_hand(live: Live, settings: Path) -> None:
    """The same night, undisturbed, with nobody told."""
    environment = {name: v for name, v in live.environment.items() if name != "SLACK_WEBHOOK_URL"}
    command = [sys.executable, "-m", "flows.nightly", "--settings", str(settings)]
    done = subprocess.run(
        [*command, "--date", str(NIGHT)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr  # the rule fires


def install(live: Live, slack: SlackServer) -> str:
    """Deploy the nightly and the automations as an installation has them; returns its id."""
    live.cli("work-pool", "create", "ragmetrics", "--type", "process")
    live.cli("deploy", "--prefect-file", "deployments/prefect.yaml", "--name", "nightly")
    subprocess.run(
        [sys.executable, "-m", "flows.automations", "apply", "--zombie-after", ZOMBIE_AFTER],
        cwd=ROOT,
        env={**live.environment, "SLACK_WEBHOOK_URL": slack.url},
        check=True,
        capture_output=True,
        timeout=120,
    )
    deployment: str = live.get("/deployments/name/nightly/nightly")["id"]
    return deployment


def plan_run(live: Live, deployment: str, settings: Path) -> str:
    """A run of the deployment, planned as its schedule would have; returns its id."""
    body = {
        "parameters": {"settings": str(settings)},
        "state": {"type": "SCHEDULED", "state_details": {"scheduled_time": PLANNED}},
    }
    run: str = live.post(f"/deployments/{deployment}/create_flow_run", body)["id"]
    return run


def states(live: Live, run: str) -> list[dict[str, Any]]:
    """All states that a run was in, in order."""
    found: list[dict[str, Any]] = live.get(f"/flow_run_states/?flow_run_id={run}")
    return sorted(found, key=lambda state: str(state["timestamp"]))


@pytest.mark.timeout(600)
def test_a_night_killed_with_its_worker_is_finished_by_the_next_one(
    live: Live, tmp_path: Path, judge_server: JudgeServer, slack_server: SlackServer
) -> None:
    """Nobody is left to say that the run died. The missing heartbeats do: the run is marked as
    crashed, waits for a worker again, and ends with the scores of an undisturbed night. No finished
    judgement is asked again, and Slack is told once of the crash and once of the regression."""
    run_by_hand(live, write_settings(tmp_path / "undisturbed", judge_server))
    needed = judge_server.stats()["requests"]
    judge_server.reset()
    judge_server.faults(latency_ms=120)

    settings = write_settings(tmp_path / "killed", judge_server)
    environment = {
        "SLACK_WEBHOOK_URL": slack_server.url,
        "OPENAI_API_KEY": "testing",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": HEARTBEAT,
    }
    run = plan_run(live, install(live, slack_server), settings)
    with live.worker(**environment):
        live.wait_for(
            lambda: judge_server.stats()["requests"] >= needed // 3, seconds=120, every=0.02
        )
    # The block's end killed the worker, and the flow that it had started, with SIGKILL.
    in_flight = judge_server.stats()["max_in_flight"]
    assert live.get(f"/flow_runs/{run}")["state_name"] == "Running"
    assert not slack_server.received

    with live.worker(**environment):
        ended = live.wait_for(lambda: ended_run(live, run), seconds=240)
    assert ended["state_name"] == "Completed", live.logs()
    assert ended["run_count"] == 2
    crash = next(state for state in states(live, run) if state["type"] == "CRASHED")
    assert "No sign of life" in crash["message"]

    stats = judge_server.stats()
    assert in_flight <= 4 * CONCURRENCY  # two families on two shards
    assert stats["requests"] <= needed + in_flight
    assert max(stats["by_hash"].values()) <= 2
    pd.testing.assert_frame_equal(scores(tmp_path / "killed"), scores(tmp_path / "undisturbed"))

    messages = [json.dumps(message) for message in slack_server.received]
    assert len(messages) == 2, messages
    assert "crashed, and is run again" in messages[0]
    assert "context_recall" in messages[1]


def ended_run(live: Live, run: str) -> dict[str, Any] | None:
    """The run, once it has ended for good."""
    found: dict[str, Any] = live.get(f"/flow_runs/{run}")
    return found if found["state_type"] in ("COMPLETED", "FAILED", "CANCELLED") else None
