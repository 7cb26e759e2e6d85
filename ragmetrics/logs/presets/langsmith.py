r"""Runs of LangSmith.

A retrieval is a run of type `retriever`.

```bash
langsmith run export runs.jsonl --project help-desk --full --limit 100000
```

It also reads the bulk export (Parquet), the API's `{"runs": [...]}`, and the folder of
`langsmith trace export DIRECTORY --full`. Tags: `project`, `revision` and, of the metadata of the
root run, `tenant`, `environment`, `region`, `channel`, `section`, `product`, `team` and the like. The
build is `index_build` or `index_version` of the metadata. A tag of the root run such as `tenant:acme` counts as such
metadata. Feedback is read from `feedback_stats` of a run of the trace, under keys such as `user_score`, `thumbs` or
`rating`.

```jsonl
{"id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01", "trace_id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01", "parent_run_id": null, "name": "rag_pipeline", "run_type": "chain", "start_time": "2026-11-19T08:00:01", "inputs": {"question": "Do I need to bring a helmet?"}, "outputs": {"answer": "No, helmets are lent at staffed stations."}, "session_name": "help-desk", "tags": ["production", "section:stations"], "feedback_stats": {"user_score": {"n": 1, "avg": 1.0, "values": {}}}, "extra": {"metadata": {"revision_id": "v12", "tenant": "acme", "user_id": "u-7"}}}
{"id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a11", "trace_id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01", "parent_run_id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01", "name": "VectorStoreRetriever", "run_type": "retriever", "start_time": "2026-11-19T08:00:01.250000", "inputs": {"query": "Do I need to bring a helmet?"}, "outputs": {"documents": [{"id": "faq-1", "page_content": "Helmets are lent free of charge at every station with staff.", "metadata": {"source": "faq.md"}, "type": "Document"}, {"id": "faq-9", "page_content": "Stations are open from 6 to 23 hours.", "metadata": {"source": "faq.md"}, "type": "Document"}]}, "extra": {"metadata": {"index_build": "2026-11-18"}}}
{"id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a12", "trace_id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01", "parent_run_id": "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01", "name": "ChatOpenAI", "run_type": "llm", "start_time": "2026-11-19T08:00:02", "inputs": {"messages": [[{"type": "human", "content": "Answer with these passages: ..."}]]}, "outputs": {"generations": [[{"text": "No, helmets are lent at staffed stations."}]]}, "extra": {"metadata": {"ls_model_name": "gpt-4.1-mini"}}}
{"run_id": "8a4d7b10-2c5e-4f19-b7aa-5e6f7a8b9c02", "trace_id": "8a4d7b10-2c5e-4f19-b7aa-5e6f7a8b9c02", "parent_run_id": null, "name": "retrieve_docs", "run_type": "retriever", "start_time": "2026-11-19T08:01:00", "inputs": {"query": "How much is the deposit?"}, "outputs": {"output": [{"page_content": "A deposit of 50 euros is held on your card until the bicycle is back.", "type": "Document", "metadata": {"doc_id": "faq-2", "score": 0.7}}]}}
{"run_id": "9b5e8c21-3d6f-4a2b-88bb-6f7a8b9c0d03", "trace_id": "9b5e8c21-3d6f-4a2b-88bb-6f7a8b9c0d03", "parent_run_id": null, "name": "retrieve_docs", "run_type": "retriever", "start_time": "2026-11-19T08:02:00", "inputs": {"query": "When do stations open?"}, "outputs": null, "error": "TimeoutError('vector store')"}
{"run_id": "0c6f9d32-4e70-4b3c-99cc-7a8b9c0d1e04", "trace_id": "0c6f9d32-4e70-4b3c-99cc-7a8b9c0d1e04", "parent_run_id": null, "name": "retrieve_docs", "run_type": "retriever", "start_time": "2026-11-19T08:03:00"}
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragmetrics.logs.exported_values import (
    TRACE_TAGS,
    at,
    documents_in,
    first,
    identifier,
    is_feedback,
    structured,
)
from ragmetrics.logs.preset import Layout, Preset, Span
from ragmetrics.records import BadRow

_TYPES = ("tool", "chain", "llm", "retriever", "embedding", "prompt", "parser")
_LONGEST_TAG = 60
_LAYOUT = Layout(
    id=("id", "run_id"),
    trace=("id", "run_id"),  # a run without the id of a trace is one by itself
    parent=("parent_run_id",),
    start=("start_time",),
    end=("end_time",),
    error=("error",),
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
    metadata, layout = at(run, "extra.metadata"), _LAYOUT
    if not identifier(at(run, "parent_run_id")):
        metadata = _tagged(structured(at(run, "tags")), metadata)
        extra = run["extra"] if isinstance(run["extra"], Mapping) else {}
        run = {**run, "extra": {**extra, "metadata": metadata}}
        layout = _with_tags(metadata)
    found = layout.span(
        run,
        f"{kind} run",
        {
            "index_build": first(metadata, "index_build", "index_version", "indexVersion"),
            "language": first(metadata, "language"),
            "session_id": first(metadata, "session_id", "thread_id", "conversation_id"),
            "turn": first(metadata, "turn"),
        },
        retrieval=kind == "retriever",
        failed=bool(at(run, "error")),
        llm=kind == "llm",
        documents=_documents,
        trace=identifier(at(run, "trace_id")),
    )
    return replace(found, did=_feedback(structured(at(run, "feedback_stats"))))


def _feedback(stats: Any) -> dict[str, Any]:
    """What users said of a run: the mean of their scores, else the category of most of them."""
    for name, found in stats.items() if isinstance(stats, Mapping) else ():
        values = structured(at(found, "values"))
        if is_feedback(name) and type(mean := at(found, "avg")) in (int, float):
            return {"feedback": mean}
        counts = values if isinstance(values, Mapping) else {}
        known = [name for name, count in counts.items() if type(count) is int]
        if is_feedback(name) and known:
            return {"feedback": max(known, key=lambda one: counts[one])}
    return {}


def _tagged(tags: Any, metadata: Any) -> dict[str, Any]:
    """The metadata of a root run, and those of its tags that are a name and a value."""
    texts = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    pairs = (tag.split(":", 1) for tag in texts if ":" in tag)
    named = {name.strip(): value.strip() for name, value in pairs}
    return named | (dict(metadata) if isinstance(metadata, Mapping) else {})


def _with_tags(metadata: Any) -> Layout:
    """The layout with tags for the metadata of a root run."""
    pairs = metadata.items() if isinstance(metadata, Mapping) else ()
    tags = {
        name: (f"extra.metadata.{name}",)
        for name, value in pairs
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_TAG
        if name in TRACE_TAGS
    }
    return replace(_LAYOUT, tags=tags | dict(_LAYOUT.tags)) if tags else _LAYOUT


def _documents(run: Mapping[str, Any]) -> list[Any]:
    documents = documents_in(structured(at(run, "outputs")))
    if documents is None:
        raise BadRow("outputs: no list of documents (export runs with their inputs and outputs)")
    return documents


langsmith = Preset(
    "langsmith",
    __doc__,
    _read,
    _LAYOUT.columns
    | {"run_type", "child_runs", "error", "trace_id", "extra", "tags", "feedback_stats"},
)
