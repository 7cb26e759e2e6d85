"""Replies that were paid for are kept, and a command that is repeated or was killed finds them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ragmetrics import evaluate
from ragmetrics.config import make_settings
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

METRICS = "context_relevance,context_recall"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log of twelve rows."""
    return write_jsonl(tmp_path / "logs.jsonl", make_rows(12, good=0.75))


def test_a_repeated_score_costs_nothing(run: Run, logs: Path, judge_server: JudgeServer) -> None:
    """The replies are in the settings' store, in the folder where the command ran."""
    what = ("score", logs, "--metrics", METRICS, "--judge", "openai", "--json")
    where = ("--base-url", judge_server.base_url)
    first = run(*what, *where)
    assert first.err == "Replies are stored in ragmetrics-store\n"
    assert [path.name for path in Path().iterdir()] == ["ragmetrics-store"]
    files = [path for path in Path("ragmetrics-store").rglob("*") if path.is_file()]
    assert {path.parts[1] for path in files} == {"judgements"}, "its sign among workers is gone"
    asked = judge_server.stats()["requests"]
    repeated = run(*what, *where)
    assert repeated.err == "", "nothing new was kept"
    again = json.loads(repeated.out)
    assert judge_server.stats()["requests"] == asked
    assert again["metrics"] == json.loads(first.out)["metrics"]
    assert again["usage"]["answered_from_store"] == asked


def test_the_store_may_be_elsewhere(
    run: Run, logs: Path, judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Where `--store` says, or the settings file."""
    where = ("--judge", "openai", "--base-url", judge_server.base_url)
    what = ("score", logs, "--metrics", "context_recall", *where)
    assert (
        run(*what, "--store", tmp_path / "mine").err == f"Replies are stored in {tmp_path}/mine\n"
    )
    asked = judge_server.stats()["requests"]
    (tmp_path / "ragmetrics.yaml").write_text("store: mine")
    run(*what, "--settings", tmp_path / "ragmetrics.yaml")
    assert judge_server.stats()["requests"] == asked
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("judge", ["lexical", "recorded"])
def test_judges_on_this_machine_leave_nothing_behind(
    run: Run, logs: Path, tmp_path: Path, judge: str
) -> None:
    """Their answers cost nothing, so no store is written and none is spoken of."""
    tape = tmp_path / "tape.jsonl"
    name = "lexical" if judge == "lexical" else f"recorded:{tape}"
    run("score", logs, "--metrics", "context_recall", "--record", tape)
    ended = run("score", logs, "--metrics", "context_recall", "--judge", name)
    assert (ended.code, ended.err) == (0, "")
    assert list(Path().iterdir()) == []


def test_a_recording_has_the_kept_replies_too(
    run: Run, logs: Path, judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A run that is answered from the store can be recorded, and played back."""
    what = ("score", logs, "--metrics", METRICS, "--json")
    asked = ("--judge", "openai", "--base-url", judge_server.base_url)
    first = json.loads(run(*what, *asked).out)
    tape = tmp_path / "tape.jsonl"
    run(*what, *asked, "--record", tape)
    played = json.loads(run(*what, "--judge", f"recorded:{tape}").out)
    assert played["metrics"] == first["metrics"]


def test_evaluate_keeps_nothing_unless_told(
    judge_server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Python a store is named, or there is none."""
    monkeypatch.chdir(tmp_path)
    judge = judge_at(judge_server)
    settings = make_settings({"judge": judge, "metrics": ["context_recall"]})
    rows = make_rows(5)
    evaluate(rows, settings=settings)
    assert list(tmp_path.iterdir()) == []
    evaluate(rows, settings=settings, store="mine")
    evaluate(rows, settings=settings, store="mine")
    assert judge_server.stats()["requests"] == 10


def test_a_killed_score_goes_on_where_it_was(tmp_path: Path, judge_server: JudgeServer) -> None:
    """After kill -9 the same command asks again only for what was in flight."""
    logs = write_jsonl(tmp_path / "logs.jsonl", make_rows(120, good=0.75))
    undisturbed = evaluate(
        str(logs), METRICS.split(","), "openai", base_url=judge_server.base_url
    ).as_json()
    needed = judge_server.stats()["requests"]
    judge_server.reset()
    judge_server.faults(latency_ms=100)
    command = [sys.executable, "-m", "ragmetrics", "score", str(logs), "--metrics", METRICS]
    judge: dict[str, Any] = judge_at(judge_server, concurrency=8)
    (tmp_path / "ragmetrics.yaml").write_text(json.dumps({"judge": judge}))
    command += ["--settings", "ragmetrics.yaml", "--json"]
    stopped(command, tmp_path, judge_server, needed // 2, signal.SIGKILL)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert told["metrics"] == undisturbed["metrics"]
    assert told["usage"]["answered_from_store"] > 0
    stats = judge_server.stats()
    assert needed <= stats["requests"] <= needed + judge["concurrency"]
    assert max(stats["by_hash"].values()) <= 2


def stopped(
    command: list[str], folder: Path, judge: JudgeServer, after: int, by: signal.Signals
) -> tuple[int, str]:
    """Send a command a signal when it has asked so often: its exit code, and what it said."""
    running = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 240
    while judge.stats()["requests"] < after:
        assert running.poll() is None, "the command ended before it was stopped"
        assert time.monotonic() < deadline, "the command never began"
        time.sleep(0.02)
    os.kill(running.pid, by)
    said = running.communicate()[1]
    return running.returncode, said


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "terminated"])
def test_a_command_that_is_stopped_prints_what_it_had(
    logs: Path, judge_server: JudgeServer, tmp_path: Path, by: signal.Signals
) -> None:
    """The scores of the rows that were answered, without another request."""
    judge_server.faults(good_for=4)
    command = [
        sys.executable,
        "-m",
        "ragmetrics",
        "score",
        str(logs),
        "--metrics",
        "context_recall",
    ]
    command += ["--judge", "openai", "--base-url", judge_server.base_url]
    code, told = stopped(command, tmp_path, judge_server, 6, by)
    assert (code, told.splitlines()[-1]) == (130, "What the rows answered so far give:")
    assert judge_server.stats()["by_status"]["200"] == 4


def test_a_command_that_is_stopped_says_how_to_go_on(
    logs: Path, judge_server: JudgeServer, tmp_path: Path
) -> None:
    """After Ctrl-C: where the replies are, and that the same command goes on."""
    judge_server.faults(latency_ms=60_000)
    command = [sys.executable, "-m", "ragmetrics", "score", str(logs), "--metrics", METRICS]
    command += ["--judge", "openai", "--base-url", judge_server.base_url]
    code, said = stopped(command, tmp_path, judge_server, 1, signal.SIGINT)
    kept = "Replies are stored in ragmetrics-store: the same command continues"
    assert (code, said) == (130, f"Stopped. {kept}\n")
