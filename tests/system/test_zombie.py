"""Worker and flows killed with `kill -9` in the midst of a night and of a gate: it is noticed, and
both are finished.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragmetrics.comparison import load_gate
from ragmetrics.storage import Files
from tests.builders import judge_at, save_settings, scores_of
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.postgres import postgres
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.processes import ROOT, running
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.timeout(1200)

ROWS, QUESTIONS = 100, 60
CONCURRENCY = 4
PLANNED = "2026-11-20T05:30:00+00:00"
"""When the schedule wanted the night of NIGHT to run."""
HEARTBEAT = "30"
"""Seconds, the least that Prefect allows;"""
SOON = ("--zombie-after", "60s", "--crashed-after", "10s")
"""and how long a run may be silent."""
NIGHT_BY_HAND = ["flows.nightly", "--date", str(NIGHT)]
GATE_BY_HAND = ["ragmetrics", "gate", "--build", "green", "--against", "blue"]
GREEN = {"dataset": "towers", "build": "green", "serving": "blue"}


@dataclass
class Work:
    """A night or a gate that is killed in the midst of it, with a judge of its own."""

    folder: Path
    name: str
    judge: JudgeServer
    needed: int = 0
    """Requests of the same work, undisturbed,"""
    asked: int = 0
    """and those until it was killed,"""
    bodies: dict[str, int] = field(default_factory=dict)
    """by their body."""
    killed_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    run: dict[str, Any] = field(default_factory=dict)
    """The run at its end,"""
    states: list[dict[str, Any]] = field(default_factory=list)
    """all states that it was in, in order,"""
    stats: dict[str, Any] = field(default_factory=dict)
    """and what the judge was asked in all."""

    def store(self, kind: str = "") -> Path:
        """What it writes to; of kind `undisturbed`, what the same work by hand did."""
        return self.folder / f"{self.name}{kind}"

    def settings(self, kind: str = "") -> Path:
        """Write settings: two shards, and a rule that the night breaks."""
        return save_settings(
            self.folder,
            name=f"{self.name}{kind}.yaml",
            dataset="towers",
            logs=f"{self.folder}/logs/dt={{date}}/",
            store=str(self.store(kind)),
            metrics=["context_relevance", "context_recall"],
            shards=2,
            judge=judge_at(self.judge, concurrency=CONCURRENCY),
            gate={"logs": f"{self.folder}/builds/{{build}}/"},
            alerts={"rules": [{"metric": "context_recall", "min": 0.9}]},
        )

    def do_undisturbed(self, live: Live, command: list[str]) -> None:
        """Do the same by hand, with nobody told, and count what it asks; then be slow."""
        done = subprocess.run(
            [sys.executable, "-m", *command, "--settings", str(self.settings("undisturbed"))],
            cwd=ROOT,
            env=live.environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 1, done.stderr  # the rule fires, the build is held
        self.needed = self.judge.stats()["requests"]
        self.judge.reset()
        self.judge.faults(latency_ms=300)

    def is_underway(self) -> bool:
        """Whether a third of it was asked."""
        return bool(self.judge.stats()["requests"] >= self.needed // 3)

    def note_killed(self) -> None:
        """Take down how far it came; from then on it goes as fast as it can."""
        stats, self.killed_at = self.judge.stats(), datetime.now(UTC)
        self.asked, self.bodies = stats["requests"], stats["by_hash"]
        self.judge.faults(latency_ms=0)

    def note_ended(self, live: Live, run: str) -> None:
        """Take down what became of it."""
        self.run, self.stats = live.get(f"/flow_runs/{run}"), self.judge.stats()
        states = live.get(f"/flow_run_states/?flow_run_id={run}")
        self.states = sorted(states, key=lambda state: str(state["timestamp"]))

    def kept(self) -> int:
        """Judgements that were in the store when it was killed."""
        files = (self.store() / "judgements").rglob("*.parquet")
        moments = pd.concat([pd.read_parquet(file, columns=["judged_at"]) for file in files])
        return int((moments["judged_at"] < self.killed_at).sum())

    def assert_finished(self) -> None:
        """The next worker finished the run, and asked for what was not in the store alone."""
        assert self.run["state_name"] == "Completed", self.states
        assert self.run["run_count"] == 2
        crash = next(state for state in self.states if state["type"] == "CRASHED")
        assert "No sign of life" in crash["message"]
        assert self.needed // 3 <= self.asked < self.needed
        kept = self.kept()
        assert 0 <= self.asked - kept <= 4 * CONCURRENCY  # two families on two shards
        again = [body for body, n in self.stats["by_hash"].items() if n > self.bodies.get(body, 0)]
        # On a busy machine a request may be sent twice: it is one of those that were needed.
        assert len(again) <= self.needed - kept


@dataclass(frozen=True)
class Aftermath:
    """A night and a gate that died with their worker, and were finished by the next one."""

    night: Work
    gate: Work
    messages: list[str]
    """All that Slack was told."""


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """Both are killed by one blow, so that their silence is waited for once."""
    folder = tmp_path_factory.mktemp("killed")
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(ROWS, good=0.7))
    for build, good in (("blue", 0.95), ("green", 0.4)):
        rows = make_rows(QUESTIONS, good=good, index_build=build)
        write_jsonl(folder / "builds" / build / "log.jsonl", rows)
    with ExitStack() as stack:
        judges = [JudgeServer(stack.enter_context(running("tests.fakes.judge"))) for _ in range(2)]
        slack = stack.enter_context(SlackServer().running())
        # Two flows, a worker and the automations write at once: SQLite is locked for some of them.
        database = stack.enter_context(postgres("testing"))
        environment = {**database.prefect, "OPENAI_API_KEY": "testing"}
        live = stack.enter_context(prefect_live(folder / "prefect", **environment))
        night, gate = Work(folder, "night", judges[0]), Work(folder, "gate", judges[1])
        with ThreadPoolExecutor() as at_once:  # each is a process with a judge of its own
            begun = [
                at_once.submit(night.do_undisturbed, live, NIGHT_BY_HAND),
                at_once.submit(gate.do_undisturbed, live, GATE_BY_HAND),
                at_once.submit(install, live, slack),
            ]
        for work in begun:
            work.result()
        runs = {
            plan_run(live, "nightly", settings=str(night.settings())): night,
            plan_run(live, "index-build", settings=str(gate.settings()), build=GREEN): gate,
        }
        kill_and_finish(live, slack, runs)
    return Aftermath(night, gate, [json.dumps(message) for message in slack.received])


def install(live: Live, slack: SlackServer) -> None:
    """Deploy all, and the automations, as an installation has them."""
    live.post("/work_pools/", {"name": "ragmetrics", "type": "process"})
    live.cli("deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    subprocess.run(
        # No worker lives that could report the crash as well.
        [sys.executable, "-m", "flows.automations", "apply", *SOON],
        cwd=ROOT,
        env={**live.environment, "SLACK_WEBHOOK_URL": slack.url},
        check=True,
        capture_output=True,
        timeout=180,
    )


def plan_run(live: Live, name: str, **parameters: Any) -> str:
    """A run of a deployment, planned as the nightly's schedule would have; returns its id."""
    deployment = live.get(f"/deployments/name/{name}/{name}")["id"]
    state = {"type": "SCHEDULED", "state_details": {"scheduled_time": PLANNED}}
    body = {"parameters": parameters, "state": state}
    run: str = live.post(f"/deployments/{deployment}/create_flow_run", body)["id"]
    return run


def kill_and_finish(live: Live, slack: SlackServer, runs: dict[str, Work]) -> None:
    """One worker begins all runs and dies with them in the midst; another one comes."""
    environment = {
        "SLACK_WEBHOOK_URL": slack.url,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": HEARTBEAT,
    }
    with live.worker(**environment):
        live.wait_for(
            lambda: all(work.is_underway() for work in runs.values()), seconds=240, every=0.02
        )
    # The block's end killed the worker, and the flows that it had started, with SIGKILL.
    for run, work in runs.items():
        assert live.get(f"/flow_runs/{run}")["state_name"] == "Running"
        work.note_killed()
    assert not slack.received
    with live.worker(**environment):
        live.wait_for(lambda: all(is_over(live, run) for run in runs), seconds=240)
    for run, work in runs.items():
        work.note_ended(live, run)


def is_over(live: Live, run: str) -> bool:
    """Whether a run has ended for good."""
    return live.get(f"/flow_runs/{run}")["state_type"] in ("COMPLETED", "FAILED", "CANCELLED")


def verdict(store: Path) -> dict[str, Any]:
    """The verdict on the build, apart from when, for how much, and whether it was told."""
    gate = load_gate(Files(str(store)), "green")
    assert gate is not None
    return gate.model_dump(exclude={"started_at", "finished_at", "usage", "told", "heard"})


def test_a_night_killed_with_its_worker_is_finished_by_the_next_one(aftermath: Aftermath) -> None:
    """Nobody is left to say that the run died. The missing heartbeats do: the run is marked as
    crashed, waits for a worker again, and ends with the scores of an undisturbed night."""
    night = aftermath.night
    night.assert_finished()
    pd.testing.assert_frame_equal(scores_of(night.store()), scores_of(night.store("undisturbed")))


def test_a_gate_killed_with_its_worker_comes_to_the_same_verdict(aftermath: Aftermath) -> None:
    """It is noticed as a night is, and the verdict is that of an undisturbed gate."""
    gate = aftermath.gate
    gate.assert_finished()
    found = verdict(gate.store())
    assert found["verdict"] == "hold"
    assert found == verdict(gate.store("undisturbed"))


def test_slack_is_told_once_of_each(aftermath: Aftermath) -> None:
    """Of either crash, of the regression and of the held build; and of nothing else."""
    about = [
        "nightly crashed, and is run again",
        "index-build crashed, and is run again",
        f"night of {NIGHT}",
        "index build green is held",
    ]
    messages = aftermath.messages
    assert [sum(text in message for message in messages) for text in about] == [1] * 4
    assert len(messages) == 4, messages
