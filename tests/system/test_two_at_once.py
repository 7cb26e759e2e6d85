"""Two runs at once: both end, no file is corrupted, and one of them speaks for the night."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragmetrics.config import load_settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, Runs
from tests.builders import judge_at, night_values, save_settings
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer
from tests.fakes.sound import assert_sound

ROWS = 80
Process = subprocess.Popen[str]
_BEGUN: list[Process] = []
SOON = 6.0
"""Seconds until the common moment: two interpreters have started by then."""


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where logs and store are."""
    if request.param == "folder":
        return str(tmp_path)
    bucket: Bucket = request.getfixturevalue("s3")
    return bucket.uri


@pytest.fixture
def settings(tmp_path: Path, judge_server: JudgeServer, place: str) -> Callable[..., Path]:
    """Writes a settings file; the store is named."""

    def write(store: str = "store", **more: Any) -> Path:
        return save_settings(
            tmp_path,
            {
                "logs": f"{place}/logs/dt={{date}}/",
                "store": f"{place}/{store}",
                "metrics": ["context_relevance", "context_recall"],
                "shards": 4,
                "judge": judge_at(judge_server, concurrency=8),
                "alerts": {"rules": [{"metric": "context_recall", "min": 0.9}]},
                **more,
            },
            name=f"{store}.yaml",
        )

    return write


def log(place: str, name: str, rows: list[dict[str, Any]], night: date = NIGHT) -> None:
    """Write one of a night's files."""
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    Files(place).write(f"logs/dt={night}/{name}", text)


def begin(settings: Path, at: float = 0.0, night: date = NIGHT, *more: str) -> Process:
    """Start a night in a process of its own."""
    command = [sys.executable, "-m", "tests.fakes.one_night", "--settings", str(settings)]
    process = subprocess.Popen(
        [*command, "--date", str(night), "--at", str(at), *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _BEGUN.append(process)
    return process


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    """A test that fails leaves no process running."""
    yield
    while _BEGUN:
        with _BEGUN.pop() as process:
            process.kill()


def ended(process: Process) -> Manifest:
    """The manifest of a night that ended well."""
    return Manifest.model_validate_json(said(process))


def said(process: Process) -> str:
    """What a process that ended well printed."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


def scores(files: Files, run: str) -> pd.DataFrame:
    """All scores of a run, in the order of their paths."""
    paths = [info.path for info in files.below(f"scores/dt={NIGHT}/run={run}")]
    return pd.concat([pd.read_parquet(io.BytesIO(files.read(path))) for path in paths])


def page(files: Files, night: date = NIGHT) -> str:
    """A night's page."""
    return files.read(f"dashboard/{night}/index.html").decode()


def test_the_same_night_twice_at_the_same_moment(
    place: str, settings: Callable[..., Path], slack_server: SlackServer
) -> None:
    """Equal inputs are one run: both processes end well with the same numbers, which are those of
    a night alone, and people are told once, or at worst twice."""
    log(place, "a.jsonl", make_rows(ROWS, good=0.6))
    alone = run_night(load_settings(settings("alone")), NIGHT).manifest
    assert len(slack_server.delivered) == 1
    at = time.time() + SOON
    one, two = (ended(process) for process in [begin(settings(), at), begin(settings(), at)])
    assert one.run == two.run == alone.run
    assert one.metrics == two.metrics == alone.metrics
    files = Files(f"{place}/store")
    assert_sound(files)
    assert [night.run for night in Runs(files).nights()] == [alone.run]
    pd.testing.assert_frame_equal(
        scores(files, one.run), scores(Files(f"{place}/alone"), alone.run)
    )
    assert 2 <= len(slack_server.delivered) <= 3
    assert files.below("alerts/outbox") == []


def test_a_late_file_while_the_night_is_run(
    place: str, settings: Callable[..., Path], judge_server: JudgeServer, slack_server: SlackServer
) -> None:
    """The second run reads one file more and ends beside the first: whichever ends last, the one
    that looked later speaks, on the page and in the history."""
    log(place, "a.jsonl", make_rows(ROWS, good=0.6))
    judge_server.faults(latency_ms=150)
    first = begin(settings())
    wait_for(lambda: judge_server.stats()["requests"] > 0, first)
    log(place, "b.jsonl", make_rows(ROWS + 20, good=0.6)[ROWS:])
    second = begin(settings())
    one, two = ended(first), ended(second)
    assert (one.source.rows, two.source.rows) == (ROWS, ROWS + 20)
    files = Files(f"{place}/store")
    assert_sound(files)
    assert [night.run for night in Runs(files).nights()] == [two.run]
    assert f"<b>{ROWS + 20}</b>" in page(files)
    assert 1 <= len(slack_server.delivered) <= 2


def test_two_nights_at_once_lose_no_message(
    place: str, settings: Callable[..., Path], slack_server: SlackServer
) -> None:
    """Slack is down while two nights end at the same moment: what either has to tell is kept, and
    the next run sends it."""
    days = [NIGHT, NIGHT + timedelta(days=1)]
    for day in days:
        log(place, "a.jsonl", make_rows(ROWS, good=0.6, night=day), day)
    rules = [{"metric": "context_recall", "min": 0.9}]
    slack_server.fail("500")
    at = time.time() + SOON
    for process in [begin(settings(alerts={"rules": rules}), at, day) for day in days]:
        _, err = process.communicate(timeout=240)
        assert "Slack message kept for the next run" in err
    files = Files(f"{place}/store")
    assert_sound(files)
    kept = [json.loads(files.read(info.path)) for info in files.below("alerts/outbox")]
    fired = {one["night"] for one in kept}  # the later night tells nothing that the other told
    assert fired
    assert fired <= {str(day) for day in days}
    slack_server.fail(None)
    third = days[1] + timedelta(days=1)
    log(place, "a.jsonl", make_rows(ROWS, good=0.6, night=third), third)
    run_night(load_settings(settings()), third)
    texts = [message["text"] for message in slack_server.delivered]
    assert all(any(f"night of {day}" in text for text in texts) for day in fired)
    assert files.below("alerts/outbox") == []


@pytest.mark.parametrize("place", ["folder"], indirect=True)
def test_a_night_beside_a_gate(
    place: str, settings: Callable[..., Path], slack_server: SlackServer
) -> None:
    """A build is gated while the night is run: both come to what they come to alone, and the first
    page shows both. For a bucket, tests/system/test_index_build.py says so."""
    log(place, "a.jsonl", make_rows(ROWS, good=0.95, index_build="blue"))
    for build, good in (("blue", 0.95), ("green", 0.4)):
        rows = make_rows(ROWS, good=good, index_build=build)
        text = "".join(json.dumps(row) + "\n" for row in rows).encode()
        Files(place).write(f"builds/{build}/log.jsonl", text)
    written = settings(gate={"logs": f"{place}/builds/{{build}}/"}, alerts={"rules": []})
    at = time.time() + SOON
    night = begin(written, at)
    gate = begin(written, at, NIGHT, "--build", "green", "--serving", "blue")
    manifest, verdict = ended(night), json.loads(said(gate))
    assert verdict["verdict"] == "hold"
    recall = manifest.summary("context_recall")
    assert recall is not None
    assert (recall.mean, recall.scored) == (pytest.approx(0.95), ROWS)
    files = Files(f"{place}/store")
    assert_sound(files)
    assert json.loads(files.read("gates/green.json"))["verdict"] == "hold"
    first_page = files.read("dashboard/index.html").decode()
    assert str(NIGHT) in first_page
    assert "builds.html" in first_page


def wait_for(what: Callable[[], bool], process: Process) -> None:
    """Return once something is so; fail where the process ends before."""
    deadline = time.monotonic() + 120
    while not what():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_three_backfills_at_once_pay_for_each_request_once(
    tmp_path: Path, place: str, judge_server: JudgeServer
) -> None:
    """By the judge's own count: they take turns, and the later ones find the replies."""
    days = [NIGHT - timedelta(days=ago) for ago in (2, 1, 0)]
    for day in days:
        rows = [
            {**row, "user_input": f"{row['user_input']} {day}"} for row in make_rows(20, night=day)
        ]
        log(place, "a.jsonl", rows, day)
    path = save_settings(tmp_path, night_values(place, judge=judge_at(judge_server)))
    span = ["--first", str(days[0]), "--last", str(days[-1])]
    command = [sys.executable, "-m", "ragmetrics", "backfill", "--settings", str(path), *span]
    for _ in range(3):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        _BEGUN.append(process)
    outputs = [said(process) for process in list(_BEGUN)]
    assert len(outputs) == 3
    stats = judge_server.stats()
    assert stats["requests"] == len(stats["by_messages"]) == 60
