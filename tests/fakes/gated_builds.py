"""Two builds of an index whose logs a gate compares, in a store of their own."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from ragmetrics.comparison import run_gate
from ragmetrics.config import Settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Gate, IndexBuild
from ragmetrics.storage import open_store
from tests.fakes.build_logs import gate_settings, golden, write_build
from tests.fakes.logs import write_jsonl

ROWS = golden(60)
"""The golden questions, as a healthy index answers them."""


def gate(settings: Settings, build: str = "b2", **asked: Any) -> Gate:
    """The verdict on a build, against `b1` unless said otherwise."""
    values = {"dataset": "towers", "build": build, "serving": "b1", **asked}
    return run_gate(settings, IndexBuild(**values))


def two_builds(folder: Path, rows: list[dict[str, Any]], **change: Any) -> Settings:
    """Settings, with a healthy log of b1 and these rows as that of b2."""
    write_build(folder, "b1", ROWS)
    write_build(folder, "b2", rows)
    return gate_settings(folder, **change)


def paths(settings: Settings, folder: str) -> list[str]:
    """The files of the store below a folder."""
    return [info.path for info in open_store(settings).below(folder)]


def loose(folder: Path) -> dict[str, Any]:
    """Settings of the gate under which sixty equal questions are enough."""
    return {"logs": f"{folder}/builds/{{build}}.jsonl", "rules": None}


def night(settings: Settings, folder: Path, day: date, rows: list[dict[str, Any]]) -> None:
    """A night of the service."""
    write_jsonl(folder / "logs" / f"{day}.jsonl", rows)
    run_night(settings, day)


def without_passages(tmp_path: Path, max_drop: float) -> Settings:
    """Settings, with a build whose index lost passages that 8 of 28 golden questions need."""
    rows = golden(28, good=1.0)
    for number, row in enumerate(rows):  # two questions need each passage
        row["retrieved_contexts"] = rows[number // 2 * 2]["retrieved_contexts"][:1]
        row["retrieved_context_ids"] = row["reference_context_ids"] = [f"d{number // 2}"]
    other = {"retrieved_contexts": ["Museums are closed."], "retrieved_context_ids": ["x"]}
    gone = [{**row, **(other if n % 8 < 2 else {})} for n, row in enumerate(rows)]
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", gone)
    rules = [{"metric": "context_recall", "max_drop": max_drop}]
    logs = f"{tmp_path}/builds/{{build}}.jsonl"
    return gate_settings(tmp_path, gate={"logs": logs, "rules": rules})
