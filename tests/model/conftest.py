"""Servers of one and of two slots, rows of the demo for them, and `ragmetrics score` on these."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.builders import judge_at, night_values, save_settings
from tests.fakes.llama import LlamaServer, llama_server
from tests.fakes.processes import ROOT

DEMO = ROOT / "ragmetrics/pipeline/demo"
CONTEXTS = 2  # of each row: the model reads a hundred tokens a second


@dataclass(frozen=True)
class Scored:
    """What `ragmetrics score` printed as JSON, and the scores that it wrote."""

    summary: Mapping[str, Any]
    scores: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Task:
    """Rows to be scored by a server's model, in a folder with their settings and a store."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """The command as a user types it."""
        out = str(self.folder / "scores.jsonl")
        python = [sys.executable, "-m", "ragmetrics", "score", str(self.folder / "rows.jsonl")]
        settings = ["--settings", str(self.folder / "ragmetrics.yaml"), "--out", out, "--json"]
        return [*python, *settings, "--golden", str(DEMO / "golden.jsonl")]

    @property
    def stored(self) -> int:
        """Number of replies in the logs of its store."""
        logs = (self.folder / "store/judgements").rglob("*.jsonl")
        return sum(log.read_bytes().count(b"\n") for log in logs)

    def score(self) -> Scored:
        """Run the command to its end. Its code is 1 where too few rows could be scored."""
        done = subprocess.run(self.command, capture_output=True, text=True, timeout=800)
        assert done.returncode in (0, 1), done.stderr
        lines = (self.folder / "scores.jsonl").read_text().splitlines()
        return Scored(json.loads(done.stdout), [json.loads(line) for line in lines])


def make_task(
    folder: Path,
    server: LlamaServer,
    rows: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    kind: str = "openai",
    **judge: Any,
) -> Task:
    """Write rows and settings into a new folder."""
    folder.mkdir()
    lines = (json.dumps(row) for row in rows)
    (folder / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    # What else runs on this machine may slow the model: no test depends on how fast it writes.
    patient: dict[str, Any] = {"timeout_seconds": 300, "deadline_seconds": 900, "hedge": False}
    chosen = judge_at(server, kind, model="smollm2", temperature=0, **patient, **judge)
    save_settings(folder, night_values(folder, metrics=metrics, judge=chosen))
    return Task(folder)


def demo_rows(count: int) -> list[dict[str, Any]]:
    """The first rows of the demo's second night, each with its first contexts."""
    [log] = (DEMO / "logs/dt=2026-11-11").iterdir()
    with gzip.open(log, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]
    return [
        row
        | {name: row[name][:CONTEXTS] for name in row if "_contexts" in name or "_context_" in name}
        for row in rows
    ]


@pytest.fixture(scope="session")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server that works on two requests at a time and keeps what it has read, as by default."""
    with llama_server(tmp_path_factory.mktemp("llama"), slots=2) as server:
        yield server


@pytest.fixture(scope="session")
def one_slot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server that works on one request at a time and keeps nothing: what it read before cannot
    change the last digits of what it reads now.
    """
    with llama_server(tmp_path_factory.mktemp("llama"), slots=1, caches=False) as server:
        yield server
