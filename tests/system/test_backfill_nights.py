"""The backfill flow on a real Prefect server: killed in the middle, repeated, silent by default."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from ragmetrics.config import load_settings
from ragmetrics.delivery import load_alerts
from ragmetrics.pipeline import run_night
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, Runs
from tests.builders import judge_at, scores_of
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.prefect_live import Live, prefect_live, started
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

FIRST = date(2026, 11, 10)
GOODS = (1.0, 0.5, None, 0.5, 1.0)
DAYS = [FIRST + timedelta(days=number) for number in range(len(GOODS))]
LOGGED = [day for day, good in zip(DAYS, GOODS, strict=True) if good is not None]
ROWS = 40
CONCURRENCY = 4


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One server for all tests of this file."""
    with prefect_live(tmp_path_factory.mktemp("prefect")) as server:
        yield server


def write_dataset(folder: Path, judge: JudgeServer) -> Path:
    """Five nights, one of them without a log; no question is asked on two of them."""
    for number, (day, good) in enumerate(zip(DAYS, GOODS, strict=True)):
        if good is not None:
            rows = make_rows(ROWS, good=good, night=day)
            for row in rows:
                row["user_input"] += f" Asked in week {number}."
            write_jsonl(folder / "logs" / f"dt={day}" / "log.jsonl", rows)
    path = folder / "ragmetrics.yaml"
    values = {
        "metrics": ["context_relevance", "context_recall"],
        "shards": 2,
        "judge": judge_at(judge, concurrency=CONCURRENCY),
        "alerts": {"rules": [{"metric": "context_recall", "min": 0.8}]},
    }
    path.write_text(yaml.safe_dump(values))
    return path


def command(settings: Path, *more: str) -> list[str]:
    """The backfill as a user starts it."""
    days = ["--first", str(DAYS[0]), "--last", str(DAYS[-1])]
    return [sys.executable, "-m", "flows.backfill", "--settings", str(settings), *days, *more]


def environment(live: Live) -> dict[str, str]:
    """That of a worker: the server, and the secrets of the moment."""
    of_prefect = {k: v for k, v in live.environment.items() if k.startswith("PREFECT")}
    # Said anew: whatever imports flows.demo in this process asks for errors alone.
    return {**os.environ, **of_prefect, "PREFECT_LOGGING_LEVEL": "INFO"}


def finish(settings: Path, live: Live, *more: str) -> str:
    """Run the backfill to its end, which is the last that its log says; return what it printed."""
    done = subprocess.run(
        command(settings, *more), cwd=ROOT, env=environment(live), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(DAYS)} nights: " in done.stderr and "; dashboard: " in done.stderr
    return done.stdout


def manifests(folder: Path) -> list[Manifest]:
    """Those of all nights, oldest first."""
    return Runs(Files(str(folder / "ragmetrics-store"))).nights()


def lived(folder: Path, judge: JudgeServer) -> None:
    """The same nights, each run on its day."""
    settings = load_settings(write_dataset(folder, judge))
    for day in LOGGED:
        run_night(settings, day)


def findings(manifest: Manifest, *without: str) -> list[dict[str, Any]]:
    """Those of a night, but for some of their fields."""
    return [one.model_dump(exclude=set(without)) for one in manifest.findings]


def test_a_killed_backfill_goes_on_and_nobody_hears_of_it(
    tmp_path: Path, live: Live, judge_server: JudgeServer, slack_server: SlackServer
) -> None:
    """Killed with -9 in the middle, the same command finishes it: no judgement is repeated but
    those in flight, scores and findings are those of nights that ran one by one, published in
    their order, and Slack stays silent."""
    lived(tmp_path / "lived", judge_server)
    needed = judge_server.stats()["requests"]
    slack_server.received.clear()
    judge_server.reset()
    judge_server.faults(latency_ms=100)

    settings = write_dataset(tmp_path / "past", judge_server)
    with started(command(settings), ROOT, environment(live), tmp_path / "output") as process:
        deadline = time.monotonic() + 120
        while judge_server.stats()["requests"] < needed // 2:
            assert process.poll() is None, "the backfill ended before it was killed"
            assert time.monotonic() < deadline, "the backfill never came to its middle"
            time.sleep(0.02)
    # The block's end killed it, with SIGKILL.
    in_flight = judge_server.stats()["max_in_flight"]
    done_before = [one.date for one in manifests(tmp_path / "past")]
    assert len(done_before) < len(LOGGED)

    judge_server.faults(latency_ms=0)
    printed = finish(settings, live)
    assert f"No logs: {DAYS[2]}" in printed

    stats = judge_server.stats()
    assert stats["requests"] <= needed + in_flight
    assert max(stats["by_hash"].values()) <= 2
    past = manifests(tmp_path / "past")
    assert [one.date for one in past] == LOGGED
    assert sorted(past, key=lambda one: one.finished_at) == past
    pd.testing.assert_frame_equal(
        scores_of(tmp_path / "past" / "ragmetrics-store"),
        scores_of(tmp_path / "lived" / "ragmetrics-store"),
    )
    for mine, its in zip(past, manifests(tmp_path / "lived"), strict=True):
        assert findings(mine, "transition") == findings(its, "transition")
    assert slack_server.received == []
    assert not (tmp_path / "past/ragmetrics-store/alerts").exists()


def test_with_alerts_it_is_as_if_the_nights_had_run_one_by_one(
    tmp_path: Path, live: Live, judge_server: JudgeServer, slack_server: SlackServer
) -> None:
    """Fired once, resolved once; a second time nothing is told."""
    lived(tmp_path / "lived", judge_server)
    expected = [one["text"] for one in slack_server.delivered]
    assert len(expected) == 2
    slack_server.delivered.clear()

    settings = write_dataset(tmp_path / "past", judge_server)
    finish(settings, live, "--alerts")
    assert [one["text"] for one in slack_server.delivered] == expected
    finish(settings, live, "--alerts")
    assert len(slack_server.delivered) == 2
    for mine, its in zip(manifests(tmp_path / "past"), manifests(tmp_path / "lived"), strict=True):
        assert findings(mine) == findings(its)
    stores = (Files(str(tmp_path / name / "ragmetrics-store")) for name in ("past", "lived"))
    mine, its = map(load_alerts, stores)
    assert mine.states.keys() == its.states.keys()
    assert mine.night == its.night == DAYS[-1]


def test_prefect_shows_which_nights_were_done(
    tmp_path: Path, live: Live, judge_server: JudgeServer
) -> None:
    """A task of each night by its date, how far it is as an artifact, and a failed run that names
    what is missing."""
    settings = write_dataset(tmp_path, judge_server)
    (tmp_path / "logs" / f"dt={DAYS[2]}").write_text("a file where a folder should be")
    done = subprocess.run(
        command(settings), cwd=ROOT, env=environment(live), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (
        f"1 of 5 nights are not finished; run the same command again to continue: {DAYS[2]}: "
        in (done.stderr)
    )
    run = max(live.flow_runs(), key=lambda one: one["start_time"])
    assert run["name"] == f"backfill {DAYS[0]} to {DAYS[-1]}"
    assert run["state_type"] == "FAILED"
    where = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    wanted = {f"{step} · {day}" for step in ("stage", "publish") for day in LOGGED}
    live.wait_for(  # the server writes task runs a little later
        lambda: wanted <= {one["name"] for one in live.post("/task_runs/filter", where)}
    )
    shown = live.post("/artifacts/latest/filter", {})
    (progress,) = [one for one in shown if one["key"] == "ragmetrics-default-backfill"]
    assert progress["data"] == 100.0
