"""The step of a pipeline of docs/how-to/gates.md, run by a shell that ends at the first failure."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import save_gate
from ragmetrics.records import Gate, MetricVerdict
from ragmetrics.storage import Files
from tests.builders import save_settings
from tests.fakes.build_logs import METRICS, damaged, golden, write_build
from tests.fakes.gated import promoted
from tests.fakes.processes import ROOT

ROWS = golden(60)
GUIDE = (ROOT / "docs/how-to/gates.md").read_text(encoding="utf-8")


def step() -> str:
    """The script of the guide that tells a verdict from an error."""
    scripts: list[str] = re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)
    (found,) = (script for script in scripts if "$?" in script)
    return found


def run_step(folder: Path) -> subprocess.CompletedProcess[str]:
    """The step in a folder, where `ragmetrics` is that of this interpreter."""
    command = folder / "bin" / "ragmetrics"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ragmetrics "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", step()],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "BUILD": "b2"},
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("rows", "code", "printed", "verdict"),
    [
        (ROWS, 0, "", "promote"),
        (damaged(ROWS, 0.3, seed=1), 1, "", "hold"),
        (ROWS[:20], 2, "build b2 is undecided: ", "inconclusive"),
        (None, 2, "no verdict on b2: ", None),
    ],
    ids=["promote", "hold", "inconclusive", "error"],
)
def test_the_step_ends_as_the_gate_does(
    tmp_path: Path,
    rows: list[dict[str, Any]] | None,
    code: int,
    printed: str,
    verdict: str | None,
) -> None:
    """It has words of its own for what is undecided and for what came to no verdict."""
    logs = "builds/{build}.jsonl" if rows else "builds/"  # one log for all builds is an error
    save_settings(tmp_path, metrics=METRICS, gate={"logs": logs}, store="store")
    write_build(tmp_path, "b1", ROWS)
    write_build(tmp_path, "b2", rows or ROWS)
    save_gate(Files(str(tmp_path / "store")), promoted("b1", dataset="default"))
    ended = run_step(tmp_path)
    assert ended.returncode == code, ended.stderr
    assert re.fullmatch(re.escape(printed) + (".+\n" if printed else ""), ended.stdout)
    record = (tmp_path / "gate.json").read_text()
    assert (json.loads(record)["verdict"] if record else None) == verdict


def test_the_record_has_what_the_guide_says() -> None:
    """Each key that it names is one of the record or of its metrics."""
    (fields,) = re.findall(r"Useful fields of the record:(.*?)\n\n", GUIDE, re.DOTALL)
    named = set(re.findall(r"`(\w+)`", fields))
    assert len(named) > 10
    assert named <= Gate.model_fields.keys() | MetricVerdict.model_fields.keys()
