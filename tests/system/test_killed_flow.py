"""A night killed with `kill -9` under a worker that lives: one further start, one message."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.builders import night_values, save_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_live import Live, kill_flow, prefect_live
from tests.fakes.processes import ROOT, running
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.timeout(1200)

ROWS = 100
CONCURRENCY = 4


@dataclass(frozen=True)
class Killed:
    """What became of the run."""

    run: dict[str, Any]
    states: list[dict[str, Any]]
    """All that it was in, in order."""
    asked: int
    """Requests to the judge, in all,"""
    needed: int
    """and judgements that the night needed."""
    messages: list[str]
    """All that Slack was told."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Killed once, in the midst of it, with the automations as they are installed."""
    folder = tmp_path_factory.mktemp("killed")
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(ROWS, good=0.7))
    with (
        running("tests.fakes.judge") as port,
        SlackServer().running() as slack,
        prefect_live(folder / "prefect", OPENAI_API_KEY="testing") as live,
    ):
        judge = JudgeServer(port)
        install(live, slack)
        settings = write_settings(folder, judge)
        with live.worker(SLACK_WEBHOOK_URL=slack.url):
            run = kill_in_the_midst(live, judge, settings)
            ended = live.wait_for(lambda: over(live, run), seconds=400, every=2)
        states = live.get(f"/flow_run_states/?flow_run_id={run}")
        asked = judge.stats()["requests"]
    replies = (folder / "store" / "judgements").rglob("*.parquet")
    needed = sum(len(pd.read_parquet(file)) for file in replies)
    messages = [json.dumps(message) for message in slack.received]
    in_order = sorted(states, key=lambda state: str(state["timestamp"]))
    return Killed(ended or {}, in_order, asked, needed, messages)


def install(live: Live, slack: SlackServer) -> None:
    """Deploy all, and the automations with their own times."""
    live.post("/work_pools/", {"name": "ragmetrics", "type": "process"})
    live.cli("deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    subprocess.run(
        [sys.executable, "-m", "flows.automations", "apply"],
        cwd=ROOT,
        env={**live.environment, "SLACK_WEBHOOK_URL": slack.url},
        check=True,
        capture_output=True,
        timeout=180,
    )


def write_settings(folder: Path, judge: JudgeServer) -> Path:
    """Settings with two shards and a rule that the night breaks."""
    endpoint = {"model": "fake", "base_url": judge.base_url, "concurrency": CONCURRENCY}
    return save_settings(
        folder,
        night_values(
            folder,
            dataset="towers",
            metrics=["context_relevance", "context_recall"],
            shards=2,
            judge={"name": "openai", **endpoint},
            rules=[{"metric": "context_recall", "min": 0.9}],
        ),
        name="night.yaml",
    )


def kill_in_the_midst(live: Live, judge: JudgeServer, settings: Path) -> str:
    """Start the night and kill its process once a third is asked. The judge stays slow: the worker
    reports the crash 13 seconds after the process that watched the run."""
    judge.faults(latency_ms=400)
    deployment = live.get("/deployments/name/nightly/nightly")["id"]
    body = {"parameters": {"settings": str(settings), "date": str(NIGHT)}}
    run: str = live.post(f"/deployments/{deployment}/create_flow_run", body)["id"]
    live.wait_for(lambda: judge.stats()["requests"] >= ROWS, seconds=200, every=0.1)
    assert kill_flow(run)
    return run


def over(live: Live, run: str) -> dict[str, Any] | None:
    """A run, once it has ended for good."""
    found: dict[str, Any] = live.get(f"/flow_runs/{run}")
    return found if found["state_type"] in ("COMPLETED", "FAILED", "CANCELLED") else None


def test_one_kill_is_one_further_start(killed: Killed) -> None:
    """The run crashed once, for all that the server knows, and its second start finished it."""
    assert killed.run["state_name"] == "Completed", killed.states
    assert killed.run["run_count"] == 2, killed.states
    [crash] = [state for state in killed.states if state["type"] == "CRASHED"]
    assert "status code: -9" in crash["message"]


def test_nothing_is_asked_twice(killed: Killed) -> None:
    """But for what was in flight when it was killed: two families on two shards."""
    assert 0 <= killed.asked - killed.needed <= 4 * CONCURRENCY


def test_slack_is_told_once(killed: Killed) -> None:
    """Of the crash, and of the night's regression."""
    assert len(killed.messages) == 2, killed.messages
    crash, night = killed.messages
    assert "nightly crashed, and is run again" in crash
    assert f"night of {NIGHT}" in night
