"""Prefect's database before anything is in it, as a temporary server of the product makes it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fakes.processes import ROOT


def write_database(file: Path) -> None:
    """Write the empty database of the installed Prefect."""
    file.parent.mkdir(parents=True, exist_ok=True)
    known = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with tempfile.TemporaryDirectory(dir=file.parent) as home:
        subprocess.run(
            [sys.executable, "-P", ROOT / "flows" / "server_process.py"],
            env={**known, "PREFECT_HOME": home},
            check=True,
            capture_output=True,
            timeout=300,
        )
        (Path(home) / "prefect.db").replace(file)
