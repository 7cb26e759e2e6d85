"""A night killed in the middle is finished by the same command, and no reply is paid for twice."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pandas as pd
import yaml

from tests.builders import judge_at, scores_of
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_live import started
from tests.fakes.processes import ROOT

ROWS = 120
CONCURRENCY = 4


def command(settings: Path, night: date = NIGHT) -> list[str]:
    """The nightly as a user starts it."""
    return [
        sys.executable,
        "-m",
        "flows.nightly",
        "--settings",
        str(settings),
        "--date",
        str(night),
    ]


def write_settings(folder: Path, judge: JudgeServer) -> Path:
    """A night of two shards in a local folder."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(ROWS, good=0.7))
    path = folder / "ragmetrics.yaml"
    values = {
        "metrics": ["context_relevance", "context_recall"],
        "shards": 2,
        "judge": judge_at(judge, concurrency=CONCURRENCY),
    }
    path.write_text(yaml.safe_dump(values))
    return path


def start_and_kill(settings: Path, judge: JudgeServer, after: int) -> int:
    """Kill the nightly with SIGKILL after so many requests; return how many were in flight."""
    with started(command(settings), ROOT, os.environ, settings.with_name("output")) as process:
        deadline = time.monotonic() + 120
        while judge.stats()["requests"] < after:
            assert process.poll() is None, "the night ended before it was killed"
            assert time.monotonic() < deadline, "the night never began"
            time.sleep(0.02)
    # The block's end killed it, with SIGKILL.
    return int(judge.stats()["max_in_flight"])


def test_a_killed_night_is_resumed_and_repeats_only_what_was_in_flight(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """After kill -9, the same command gives the scores of an undisturbed run, and the judge is
    asked no request twice beyond those in flight at the kill."""
    undisturbed = write_settings(tmp_path / "undisturbed", judge_server)
    subprocess.run(command(undisturbed), cwd=ROOT, check=True, capture_output=True)
    needed = judge_server.stats()["requests"]

    judge_server.reset()
    judge_server.faults(latency_ms=60)
    killed = write_settings(tmp_path / "killed", judge_server)
    in_flight = start_and_kill(killed, judge_server, after=needed // 3)
    done = subprocess.run(command(killed), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    stats = judge_server.stats()
    assert in_flight <= 4 * CONCURRENCY  # two families on two shards
    assert stats["requests"] <= needed + in_flight
    assert max(stats["by_hash"].values()) <= 2
    pd.testing.assert_frame_equal(
        scores_of(tmp_path / "killed" / "ragmetrics-store"),
        scores_of(tmp_path / "undisturbed" / "ragmetrics-store"),
    )
