"""examples/dagster in a real Dagster, by the command of docs/how-to/dagster.md."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ragmetrics.config import load_settings
from ragmetrics.pipeline import run_night
from tests.fakes.console import blocks
from tests.fakes.processes import ROOT
from tests.fakes.schedulers import dagster
from tests.fakes.two_nights import NIGHTS, results, results_of_run_night, write_two_nights

pytestmark = pytest.mark.process

FORKED = "execution: {config: {multiprocess: {start_method: {forkserver: {}}}}}"
"""Each op still has a process of its own, but it need not import Dagster again."""


def run_job(home: Path, settings: Path) -> subprocess.CompletedProcess[str]:
    """Run the second night as the page does, with its settings of the run."""
    found = blocks(ROOT / "docs/how-to/dagster.md")
    [config] = [block.text for block in found if block.name == "run.yaml"]
    config = config.replace("/srv/ragmetrics.yaml", str(settings))
    (home / "run.yaml").write_text(f"{config}{FORKED}\n")
    [line] = [
        command.line
        for block in found
        if block.kind == "console"
        for command in block.commands
        if "job execute" in command.line
    ]
    line = line.replace("\\\n", " ").replace("examples/", f"{ROOT}/examples/")
    return dagster(home).run(*shlex.split(line)[1:])


def steps(home: Path, event: str) -> set[str]:
    """The steps that have an event in Dagster's own record of the run."""
    [record] = (home / "history" / "runs").glob("*-*.db")
    with closing(sqlite3.connect(record)) as database:
        rows = database.execute(
            "SELECT step_key FROM event_logs WHERE dagster_event_type = ?", [event]
        ).fetchall()
    return {step for (step,) in rows}


def test_the_job_gives_what_run_night_gives(tmp_path: Path) -> None:
    """The night on which the alert fires: manifest, alert states and pages are equal, with one
    mapped op for each part of the scoring.
    """
    file = write_two_nights(tmp_path)
    expected, settings = results_of_run_night(file), load_settings(file)
    run_night(settings, NIGHTS[0])
    done = run_job(tmp_path, file)
    assert done.returncode == 0, done.stdout
    assert {"score[0]", "score[1]"} <= steps(tmp_path, "STEP_SUCCESS"), done.stdout
    assert results(Path(settings.store)) == expected


def test_an_error_that_no_retry_mends_fails_at_once(tmp_path: Path) -> None:
    """Settings that are not there: the first op fails for good, and the run with it."""
    done = run_job(tmp_path, tmp_path / "missing.yaml")
    assert done.returncode != 0
    assert steps(tmp_path, "STEP_FAILURE") == {"stage"}, done.stdout
    assert steps(tmp_path, "STEP_UP_FOR_RETRY") == set()
