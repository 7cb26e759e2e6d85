"""`ragmetrics gate`: a table and a verdict, and the exit code that a pipeline acts on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import save_settings
from tests.fakes.build_logs import METRICS, damaged, golden, healthy, write_build
from tests.fakes.command import Ended, Run
from tests.fakes.logs import write_jsonl
from tests.fakes.slack import SlackServer

ROWS = golden()


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A settings file, and beside it the log of b1, which serves."""
    write_build(tmp_path, "b1", ROWS)
    return write_settings(tmp_path)


def write_settings(folder: Path, **change: Any) -> Path:
    """The file that a team has."""
    return save_settings(
        folder,
        {
            "dataset": "towers",
            "store": "store",
            "metrics": METRICS,
            "gate": {"logs": "builds/{build}.jsonl"},
            **change,
        },
    )


def gate(run: Run, settings: Path, *more: object) -> Ended:
    """`ragmetrics gate --build b2 --against b1`."""
    return run("gate", "--build", "b2", "--against", "b1", "--settings", settings, *more)


def test_a_healthy_build_is_exit_code_0(run: Run, settings: Path) -> None:
    """With a line per metric, the verdict and its reasons."""
    write_build(settings.parent, "b2", healthy(ROWS, seed=1))
    ended = gate(run, settings)
    assert ended.code == 0
    for text in ("Build b2 against b1 (towers)", "Context recall", "PROMOTE: none of 2 metrics"):
        assert text in ended.out
    assert ended.err.splitlines()[0].startswith("judging: 0 of ")
    assert (settings.parent / "store/gates/b2.json").exists()
    assert "b2" in (settings.parent / "store/dashboard/builds.html").read_text()


def test_a_damaged_build_is_exit_code_1(run: Run, settings: Path) -> None:
    """With what fell, by question."""
    write_build(settings.parent, "b2", damaged(ROWS, 0.15, seed=1))
    ended = gate(run, settings)
    assert ended.code == 1
    assert "HOLD" in ended.out
    assert "Context recall fell from 0.9" in ended.out
    assert "What is the height of tower" in ended.out


def test_a_build_that_nothing_can_be_said_of_is_exit_code_2(run: Run, settings: Path) -> None:
    """And with --json, one object says that it is the verdict and no error."""
    write_build(settings.parent, "b2", ROWS[:20])
    ended = gate(run, settings, "--json")
    assert ended.code == 2
    told = json.loads(ended.out)
    assert told["verdict"] == "inconclusive"
    assert told["build"] == "b2"


def test_an_error_is_exit_code_2_without_json(run: Run, settings: Path) -> None:
    """Nothing on stdout, one line on stderr."""
    write_settings(settings.parent, gate={"logs": "builds/{build}.jsonl", "rules": []})
    ended = gate(run, settings, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert "gate.rules: should name a metric" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("verdict", ["promote", "hold"])
def test_json_is_the_record_in_the_store(run: Run, settings: Path, verdict: str) -> None:
    """One object, with the keys of gates/BUILD.json."""
    write_build(settings.parent, "b2", ROWS if verdict == "promote" else damaged(ROWS, 0.2, 1))
    told = json.loads(gate(run, settings, "--json").out)
    assert told["verdict"] == verdict
    assert told == json.loads((settings.parent / "store/gates/b2.json").read_text())


def test_the_log_may_be_given(run: Run, settings: Path, tmp_path: Path) -> None:
    """As a file, folder or glob, wherever it is."""
    write_jsonl(tmp_path / "ci" / "run.jsonl", damaged(ROWS, 0.2, seed=2))
    assert gate(run, settings, "--logs", tmp_path / "ci").code == 1


def test_the_settings_of_the_folder_are_used(run: Run) -> None:
    """`ragmetrics.yaml`, as the flows do, where no other is named."""
    folder = Path.cwd()
    write_settings(folder)
    write_build(folder, "b1", ROWS)
    write_build(folder, "b2", ROWS)
    assert run("gate", "--build", "b2", "--against", "b1").code == 0
    assert (folder / "store/gates/b2.json").exists()


def test_two_logs_need_no_settings(run: Run, tmp_path: Path) -> None:
    """Exit code and record are those of a build's gate, and nothing is written."""
    before = write_jsonl(tmp_path / "before.jsonl", ROWS)
    after = write_jsonl(tmp_path / "after.jsonl", damaged(ROWS, 0.2, seed=2))
    ended = run("gate", before, after, "--json")
    record = json.loads(ended.out)
    assert (ended.code, record["verdict"], record["build"]) == (1, "hold", str(after))
    assert "\nFAILED: 2 of 2 metrics" in run("gate", before, after).out
    ended = run("gate", before, after, "--max-drop", 0.9)
    assert (ended.code, "\nPASSED: " in ended.out) == (0, True)
    assert not list(Path.cwd().iterdir())


def test_a_gate_by_ids_names_no_judge(run: Run, tmp_path: Path) -> None:
    """None was asked."""
    rows = [{**row, "reference_contexts": row["retrieved_contexts"][:1]} for row in ROWS]
    places = [write_jsonl(tmp_path / f"{name}.jsonl", rows) for name in ("before", "after")]
    ended = run("gate", *places)
    assert (ended.code, "Judge" in ended.out) == (0, False)


@pytest.mark.parametrize(
    "named", [(), ("a.jsonl",), ("a.jsonl", "b.jsonl", "--build", "b2"), ("--against", "b1")]
)
def test_two_logs_or_a_build_are_named(run: Run, named: tuple[str, ...]) -> None:
    """Else one sentence has both forms."""
    ended = run("gate", *named)
    assert ended.code == 2
    assert "name two logs, as in `ragmetrics gate before.jsonl after.jsonl`, or an" in ended.err


def test_a_bad_name_is_an_error(run: Run, settings: Path) -> None:
    """Which says what is wrong, and writes nothing."""
    ended = run("gate", "--build", "../b2", "--settings", settings)
    assert ended.code == 2
    assert ended.err.startswith("ragmetrics: index build: build: ")
    assert not (settings.parent / "store").exists()


def test_text_of_a_log_does_nothing_to_the_terminal(run: Run, settings: Path) -> None:
    """Neither escape codes nor rich's markup."""
    hostile = "[bold red]\x1b[2Jtower\u202e 1[/nothing]"
    write_build(
        settings.parent, "b1", [{**row, "user_input": f"{hostile} {n}"} for n, row in rows()]
    )
    bad = [{**row, "user_input": f"{hostile} {n}", "retrieved_contexts": []} for n, row in rows()]
    write_build(settings.parent, "b2", bad)
    ended = gate(run, settings)
    assert ended.code == 1
    assert "[bold red]" in ended.out
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out


def test_a_held_build_is_told_in_slack_once(
    run: Run, settings: Path, slack_server: SlackServer
) -> None:
    """As by the flow; where Slack is down the verdict stands, and the next run tells it."""
    write_build(settings.parent, "b2", damaged(ROWS, 0.2, seed=1))
    slack_server.fail("500")
    down = gate(run, settings)
    assert down.code == 1
    assert "run the same command again" in down.err
    slack_server.fail(None)
    for _ in range(2):
        assert gate(run, settings).code == 1
    assert len(slack_server.delivered) == 1


def test_a_dashboard_that_cannot_be_written_does_not_hide_the_verdict(
    run: Run, settings: Path
) -> None:
    """A warning, and the exit code of the verdict."""
    write_build(settings.parent, "b2", healthy(ROWS, seed=1))
    site = settings.parent / "store" / "dashboard"
    site.parent.mkdir()
    site.write_text("a file where the folder should be")
    ended = gate(run, settings, "--json")
    assert (ended.code, json.loads(ended.out)["verdict"]) == (0, "promote")
    assert "\nthe dashboard is not up to date: " in ended.err


def rows() -> list[tuple[int, dict[str, Any]]]:
    """The golden rows, numbered."""
    return list(enumerate(ROWS))
