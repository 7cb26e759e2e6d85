"""examples/airflow in a real Airflow, by the command of docs/how-to/airflow.md."""

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
from tests.fakes.schedulers import Scheduler, airflow
from tests.fakes.two_nights import NIGHTS, results, results_of_run_night, write_two_nights

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    """Airflow with the DAG of the example."""
    return airflow(tmp_path_factory.mktemp("airflow"))


def run_dag(scheduler: Scheduler, settings: Path) -> subprocess.CompletedProcess[str]:
    """Run the second night as the page does."""
    [line] = [
        command.line
        for block in blocks(ROOT / "docs/how-to/airflow.md")
        for command in block.commands
        if "dags test" in command.line
    ]
    return scheduler.run(*shlex.split(line.replace("/srv/ragmetrics.yaml", str(settings)))[1:])


def ended_tasks(scheduler: Scheduler, state: str) -> list[tuple[str, int]]:
    """The tasks that Airflow's own record has in a state, mapped ones with their number."""
    with closing(sqlite3.connect(scheduler.home / "airflow.db")) as database:
        return database.execute(
            "SELECT task_id, map_index FROM task_instance WHERE state = ?", [state]
        ).fetchall()


def test_the_dag_gives_what_run_night_gives(scheduler: Scheduler, tmp_path: Path) -> None:
    """The night on which the alert fires: manifest, alert states and pages are equal, with one
    mapped task for each part of the scoring.
    """
    file = write_two_nights(tmp_path)
    expected, settings = results_of_run_night(file), load_settings(file)
    run_night(settings, NIGHTS[0])
    done = run_dag(scheduler, file)
    assert done.returncode == 0, done.stdout
    assert {("score", 0), ("score", 1)} <= set(ended_tasks(scheduler, "success")), done.stdout
    assert results(Path(settings.store)) == expected


def test_an_error_that_no_retry_mends_fails_at_once(scheduler: Scheduler, tmp_path: Path) -> None:
    """Settings that are not there: the first task fails for good, and the run with it."""
    done = run_dag(scheduler, tmp_path / "missing.yaml")
    assert done.returncode != 0
    assert "AirflowFailException" in done.stdout
    assert ended_tasks(scheduler, "failed") == [("stage", -1)]
