"""A replay killed, repeated, run twice at once: questions are asked once, and the log is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from ragmetrics.comparison import run_replay
from ragmetrics.comparison.replay import checkpoint as kept
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs import find_logs
from ragmetrics.records import ReplayIncomplete
from tests.fakes.clients import Bucket
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.processes import ROOT
from tests.fakes.replays import BUILD, golden_rows, hurry, log_rows, replaying
from tests.fakes.retriever import SearchServer

CONCURRENCY = 3
KILLS = 2
QUESTIONS = 120


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where builds are: a folder, or a bucket."""
    if request.param == "local":
        return str(tmp_path / "builds" / "{build}")
    bucket: Bucket = request.getfixturevalue("s3")
    return f"{bucket.uri}/builds/{{build}}"


def logs_at(place: str) -> list[str]:
    """What a reader of logs sees there, as a gate does."""
    return [info.path for info in find_logs(place.replace("{build}", BUILD))[1]]


def content(place: str) -> list[str]:
    """The lines of the log, without their times."""
    files, infos = find_logs(place.replace("{build}", BUILD))
    lines = files.read(infos[0].path).decode().splitlines()
    return [line.split('"timestamp"')[0] for line in lines]


def half_done(settings: Settings, place: str, server: SearchServer) -> None:
    """A replay that answers the first six questions of twelve, and fails."""
    server.faults(fail={"400": 1.0}, after=6)
    with pytest.raises(ReplayIncomplete):
        run_replay(settings, BUILD, place)
    server.reset()


def test_a_replay_killed_at_any_moment_goes_on(
    tmp_path: Path, search_server: SearchServer, place: str
) -> None:
    """After each kill -9 a reader sees no log; at the end each question was answered once, but for
    those in flight at a kill, and the log is that of an undisturbed run."""
    rows = golden_rows(QUESTIONS)
    settings = replaying(tmp_path, search_server, rows, concurrency=CONCURRENCY)
    undisturbed = str(tmp_path / "undisturbed")
    run_replay(settings, BUILD, undisturbed)
    search_server.reset()
    search_server.faults(latency_ms=30)
    file = tmp_path / "ragmetrics.yaml"
    retriever = search_server.settings | {"concurrency": CONCURRENCY}
    values = {"golden": "golden.jsonl", "gate": {"logs": place}, "retriever": retriever}
    file.write_text(yaml.safe_dump(values))
    command = [sys.executable, "-m", "ragmetrics", "replay", "--settings", file, "--build", BUILD]
    for kill in range(KILLS):
        search_server.faults(fail={"hang": 1.0}, after=20 * (kill + 1))  # until it is killed
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 240
        while search_server.stats()["requests"] < 20 * (kill + 1):
            assert process.poll() is None, "the replay ended before it was killed"
            assert time.monotonic() < deadline, "the replay never began"
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert logs_at(place) == []
    search_server.faults(fail={})
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert logs_at(place) == ["replay.jsonl"]
    assert content(place) == content(undisturbed)
    stats = search_server.stats()
    assert stats["requests"] <= QUESTIONS + KILLS * CONCURRENCY
    assert sum(stats["answered"].values()) <= QUESTIONS + KILLS * CONCURRENCY


def test_a_replay_that_failed_goes_on(
    tmp_path: Path, search_server: SearchServer, place: str
) -> None:
    """What was answered is found, what was not is asked."""
    settings = replaying(tmp_path, search_server, concurrency=1)
    half_done(settings, place, search_server)
    assert logs_at(place) == []
    done = run_replay(settings, BUILD, place)
    assert (done.found, done.asked, done.rows) == (6, 6, 12)
    assert search_server.stats()["requests"] == 6
    assert len(content(place)) == 12


def test_a_replay_that_is_done_is_found(
    tmp_path: Path, search_server: SearchServer, place: str
) -> None:
    """Nothing is asked, and what it came to is told again."""
    search_server.faults(fail={"400": 1.0}, match="tower 003")
    settings = replaying(tmp_path, search_server, max_failed=0.1)
    first = run_replay(settings, BUILD, place)
    again = run_replay(settings, BUILD, place)
    assert (again.rows, again.asked, again.found, again.failed) == (11, 0, 11, first.failed)
    assert search_server.stats()["requests"] == 12


@pytest.mark.parametrize(
    "change",
    [
        {"contexts": "hits.id", "ids": None},
        {"body": {"query": "{user_input}", "k": 4}},
        {"headers": {"X-Tenant": "other"}},
    ],
)
def test_another_way_to_ask_begins_anew(
    tmp_path: Path, search_server: SearchServer, change: dict[str, object]
) -> None:
    """A log that was made in another way is out of date, and goes as soon as the new one begins."""
    run_replay(replaying(tmp_path, search_server), BUILD)
    search_server.reset()
    changed = replaying(tmp_path, search_server, **change)
    search_server.faults(fail={"400": 1.0}, after=6)
    with pytest.raises(ReplayIncomplete):
        run_replay(changed, BUILD)
    assert logs_at(str(tmp_path / "builds" / BUILD)) == []
    search_server.faults(fail={})
    assert run_replay(changed, BUILD).rows == 12


def test_other_limits_change_nothing(tmp_path: Path, search_server: SearchServer) -> None:
    """How fast and how often it is asked is not what is asked."""
    run_replay(replaying(tmp_path, search_server), BUILD)
    other = replaying(tmp_path, search_server, concurrency=2, retries=9, max_failed=0.5)
    assert run_replay(other, BUILD).asked == 0


def test_another_golden_set_begins_anew(tmp_path: Path, search_server: SearchServer) -> None:
    """A further question, or another tag."""
    rows = golden_rows()
    run_replay(replaying(tmp_path, search_server, rows), BUILD)
    rows[0]["tags"] = {"section": "castles"}
    done = run_replay(replaying(tmp_path, search_server, rows), BUILD)
    assert (done.asked, done.found) == (12, 0)
    assert log_rows(Path(done.place))[0]["tags"] == {"section": "castles"}


def test_again_asks_anew(tmp_path: Path, search_server: SearchServer, place: str) -> None:
    """A replay that is done, and one that is half done; then it goes on without `again`."""
    settings = replaying(tmp_path, search_server, concurrency=1)
    half_done(settings, place, search_server)
    assert run_replay(settings, BUILD, place, again=True).asked == 12
    search_server.faults(fail={"400": 1.0}, after=18)
    with pytest.raises(ReplayIncomplete):
        run_replay(settings, BUILD, place, again=True)
    assert logs_at(place) == []
    search_server.faults(fail={})
    done = run_replay(settings, BUILD, place)
    assert (done.found, done.rows) == (6, 12)


def test_a_replay_killed_as_it_begins_anew_leaves_no_log(
    tmp_path: Path, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is out of date is gone before anything says that the new one has begun."""
    settings = replaying(tmp_path, search_server)
    run_replay(settings, BUILD)
    with monkeypatch.context() as killed:
        killed.setattr(
            kept.ReplayTarget, "write_state", lambda *_: os.kill(os.getpid(), signal.SIGINT)
        )
        with pytest.raises(KeyboardInterrupt):
            run_replay(settings, BUILD, again=True)
    assert logs_at(str(tmp_path / "builds" / BUILD)) == []
    assert run_replay(settings, BUILD).asked == 12


def test_a_log_of_somebody_else_is_left_alone(tmp_path: Path, search_server: SearchServer) -> None:
    """The builder's own log is the build's: nothing is asked and nothing is written."""
    theirs = write_jsonl(tmp_path / "builds" / BUILD / "log.jsonl", make_rows(3))
    settings = replaying(tmp_path, search_server)
    for place in (None, str(theirs)):
        with pytest.raises(InputError, match=r"log\.jsonl is there, and was not written by a rep"):
            run_replay(settings, BUILD, place)
    assert search_server.stats()["requests"] == 0
    assert [path.name for path in theirs.parent.iterdir()] == ["log.jsonl"]


def test_a_log_that_comes_meanwhile_is_left_alone(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """Two logs in one folder would be read as one."""
    theirs = tmp_path / "builds" / BUILD / "log.jsonl"

    def progress(what: str, done: int, total: int) -> None:
        if done == 6:
            write_jsonl(theirs, make_rows(3))

    with pytest.raises(InputError, match=r"log\.jsonl is there"):
        run_replay(replaying(tmp_path, search_server), BUILD, progress=progress)
    assert logs_at(str(theirs.parent)) == ["log.jsonl"]


def test_two_replays_at_once_leave_one_whole_log(
    tmp_path: Path, search_server: SearchServer, place: str
) -> None:
    """As a retry beside a run that was taken for dead."""
    search_server.faults(latency_ms=20)
    settings = replaying(tmp_path, search_server, golden_rows(40))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(run_replay, settings, BUILD, place) for _ in range(2)]
        assert [one.result().rows for one in both] == [40, 40]
    assert logs_at(place) == ["replay.jsonl"]
    assert len(set(content(place))) == len(content(place)) == 40


def test_many_small_parts_become_few(
    tmp_path: Path, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow search, asked thousands of questions, does not leave thousands of objects."""
    monkeypatch.setattr(kept, "_MOST_PARTS", 4)
    settings = replaying(tmp_path, search_server, golden_rows(30), concurrency=1)
    search_server.faults(fail={"400": 1.0}, after=27)
    with pytest.raises(ReplayIncomplete):
        run_replay(settings, BUILD)
    parts = list((tmp_path / "builds").rglob("part-*.jsonl"))
    assert len(parts) == 27 // 4 + 27 % 4
    search_server.faults(fail={})
    assert run_replay(settings, BUILD).found == 27


def test_a_damaged_part_is_asked_again(tmp_path: Path, search_server: SearchServer) -> None:
    """With a warning; what is whole in it counts."""
    settings = replaying(tmp_path, search_server, concurrency=1)
    half_done(settings, str(tmp_path / "builds" / BUILD), search_server)
    parts = sorted((tmp_path / "builds").rglob("part-*.jsonl"))
    parts[0].write_bytes(parts[0].read_bytes()[:-5])
    parts[1].write_bytes(b"\xff\xfe\n[1]\n{}\n" + parts[1].read_bytes())
    done = run_replay(settings, BUILD)
    assert (done.found, done.rows) == (5, 12)


def test_a_place_that_fails_ends_the_replay(tmp_path: Path, search_server: SearchServer) -> None:
    """With the store's own error; what was kept until then is found."""
    folder = tmp_path / "builds" / BUILD / "_replay"
    away = folder.with_name("_away")

    def progress(what: str, done: int, total: int) -> None:
        if done == 6:
            folder.rename(away)
            folder.write_text("a file where the folder was")

    settings = replaying(tmp_path, search_server, concurrency=1)
    with pytest.raises(StoreError, match=r"writing .*_replay"):
        run_replay(settings, BUILD, progress=progress)
    assert search_server.stats()["requests"] == 7
    folder.unlink()
    away.rename(folder)
    done = run_replay(settings, BUILD)
    assert (done.found, done.rows) == (6, 12)


def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, search_server: SearchServer) -> None:
    """Then nobody knows whose log it is: the user decides."""
    settings = replaying(tmp_path, search_server)
    log = Path(run_replay(settings, BUILD).place)
    state = log.parent / "_replay" / log.name / "state.json"
    state.write_text("{")
    with pytest.raises(InputError, match="is there, and was not written by a replay"):
        run_replay(settings, BUILD)
    log.unlink()
    assert run_replay(settings, BUILD).rows == 12


def test_the_settings_file_decides_where_builds_are(
    tmp_path: Path, search_server: SearchServer
) -> None:
    """`gate: logs:`, where the gate looks for them."""
    values = {
        "golden": str(write_jsonl(tmp_path / "g.jsonl", golden_rows(2))),
        "gate": {"logs": str(tmp_path / "of-{build}.jsonl")},
        "retriever": search_server.settings,
    }
    assert run_replay(make_settings(values), BUILD).place == str(tmp_path / f"of-{BUILD}.jsonl")
