"""The schedulers of the examples, each in an environment of its own: `make airflow dagster`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT


@dataclass(frozen=True)
class Scheduler:
    """A scheduler's command line, with a home in a temporary folder."""

    name: str
    home: Path
    variables: Mapping[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; output and errors are both in `stdout`."""
        return subprocess.run(
            [_command(self.name), *arguments],
            cwd=self.home,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "PYTHONPATH": str(ROOT),  # the product of this tree, wherever it was installed from
                "DO_NOT_TRACK": "1",
                **self.variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=500,
        )


def _command(name: str) -> Path:
    command = ROOT / f".venv-{name}" / "bin" / name
    if not command.exists():
        skip_or_fail(f"no {name.capitalize()}: make {name}")
    return command


def airflow(home: Path) -> Scheduler:
    """Airflow with an empty SQLite database, and the DAG of examples/airflow."""
    variables = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "examples/airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    made = Scheduler("airflow", home, variables)
    done = made.run("db", "migrate")
    assert done.returncode == 0, done.stdout
    return made


def dagster(home: Path) -> Scheduler:
    """Dagster, which keeps its runs in a folder."""
    return Scheduler(
        "dagster", home, {"DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "yes"}
    )
