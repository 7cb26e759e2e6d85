"""Logs of index builds, row by row: golden questions as a healthy or a damaged index answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings, make_settings
from tests.builders import night_values
from tests.fakes.logs import make_rows, write_jsonl

METRICS = ["context_relevance", "context_recall"]
_JUNK = "Museums are closed on Mondays."
_MORE = "Bicycles may be left at the station. The guard looks after them."


def golden(count: int = 150, good: float = 0.9) -> list[dict[str, Any]]:
    """What a healthy index answers to the golden questions: a share of them well."""
    return make_rows(count, good=good)


def damaged(rows: list[dict[str, Any]], share: float, seed: int) -> list[dict[str, Any]]:
    """The same questions after a share of the index was lost: what came back is of no use, or
    nothing.
    """
    chance = random.Random(seed)
    hit = set(chance.sample(range(len(rows)), round(share * len(rows))))
    lost: list[list[str]] = [[], [_JUNK], [_JUNK, _MORE]]
    return [
        {**row, "retrieved_contexts": chance.choice(lost)} if number in hit else row
        for number, row in enumerate(rows)
    ]


def healthy(rows: list[dict[str, Any]], seed: int, moved: int = 8) -> list[dict[str, Any]]:
    """The same questions by an index that is as good: some rows gained or lost a passage that
    says nothing, so that they move a little up or down.
    """
    chance = random.Random(seed)
    changed = list(rows)
    for turn, number in enumerate(chance.sample(range(len(rows)), moved)):
        found = rows[number]["retrieved_contexts"]
        contexts = [*found, _MORE] if turn % 2 else found[:1]
        changed[number] = {**rows[number], "retrieved_contexts": contexts}
    return changed


def gate_settings(folder: Path, **change: Any) -> Settings:
    """Settings whose builds have their logs in `builds/` of a folder, and whose store is there."""
    values: dict[str, Any] = night_values(
        folder,
        logs="logs/{date}.jsonl",
        dataset="towers",
        metrics=METRICS,
        gate={"logs": f"{folder}/builds/{{build}}.jsonl"},
    )
    return make_settings({**values, **change})


def write_build(folder: Path, build: str, rows: list[Any]) -> Path:
    """Write the log of a build; its rows say that they are of it."""
    said = [{**row, "index_build": build} if isinstance(row, dict) else row for row in rows]
    return write_jsonl(folder / "builds" / f"{build}.jsonl", said)
