"""langsmith: exported runs. A retrieval is a run whose run_type is `retriever`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import FAILED, Preset, Span
from ragmetrics.logs.presets.values import (
    about,
    answer_in,
    at,
    contexts,
    documents_in,
    first,
    identifier,
    moment,
    question_in,
    structured,
    tried,
)
from ragmetrics.model import BadRow

_TYPES = ("tool", "chain", "llm", "retriever", "embedding", "prompt", "parser")


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
            yield _run(run)
        below = run.get("child_runs")
        waiting += reversed(below) if isinstance(below, list) else []


def _run(run: Mapping[str, Any]) -> Span:
    kind = run["run_type"] if run["run_type"] in _TYPES else "other"
    parent = identifier(at(run, "parent_run_id"))
    retrieval = kind == "retriever"
    name = identifier(first(run, "id", "run_id"))
    return Span(
        kind=f"{kind} run",
        item=(FAILED if at(run, "error") else _row(run, name)) if retrieval else None,
        trace=identifier(at(run, "trace_id")) or name,
        id=name,
        parent=parent,
        root=parent is None,
        llm=kind == "llm",
        start=moment(at(run, "start_time")),
        question=None if parent or retrieval else question_in(structured(at(run, "inputs"))),
        response=None if retrieval else answer_in(structured(at(run, "outputs"))),
        about=_about(run) if parent is None else about({}, model=_model(run)),
        source=run,
    )


def _row(run: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    return {
        "id": name,
        "timestamp": at(run, "start_time"),
        "user_input": question_in(structured(at(run, "inputs"))),
        **tried("retrieved_contexts", lambda: contexts(_documents(run))),
        **_about(run, retriever=at(run, "name")),
    }


def _documents(run: Mapping[str, Any]) -> list[Any]:
    documents = documents_in(structured(at(run, "outputs")))
    if documents is None:
        raise BadRow("outputs: no list of documents (export runs with their inputs and outputs)")
    return documents


def _metadata(run: Mapping[str, Any]) -> Any:
    return at({"extra": structured(at(run, "extra"))}, "extra.metadata")


def _model(run: Mapping[str, Any]) -> Any:
    return at(_metadata(run), "ls_model_name")


def _about(run: Mapping[str, Any], **tags: Any) -> dict[str, Any]:
    metadata = _metadata(run)
    return about(
        metadata,
        project=at(run, "session_name"),
        revision=at(metadata, "revision_id"),
        model=at(metadata, "ls_model_name"),
        **tags,
    )


_COLUMNS = frozenset(
    [
        "run_type",
        "child_runs",
        "id",
        "run_id",
        "name",
        "error",
        "trace_id",
        "parent_run_id",
        "start_time",
        "inputs",
        "outputs",
        "extra",
        "session_name",
    ]
)

PRESET = Preset(_read, _COLUMNS)
