"""Commands of the product, each in a process of its own, in the folder of one store.

They are what any version of the code has: the command line, and the functions of a night.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from tests.fakes.processes import ROOT

ENDS = (0, 1)
"""Exit codes of a command that did its work: fine, and findings."""


@dataclass(frozen=True)
class Commands:
    """Runs them; their settings are `ragmetrics.yaml` in the folder."""

    folder: Path
    environment: Mapping[str, str]

    def ragmetrics(self, *arguments: object, ends: Sequence[int] = ENDS) -> str:
        """Run the command line; return its output."""
        return self._run("-m", "ragmetrics", *map(str, arguments), ends=ends)

    def json(self, *arguments: object) -> Any:
        """The object that a command prints."""
        return json.loads(self.ragmetrics(*arguments, "--json"))

    def night(self, day: date) -> str:
        """Run a night from logs to alert; return why it is short, if it is."""
        return self._run("-m", "tests.fakes.store_commands", "night", str(day), ends=(0,))

    def undecided(self, reason: str, carried: str) -> str:
        """Tell of an index build that came to no verdict."""
        return self._run(
            "-m", "tests.fakes.store_commands", "undecided", reason, carried, ends=(0,)
        )

    def _run(self, *arguments: str, ends: Sequence[int] = ENDS) -> str:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", **self.environment},
            capture_output=True,
            text=True,
        )
        if done.returncode not in ends:
            raise RuntimeError(f"{' '.join(arguments)}: {done.returncode}\n{done.stderr}")
        return done.stdout


def main() -> None:
    """A night, or an index build without verdict, by the functions that the flows call."""
    from ragmetrics import load_settings, run_night
    from ragmetrics.delivery.gate_notifications import notify_failed_gate
    from ragmetrics.errors import RagmetricsError

    what, *said = sys.argv[1:]
    settings = load_settings("ragmetrics.yaml")
    if what == "undecided":
        notify_failed_gate(settings, *said)
        return
    try:
        run_night(settings, date.fromisoformat(*said))
    except RagmetricsError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
