"""Golden sets to replay, and the settings that replay them."""

from __future__ import annotations

import json
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.retriever import retriever_client as asking
from tests.fakes.logs import write_jsonl
from tests.fakes.retriever import SearchServer

BUILD = "2026-11-19"


def golden_rows(count: int = 12) -> list[dict[str, Any]]:
    """Golden rows with a reference each, in two sections."""
    return [
        {
            "id": f"gold-{number:03d}",
            "user_input": f"What is the height of tower {number:03d}?",
            "reference": f"It is {100 + number} metres.",
            "tags": {"section": ("towers", "bridges")[number % 2]},
        }
        for number in range(count)
    ]


def replaying(
    folder: Path,
    server: SearchServer | None = None,
    rows: list[dict[str, Any]] | None = None,
    **retriever: Any,
) -> Settings:
    """Settings whose golden set and builds are in a folder; `retriever` says more of it."""
    golden = write_jsonl(folder / "golden.jsonl", golden_rows() if rows is None else rows)
    return make_settings(
        {
            "golden": str(golden),
            "gate": {"logs": str(folder / "builds" / "{build}")},
            "retriever": {**(server.settings if server else {}), **retriever},
        }
    )


def log_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a log that a replay wrote."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def give_up_soon(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """Attempts at the questions with a text have a tenth of a second. `timeout_seconds` holds for
    the others: a machine that stalls makes no healthy one late.
    """
    attempt = asking.RetrieverClient._attempt

    async def attempted(self: asking.RetrieverClient, question: Any, *more: Any) -> Any:
        quick = copy(self)
        if asked in question.user_input:
            quick._settings = self._settings.model_copy(update={"timeout_seconds": 0.1})
        return await attempt(quick, question, *more)

    monkeypatch.setattr(asking.RetrieverClient, "_attempt", attempted)


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries follow at once; waits that the server asks for stay."""
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(asking, "_SPREAD", 0.01)
