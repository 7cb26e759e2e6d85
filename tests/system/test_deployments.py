"""The deployments of deployments/prefect.yaml, from a fresh clone, on a live server and worker."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import judge_at, night_values
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.clone import fresh_clone
from tests.fakes.console import Terminal, at_a_terminal, blocks, plain
from tests.fakes.logs import make_rows
from tests.fakes.prefect_live import PREFECT, Live, prefect_live
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.timeout(1200)

DEPLOY = ["deploy", "--all", "--prefect-file", "deployments/prefect.yaml"]
NAMES = {one["name"] for one in yaml.safe_load((ROOT / DEPLOY[-1]).read_text())["deployments"]}
ROWS = 12
AUTH = "admin:a password"


@dataclass(frozen=True)
class Installed:
    """A server to which the clone was deployed."""

    live: Live
    clone: Path
    printed: str
    """By `prefect deploy`, at a terminal."""

    def deployment(self, name: str) -> dict[str, Any]:
        """What the server knows of a deployment; its flow has the same name."""
        found: dict[str, Any] = self.live.get(f"/deployments/name/{name}/{name}")
        return found

    def planned(self, name: str) -> list[datetime]:
        """When the runs that the scheduler made for a deployment are to start."""
        where = {"deployments": {"id": {"any_": [self.deployment(name)["id"]]}}}
        runs = self.live.post("/flow_runs/filter", {**where, "sort": "EXPECTED_START_TIME_ASC"})
        return [
            datetime.fromisoformat(run["expected_start_time"]).astimezone(UTC)
            for run in runs
            if run["state_type"] == "SCHEDULED" and run["auto_scheduled"]
        ]

    def start(self, moment: datetime, **parameters: Any) -> str:
        """Plan a run of the nightly; return its id."""
        state = {"type": "SCHEDULED", "state_details": {"scheduled_time": moment.isoformat()}}
        path = f"/deployments/{self.deployment('nightly')['id']}/create_flow_run"
        run = self.live.post(path, {"state": state, "parameters": parameters})
        return str(run["id"])

    def ended(self, run: str, seconds: float = 240) -> dict[str, Any]:
        """A run, once it is over."""

        def final() -> dict[str, Any] | None:
            found: dict[str, Any] = self.live.get(f"/flow_runs/{run}")
            over = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
            return found if found["state_type"] in over else None

        found = self.live.wait_for(final, seconds=seconds)
        assert found is not None
        return found

    def log(self, run: str) -> str:
        """What a run logged at the server."""
        where = {"logs": {"flow_run_id": {"any_": [run]}}, "limit": 200}
        return "\n".join(entry["message"] for entry in self.live.post("/logs/filter", where))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """A server with a password, the pool, and all deployments of a fresh clone, made by the
    documented commands."""
    folder = tmp_path_factory.mktemp("installed")
    clone = fresh_clone(folder / "clone")
    password = dict.fromkeys(("PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING"), AUTH)
    with prefect_live(folder / "prefect", **password) as live:
        live.cli("work-pool", "create", "ragmetrics", "--type", "process", cwd=clone)
        asking = {name: value for name, value in live.environment.items() if "PROMPT" not in name}
        done = subprocess.run(
            at_a_terminal(*PREFECT, *DEPLOY),
            cwd=clone,
            env={**asking, "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=300,
        )
        assert done.returncode == 0, plain(done.stdout)
        yield Installed(live, clone, plain(done.stdout))


def write_settings(path: Path, bucket: Bucket, **changes: Any) -> None:
    """Settings of a night in the bucket, judged without network."""
    values = night_values(bucket.uri, metrics=["context_relevance"]) | changes
    path.write_text(yaml.safe_dump(values))


def put_logs(bucket: Bucket, *nights: date) -> None:
    """A log of each night."""
    for night in nights:
        body = "".join(json.dumps(row) + "\n" for row in make_rows(ROWS, night=night)).encode()
        bucket.client.put_object(Bucket=bucket.name, Key=f"logs/dt={night}/log.jsonl", Body=body)


def night_of(moment: datetime) -> date:
    """The night of a run that was planned for a moment."""
    return moment.astimezone(UTC).date() - timedelta(days=1)


def aws() -> dict[str, str]:
    """What a worker needs to reach the bucket."""
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def test_all_deployments_are_there_and_the_nightly_is_in_the_schedule(
    installed: Installed,
) -> None:
    """The scheduler plans runs (under SQLAlchemy 2.1 it silently plans none), at 05:30 UTC; what
    has no schedule, or one that is off, has none; pruning is weekly."""
    for name in NAMES:
        deployment = installed.deployment(name)
        assert deployment["work_pool_name"] == "ragmetrics"
        assert deployment["parameters"]["settings"] == str(installed.clone / "ragmetrics.yaml")
        assert deployment["global_concurrency_limit"] is None
        assert deployment["work_queue_name"] == name
        queue = installed.live.get(f"/work_pools/ragmetrics/queues/{name}")
        assert queue["concurrency_limit"] == 1
    planned = installed.live.wait_for(lambda: installed.planned("nightly"))
    assert {(moment.hour, moment.minute) for moment in planned} == {(5, 30)}
    assert planned[0] - datetime.now(UTC) < timedelta(days=1)
    assert planned[1] - planned[0] == timedelta(days=1)
    for name in NAMES - {"nightly", "prune"}:
        assert installed.planned(name) == []


def test_variables_move_schedule_settings_and_pool_and_deploying_again_keeps_them(
    installed: Installed,
) -> None:
    """No file is edited: the server remembers cron, time zone and settings; unset, they are the
    defaults again. PREFECT_DEFAULT_WORK_POOL_NAME wins over the name that the checkout has; a pool
    that is not there is refused."""
    live, clone = installed.live, installed.clone
    with pytest.raises(AssertionError, match="'night-shift' which does not exist"):
        live.cli(*DEPLOY, cwd=clone, PREFECT_DEFAULT_WORK_POOL_NAME="night-shift")
    live.post("/work_pools/", {"name": "night-shift", "type": "process"})
    wanted = {
        "ragmetrics_cron": "15 7 * * *",
        "ragmetrics_timezone": "Asia/Kolkata",
        "ragmetrics_settings": "/etc/rag metrics/a 'b' $c.yaml",
        "ragmetrics_calibrate_cron": "0 1 * * 2",
    }
    for name, value in wanted.items():
        live.post("/variables/", {"name": name, "value": value})
    try:
        live.cli(*DEPLOY, cwd=clone, PREFECT_DEFAULT_WORK_POOL_NAME="night-shift")
        nightly, calibrate = installed.deployment("nightly"), installed.deployment("calibrate")
        assert nightly["work_pool_name"] == "night-shift"
        [schedule] = nightly["schedules"]
        assert schedule["schedule"]["cron"] == "15 7 * * *"
        assert schedule["schedule"]["timezone"] == "Asia/Kolkata"
        assert nightly["parameters"]["settings"] == wanted["ragmetrics_settings"]
        assert calibrate["schedules"][0]["active"] is True
        times = {(1, 45)}
        live.wait_for(
            lambda: {(at.hour, at.minute) for at in installed.planned("nightly")} == times
        )
    finally:
        for name in wanted:
            live.delete(f"/variables/name/{name}")
        live.cli(*DEPLOY, cwd=clone)
    nightly = installed.deployment("nightly")
    assert nightly["work_pool_name"] == "ragmetrics"
    assert nightly["parameters"]["settings"] == str(clone / "ragmetrics.yaml")
    assert installed.deployment("calibrate")["schedules"][0]["active"] is False


def test_another_data_set_is_another_deployment(installed: Installed) -> None:
    """The README's commands: the same flow of the same package, with settings, a schedule and a
    work queue of its own."""
    live, clone = installed.live, installed.clone
    [lines] = [
        [command.line for command in block.commands]
        for block in blocks(clone / "deployments/README.md")
        if block.kind == "console" and "--name towers" in block.text
    ]
    for line in lines:
        program, *words = shlex.split(line.replace("\\\n", " "))
        assert program == ".venv/bin/prefect"
        live.cli(*words, cwd=clone)
    towers, nightly = live.get("/deployments/name/nightly/towers"), installed.deployment("nightly")
    live.delete(f"/deployments/{towers['id']}")
    assert towers["parameters"]["settings"] == "/etc/ragmetrics/towers.yaml"
    assert [schedule["schedule"]["cron"] for schedule in towers["schedules"]] == ["0 6 * * *"]
    for same in ("tags", "work_pool_name", "pull_steps", "entrypoint"):
        assert towers[same] == nightly[same]
    assert towers["work_queue_name"] == "towers"
    assert live.get("/work_pools/ragmetrics/queues/towers")["concurrency_limit"] == 1


def test_deploying_at_a_terminal_asks_nothing(installed: Installed) -> None:
    """`prefect deploy` asks where it sees a terminal; with this file there is nothing to ask."""
    assert installed.printed.count("successfully created") == len(NAMES)


@dataclass(frozen=True)
class Worked:
    """What one worker did, which started in / and knows nothing of the clone."""

    planned: list[datetime]
    """When the nights that waited for it should have run, the oldest first,"""
    queued: list[dict[str, Any]]
    """and their runs, the last one twice."""
    watched: dict[str, Any]
    """The run that somebody started at a terminal, and watched."""
    lost: dict[str, Any]
    """One with settings that are not there."""
    looping: dict[str, Any]
    """One that had crashed three times, planned for a night in a year."""


A_YEAR = timedelta(days=365)


@pytest.fixture(scope="module")
def worked(installed: Installed, bucket: Bucket) -> Worked:
    """All runs wait for the worker, asked for in another order than they are planned."""
    write_settings(installed.clone / "ragmetrics.yaml", bucket)
    now = datetime.now(UTC)
    first, last = planned = [now - timedelta(days=days) for days in (9, 7)]
    put_logs(bucket, *map(night_of, [*planned, now, now + timedelta(days=1)]))  # midnight may pass
    asked = [(at, installed.start(at)) for at in (last, first, last)]
    lost = installed.start(now, settings="lost.yaml")
    looping = crashed_thrice(installed, now + A_YEAR)
    with installed.live.worker(cwd=Path("/"), **aws()):
        queued = [installed.ended(run) for _, run in sorted(asked)]
        failed = [installed.ended(run) for run in (lost, looping)]
        installed.live.cli("deployment", "run", "nightly/nightly", "--watch")
    watched = installed.live.flow_runs(state_type="COMPLETED")[-1]
    return Worked(planned, queued, watched, *failed)


def crashed_thrice(installed: Installed, moment: datetime) -> str:
    """A run planned for a moment that began three times, and is to begin now; its id."""
    run = installed.start(moment)
    for state in ("RUNNING", "SCHEDULED") * 3:
        now = {"scheduled_time": datetime.now(UTC).isoformat()} if state == "SCHEDULED" else {}
        change = {"state": {"type": state, "state_details": now}, "force": True}
        installed.live.post(f"/flow_runs/{run}/set_state", change)
    return run


def test_a_worker_that_starts_anywhere_runs_the_night_into_the_bucket(
    worked: Worked, bucket: Bucket
) -> None:
    """The run leaves scores, the manifest and a dashboard that a browser will show."""
    run = worked.watched
    night = night_of(datetime.fromisoformat(run["expected_start_time"]))
    assert night > night_of(worked.planned[-1])
    assert run["name"] == f"nightly {night}"
    [manifest] = bucket.keys(f"store/runs/dt={night}/")
    body = bucket.client.get_object(Bucket=bucket.name, Key=manifest)["Body"].read()
    assert json.loads(body)["metrics"][0]["scored"] == ROWS
    assert [key for key in bucket.keys(f"store/scores/dt={night}/") if key.endswith(".parquet")]
    for page in ("index.html", f"{night}/index.html"):
        head = bucket.client.head_object(Bucket=bucket.name, Key=f"store/dashboard/{page}")
        assert head["ContentType"].startswith("text/html")


def test_queued_nights_run_in_order_one_at_a_time(
    installed: Installed, worked: Worked, bucket: Bucket
) -> None:
    """Nights that wait for a worker, the last one twice, and were asked for in another order: each
    begins when the one before has ended, the oldest first, and the worker aborts none."""
    queued = worked.queued
    assert {run["state_type"] for run in queued} == {"COMPLETED"}, installed.live.logs()
    queued[1:] = sorted(queued[1:], key=lambda run: str(run["start_time"]))  # two of one night
    moments = [run[moment] for run in queued for moment in ("start_time", "end_time")]
    times = list(map(datetime.fromisoformat, moments))
    assert times == sorted(times)
    assert "Aborted" not in installed.live.logs()
    for moment in worked.planned:
        assert len(bucket.keys(f"store/runs/dt={night_of(moment)}/")) == 1


def test_mistakes_and_crash_loops_fail_with_one_clear_sentence(worked: Worked) -> None:
    """Settings that are not there, and a run that crashed three times, end in a failure that says
    what to do."""
    lost, looping = worked.lost, worked.looping
    assert lost["state_type"] == looping["state_type"] == "FAILED"
    assert "lost.yaml: no such settings file in " in lost["state"]["message"]
    assert "start 4 of this run" in looping["state"]["message"]
    night = night_of(datetime.fromisoformat(lost["expected_start_time"]) + A_YEAR)
    assert f"--param date={night}" in looping["state"]["message"]


@pytest.fixture(scope="module")
def only_wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that has the wheel, and the libraries of this one, but no way to
    the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = fresh_clone(folder / "source")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    bare = ["--no-deps", "--no-build-isolation"]
    run = partial(subprocess.run, check=True, capture_output=True, timeout=180)
    run([*pip, "wheel", *bare, "--wheel-dir", str(folder), str(source)])
    run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")])
    python = str(folder / "venv" / "bin" / "python")
    [wheel] = folder.glob("*.whl")
    run([*pip, "--python", python, "install", *bare, str(wheel)])
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    # A line of a .pth adds a folder; the .pth of an editable install in that folder is not read.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_a_late_run_keeps_its_night_on_a_worker_without_a_checkout(
    installed: Installed, s3: Bucket, tmp_path: Path, only_wheel: str
) -> None:
    """A run planned for three days ago evaluates the night before that; its worker, in an empty
    folder, has the wheel alone and settings where the deployment says."""
    write_settings(installed.clone / "ragmetrics.yaml", s3, dataset="wheel")
    planned = datetime.now(UTC) - timedelta(days=3)
    put_logs(s3, night_of(planned))
    where = "import flows, tasks, ragmetrics; print(flows.__file__, tasks.__file__)"
    found = subprocess.run([only_wheel, "-c", where], cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.count(str(Path(only_wheel).parents[1])) == 2, found.stderr
    run = installed.start(planned)
    with installed.live.worker(cwd=tmp_path, python=only_wheel, **aws()):
        ended = installed.ended(run)
    assert ended["state_type"] == "COMPLETED", installed.log(run)
    assert ended["name"] == f"nightly {night_of(planned)}"
    [manifest] = s3.keys(f"store/runs/dt={night_of(planned)}/")
    body = s3.client.get_object(Bucket=s3.name, Key=manifest)["Body"].read()
    assert json.loads(body)["dataset"] == "wheel"


def test_secrets_as_blocks_reach_the_run_and_nobody_else(
    installed: Installed,
    s3_strict: Bucket,
    judge_server: JudgeServer,
    slack_server: SlackServer,
    tmp_path: Path,
) -> None:
    """The README's commands, typed as they stand: judge and bucket accept the blocks' keys alone,
    Slack is told at the block's address alone, and none is in a run, deployment, pool or log."""
    key = "sk-of-the-block-4711"
    judge_server.faults(api_key=key)
    (installed.clone / ".venv").symlink_to(sys.prefix)
    commands = next(
        block.commands
        for block in blocks(installed.clone / "deployments/README.md")
        if "prefect.blocks.system import Secret" in block.text
    )
    secrets = {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    secrets |= {"OPENAI_API_KEY": key, "SLACK_WEBHOOK_URL": slack_server.url}
    terminal = Terminal(installed.clone, {**installed.live.environment, **secrets})
    for command in commands:
        terminal.run(command)
    judge = judge_at(judge_server)
    write_settings(tmp_path / "judged.yaml", s3_strict, judge=judge)
    now = datetime.now(UTC)
    put_logs(s3_strict, night_of(now))
    run = installed.start(now, settings=str(tmp_path / "judged.yaml"))
    wrong = dict.fromkeys(secrets, "wrong") | {"SLACK_WEBHOOK_URL": "http://127.0.0.1:9/wrong"}
    with installed.live.worker(cwd=tmp_path, **{**aws(), **wrong}):
        ended = installed.ended(run)
    assert ended["state_type"] == "COMPLETED", installed.log(run)
    assert slack_server.delivered  # that a night of so few rows says nothing
    shown = [
        ended,
        installed.log(run),
        installed.deployment("nightly"),
        installed.live.get("/work_pools/ragmetrics"),
        *(log.read_text("utf-8", "replace") for log in installed.live.folder.glob("*.log")),
    ]
    assert "prefect.blocks.secret.openai-api-key" in str(shown)
    for secret in secrets.values():
        assert secret not in str(shown)


def test_a_server_with_a_password_turns_others_away(installed: Installed) -> None:
    """With PREFECT_SERVER_API_AUTH_STRING, clients that lack it get 401; health needs none."""
    live = installed.live
    assert live.get("/work_pools/ragmetrics")["type"] == "process"
    with urllib.request.urlopen(f"{live.api}/health", timeout=120) as response:
        assert response.status == 200
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(f"{live.api}/work_pools/ragmetrics", timeout=120)
    refused.value.close()
    with pytest.raises(AssertionError, match="401"):
        live.cli("work-pool", "inspect", "ragmetrics", PREFECT_API_AUTH_STRING="admin:no")
