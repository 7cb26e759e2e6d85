"""`ragmetrics replay`: the log of a build, from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.builders import save_settings
from tests.fakes.command import Run
from tests.fakes.logs import write_jsonl
from tests.fakes.processes import ROOT
from tests.fakes.replays import BUILD, golden_rows, hurry
from tests.fakes.retriever import SearchServer


@pytest.fixture
def settings(tmp_path: Path, search_server: SearchServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file with a golden set and a search."""
    hurry(monkeypatch)
    write_jsonl(tmp_path / "golden.jsonl", golden_rows())
    return save_settings(tmp_path, golden="golden.jsonl", retriever=search_server.settings)


def test_it_says_what_was_written(run: Run, settings: Path, search_server: SearchServer) -> None:
    """The log's place, rows, and what had to be asked again."""
    search_server.faults(fail={"500": 1.0}, fail_attempts=1, match="tower 003")
    ended = run("replay", "--settings", settings, "--build", BUILD)
    assert ended.code == 0
    assert ended.out.splitlines() == [
        f"Log: {settings.parent / 'builds' / BUILD / 'replay.jsonl'}",
        "Rows: 12 of 12 questions (0 found, 12 asked now), 0 without contexts",
        "Failed attempts: 1 server_error",
    ]


def test_the_settings_of_the_folder_are_used(
    run: Run, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ragmetrics.yaml`, as by `ragmetrics gate`, where no other is named."""
    monkeypatch.chdir(settings.parent)
    assert run("replay", "--build", BUILD).code == 0
    assert (settings.parent / "builds" / BUILD / "replay.jsonl").exists()


def test_json_is_one_object(run: Run, settings: Path, search_server: SearchServer) -> None:
    """With the counts, and whether the log was written."""
    ended = run("replay", "--settings", settings, "--build", BUILD, "--json")
    told = json.loads(ended.out)
    assert ended.code == 0
    assert (told["build"], told["rows"], told["failed"], told["written"]) == (BUILD, 12, {}, True)
    again = json.loads(run("replay", "--settings", settings, "--build", BUILD, "--json").out)
    assert (again["asked"], again["found"]) == (0, 12)


def test_too_many_failures_are_exit_code_1(
    run: Run, settings: Path, search_server: SearchServer
) -> None:
    """A finding about the build's search, with one sentence at the end of stderr."""
    search_server.faults(fail={"400": 1.0}, after=3)
    ended = run("replay", "--settings", settings, "--build", BUILD, "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["written"], told["failed"]) == (1, False, {"rejected": 1})
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"ragmetrics: replay of build {BUILD}: 1 of 12 questions have no")


def test_a_refusal_is_exit_code_2(run: Run, settings: Path, search_server: SearchServer) -> None:
    """One line says what to set."""
    search_server.faults(token="right")
    ended = run("replay", "--settings", settings, "--build", BUILD)
    assert (ended.code, ended.out) == (2, "")
    begun, told = ended.err.splitlines()
    assert begun == "asking: 0 of 12"
    assert told.startswith("ragmetrics: the retriever refused the access with 401: are `head")


def test_a_try_needs_a_place_of_its_own(run: Run, settings: Path, tmp_path: Path) -> None:
    """A log of a few questions is not the build's."""
    ended = run("replay", "--settings", settings, "--build", BUILD, "--limit", 2)
    assert (ended.code, "name its place with --out" in ended.err) == (2, True)
    out = tmp_path / "try.jsonl"
    assert (
        run("replay", "--settings", settings, "--build", BUILD, "--limit", 2, "--out", out).code
        == 0
    )
    assert len(out.read_text().splitlines()) == 2


def test_flags_go_before_the_settings(
    run: Run, settings: Path, tmp_path: Path, search_server: SearchServer
) -> None:
    """Another golden set; and with --again, everything anew."""
    other = write_jsonl(tmp_path / "other.jsonl", golden_rows(3))
    command = ("replay", "--settings", settings, "--build", BUILD, "--golden", other)
    assert "Rows: 3 of 3" in run(*command).out
    assert "(3 found, 0 asked now)" in run(*command).out
    assert "(0 found, 3 asked now)" in run(*command, "--again").out


def test_ctrl_c_keeps_what_was_answered(settings: Path, search_server: SearchServer) -> None:
    """And says that the same command goes on."""
    search_server.faults(fail={"hang": 1.0}, after=2)
    command = [sys.executable, "-m", "ragmetrics", "replay", "--settings", settings]
    command += ["--build", BUILD]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while search_server.stats()["requests"] < 3:
        assert process.poll() is None, "the replay ended before it was stopped"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert "\nStopped. The same command, without --again, continues" in process.communicate()[1]
    assert process.returncode == 130
    search_server.faults(fail={})
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert (told["found"] >= 1, told["rows"]) == (True, 12)


def test_words_of_the_server_are_no_markup(
    run: Run, settings: Path, search_server: SearchServer
) -> None:
    """They are shown as they are."""
    search_server.faults(fail={"html": 1.0}, match="tower 003")
    values = yaml.safe_load(settings.read_text())
    values["retriever"]["max_failed"] = 0.1
    settings.write_text(yaml.safe_dump(values))
    ended = run("replay", "--settings", settings, "--build", BUILD)
    assert "Not answered: 1 unreadable (the retriever's answer is not JSON: <html>" in ended.out
