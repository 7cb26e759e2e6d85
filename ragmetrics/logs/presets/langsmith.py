"""langsmith: exported runs. A retrieval is a run whose run_type is `retriever`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import Layout, Preset, Span
from ragmetrics.logs.presets.values import at, documents_in, identifier, structured
from ragmetrics.records import BadRow

_TYPES = ("tool", "chain", "llm", "retriever", "embedding", "prompt", "parser")
_LAYOUT = Layout(
    id=("id", "run_id"),
    trace=("id", "run_id"),  # a run without the id of a trace is one by itself
    parent=("parent_run_id",),
    start=("start_time",),
    name=("name",),
    input=("inputs",),
    output=("outputs",),
    tags={
        "project": ("session_name",),
        "revision": ("extra.metadata.revision_id",),
        "model": ("extra.metadata.ls_model_name",),
    },
)


def _read(record: Mapping[str, Any]) -> Iterator[Span | BadRow]:
    """A run and, where the export nests them, the runs below it."""
    waiting: list[Any] = [record]
    while waiting:
        run = waiting.pop()
        if not isinstance(run, Mapping):
            yield BadRow("child_runs: not a list of runs")
            continue
        if not isinstance(run.get("run_type"), str):
            yield BadRow("run_type: not there")
        else:
            yield _run({**run, "extra": structured(at(run, "extra"))})
        below = run.get("child_runs")
        waiting += reversed(below) if isinstance(below, list) else []


def _run(run: Mapping[str, Any]) -> Span:
    kind = run["run_type"] if run["run_type"] in _TYPES else "other"
    return _LAYOUT.span(
        run,
        f"{kind} run",
        at(run, "extra.metadata"),
        retrieval=kind == "retriever",
        failed=bool(at(run, "error")),
        llm=kind == "llm",
        documents=_documents,
        trace=identifier(at(run, "trace_id")),
    )


def _documents(run: Mapping[str, Any]) -> list[Any]:
    documents = documents_in(structured(at(run, "outputs")))
    if documents is None:
        raise BadRow("outputs: no list of documents (export runs with their inputs and outputs)")
    return documents


PRESET = Preset(_read, _LAYOUT.columns | {"run_type", "child_runs", "error", "trace_id", "extra"})
