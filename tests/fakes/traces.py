"""Spans made to measure, and what presets make of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragmetrics.config import PRESETS
from ragmetrics.logs.preset_rows import Place, Traces, interpret


def run(preset: str, records: Iterable[Any], traces: Traces | None = None) -> list[tuple[int, Any]]:
    """What records come to, each with the number of the record."""
    places = ((Place("log", number), one) for number, one in enumerate(records))
    return [(p.number, item) for p, item in interpret(PRESETS.find(preset), places, {}, traces)]


def span(
    name: str, kind: str, parent: str | None = None, trace: str = "t", **fields: Any
) -> dict[str, Any]:
    """A LangSmith run: the plainest of the layouts with traces."""
    times = {"retriever": "08:00:01", "llm": "08:00:02"}
    record = {
        "id": name,
        "trace_id": trace,
        "parent_run_id": parent,
        "run_type": kind,
        "start_time": f"2026-11-19T{times.get(kind, '08:00:00')}Z",
    }
    if kind == "retriever":
        record |= {"inputs": {"query": f"{name}?"}, "outputs": {"documents": [{"text": name}]}}
    if kind in ("llm", "chain"):
        record |= {"outputs": {"output": f"answer of {name}"}}
    return record | fields
