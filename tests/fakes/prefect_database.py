"""Prefect's database before anything is in it, made once for all test processes of a checkout.

A server that begins without a database makes its tables in 80 migrations: half of its start.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.fakes.processes import ROOT

_FOLDER = ROOT / ".pytest_cache" / "prefect"


def write_database(file: Path) -> None:
    """Write the empty database of the installed Prefect, as its migrations make it."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    known = _FOLDER / f"{version('prefect')}.db"
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not known.exists():
            _migrate(known)
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(known, file)


def write_database_if_known(file: Path) -> None:
    """The same where another process has made it: for processes that may need none."""
    if (_FOLDER / f"{version('prefect')}.db").exists():
        write_database(file)


def _migrate(known: Path) -> None:
    with tempfile.TemporaryDirectory(dir=_FOLDER) as home:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")
        }
        subprocess.run(
            [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
            cwd=home,
            env={**environment, "PREFECT_HOME": home},
            check=True,
            capture_output=True,
            timeout=300,
        )
        (Path(home) / "prefect.db").replace(known)
