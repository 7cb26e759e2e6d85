r"""Spans of Arize Phoenix.

A retrieval is a span of kind `RETRIEVER`.

```python
from phoenix.client import Client

spans = Client().spans.get_spans_dataframe(project_identifier="help-desk", limit=1_000_000)
spans.to_parquet("spans.parquet")  # the default of `limit` is 1,000
```

It also reads `px.Client().get_spans_dataframe()`, the frame itself (`evaluate`), the JSON of Phoenix's REST API
(`/v1/projects/NAME/spans`), and OTLP files. `RERANKER` spans are not read. Tags: `project`, `service`.

Feedback is an annotation of a span by a `HUMAN` under a name such as `user feedback` or `thumbs`, which
`px span list --include-annotations --format raw > spans.json` exports.

```jsonl
{"name": "VectorStoreRetriever", "span_kind": "RETRIEVER", "parent_id": "aaa19b7ec3c1b173", "start_time": "2026-11-19T08:00:01.250000+00:00", "status_code": "OK", "context.span_id": "eee19b7ec3c1b174", "context.trace_id": "5b8efff798038103d269b633813fc60c", "attributes.input.value": "Do I need to bring a helmet?", "attributes.input.mime_type": "text/plain", "attributes.retrieval.documents": [{"document.content": "Helmets are lent free of charge at every station with staff.", "document.id": "faq-1", "document.score": 0.82}, {"document.content": "Stations are open from 6 to 23 hours.", "document.id": "faq-9", "document.score": 0.31}], "attributes.metadata": {"index_build": "2026-11-18"}}
{"name": "VectorStoreRetriever", "context": {"trace_id": "7c1d0a4be2f94c55a3b1f0d2c4e6a801", "span_id": "1f2e3d4c5b6a7988"}, "span_kind": "RETRIEVER", "parent_id": "0f1e2d3c4b5a6978", "start_time": "2026-11-19T08:00:02+00:00", "status_code": "OK", "attributes": {"openinference.span.kind": "RETRIEVER", "input.value": "{\"query\": \"How much is the deposit?\"}", "input.mime_type": "application/json", "retrieval.documents.0.document.content": "A deposit of 50 euros is held on your card until the bicycle is back.", "retrieval.documents.0.document.id": "faq-2", "retrieval.documents.1.document.content": "Lost keys cost 25 euros. Report them in the app.", "retrieval.documents.1.document.id": "faq-4"}}
{"name": "ChatOpenAI", "span_kind": "LLM", "parent_id": "aaa19b7ec3c1b173", "start_time": "2026-11-19T08:00:02+00:00", "status_code": "OK", "context.span_id": "bbb19b7ec3c1b175", "context.trace_id": "5b8efff798038103d269b633813fc60c", "attributes.input.value": "Answer with these passages: ...", "attributes.output.value": "No, helmets are lent at staffed stations.", "attributes.llm.model_name": "gpt-4.1-mini"}
{"name": "rag", "span_kind": "CHAIN", "parent_id": null, "start_time": "2026-11-19T08:00:01+00:00", "status_code": "OK", "context.span_id": "aaa19b7ec3c1b173", "context.trace_id": "5b8efff798038103d269b633813fc60c", "attributes.input.value": "Do I need to bring a helmet?", "attributes.output.value": "No, helmets are lent at staffed stations.", "annotations": [{"name": "user feedback", "annotator_kind": "HUMAN", "result": {"label": "thumbs-up", "score": 1}}]}
{"name": "rag", "context": {"trace_id": "7c1d0a4be2f94c55a3b1f0d2c4e6a801", "span_id": "0f1e2d3c4b5a6978"}, "span_kind": "CHAIN", "parent_id": null, "start_time": "2026-11-19T08:00:01.900000+00:00", "status_code": "OK", "attributes": {"openinference.span.kind": "CHAIN", "input.value": "{\"question\": \"How much is the deposit?\"}", "output.value": "{\"question\": \"How much is the deposit?\", \"answer\": \"50 euros.\"}", "output.mime_type": "application/json"}}
{"name": "VectorStoreRetriever", "context": {"trace_id": "9e2f6b1c8d7a45f0b3c2d1e0f9a8b7c6", "span_id": "2a2b2c2d2e2f2a2b"}, "span_kind": "RETRIEVER", "parent_id": null, "start_time": "2026-11-19T08:00:09+00:00", "status_code": "OK", "attributes": {"openinference.span.kind": "RETRIEVER", "input.value": "Do you rent unicycles?", "output.value": "[]"}}
{"name": "VectorStoreRetriever", "context": {"trace_id": "a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5", "span_id": "3a3b3c3d3e3f3a3b"}, "span_kind": "RETRIEVER", "parent_id": null, "start_time": "2026-11-19T08:00:12+00:00", "status_code": "OK", "attributes": {"openinference.span.kind": "RETRIEVER", "input.value": "{\"query\": \"cut off", "input.mime_type": "application/json", "retrieval.documents.0.document.content": "Stations are open from 6 to 23 hours."}}
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ragmetrics.logs.exported_values import at, documents_in, first, is_feedback, structured
from ragmetrics.logs.preset import Layout, Preset, Skipped, Span
from ragmetrics.logs.presets._otlp import COLUMNS, STATUS, failed, spans
from ragmetrics.records import BadRow

_KINDS = frozenset(
    [
        *("LLM", "EMBEDDING", "CHAIN", "RETRIEVER", "RERANKER", "TOOL", "AGENT", "GUARDRAIL"),
        *("EVALUATOR", "PROMPT"),
    ]
)
_FLAT = re.compile(
    r"(?:attributes\.)?retrieval\.documents\.(\d{1,6})\.(document\.(?:content|id|score))"
)
_LAYOUT = Layout(
    id=("context.span_id",),
    trace=("context.trace_id",),
    parent=("parent_id", "parentId"),
    start=("start_time",),
    end=("end_time",),
    error=("status_message", *STATUS),
    name=("name",),
    input=("attributes.input.value",),
    output=("attributes.output.value",),
    session=("attributes.session.id",),
    tags={
        "project": ("resource.attributes.openinference.project.name",),
        "service": ("resource.attributes.service.name",),
        "model": ("attributes.llm.model_name",),
    },
)


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped | BadRow]:
    if "span_kind" in record or any(name.startswith("attributes.") for name in record):
        yield _span(record)  # from Phoenix's data frame or API
        return
    for span in spans(record):
        yield _span(span) if isinstance(span, dict) else span


def _span(span: Mapping[str, Any]) -> Span:
    kind = first(span, "attributes.openinference.span.kind", "span_kind")
    kind = kind.upper() if isinstance(kind, str) and kind.upper() in _KINDS else "other"
    found = _LAYOUT.span(
        span,
        f"{kind} span",
        _metadata(span),
        retrieval=kind == "RETRIEVER",
        failed=failed(span),
        llm=kind == "LLM",
        documents=_documents,
        mime=at(span, "attributes.input.mime_type"),
    )
    return replace(found, did=_feedback(structured(at(span, "annotations"))))


def _feedback(annotations: Any) -> dict[str, Any]:
    """What a user said of a span, by the last annotation that is feedback."""
    for annotation in reversed(annotations) if isinstance(annotations, list) else ():
        said = first(annotation, "result.score", "result.label")
        by_user = at(annotation, "annotator_kind") == "HUMAN" and is_feedback(
            at(annotation, "name")
        )
        if by_user and said is not None:
            return {"feedback": said}
    return {}


_METADATA = ("index_build", "language", "turn")


def _metadata(span: Mapping[str, Any]) -> Any:
    metadata = structured(at(span, "attributes.metadata"))
    if isinstance(metadata, Mapping):
        return metadata
    return {name: at(span, f"attributes.metadata.{name}") for name in _METADATA}


def _documents(span: Mapping[str, Any]) -> list[Any]:
    """The documents; empty if nothing was retrieved, because a flattened empty list has no keys.

    Raises BadRow for an output without readable documents.
    """
    listed = structured(at(span, "attributes.retrieval.documents"))
    if isinstance(listed, list):
        return listed
    attributes = span.get("attributes")
    flat: dict[int, dict[str, Any]] = {}
    for name, value in (attributes if isinstance(attributes, Mapping) else span).items():
        if match := _FLAT.fullmatch(name):
            flat.setdefault(int(match[1]), {})[match[2]] = value
    if flat:
        return [flat[number] for number in sorted(flat)]
    output = structured(at(span, "attributes.output.value"))
    documents = documents_in(output)
    if documents is None and output not in (None, ""):
        raise BadRow("retrieval.documents: not there, and output.value holds no documents")
    return documents or []


openinference = Preset(
    "openinference",
    __doc__,
    _read,
    COLUMNS | _LAYOUT.columns | {"span_kind", "retrieval", "annotations"},
)
