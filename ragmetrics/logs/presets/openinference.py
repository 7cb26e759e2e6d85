"""openinference: spans of Arize Phoenix, from its data frame, its API or OTLP files.

A retrieval is a span of kind RETRIEVER. Attributes are found nested or flat, with the documents
as a list or flattened to `retrieval.documents.0.document.content`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import FAILED, Preset, Skipped, Span
from ragmetrics.logs.presets.otlp import failed, spans
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

_KINDS = frozenset(
    [
        "LLM",
        "EMBEDDING",
        "CHAIN",
        "RETRIEVER",
        "RERANKER",
        "TOOL",
        "AGENT",
        "GUARDRAIL",
        "EVALUATOR",
        "PROMPT",
    ]
)
_FLAT = re.compile(
    r"(?:attributes\.)?retrieval\.documents\.(\d{1,6})\.(document\.(?:content|id|score))"
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
    parent = identifier(first(span, "parent_id", "parentId"))
    retrieval = kind == "RETRIEVER"
    return Span(
        kind=f"{kind} span",
        item=(FAILED if failed(span) else _row(span)) if retrieval else None,
        trace=identifier(at(span, "context.trace_id")),
        id=identifier(at(span, "context.span_id")),
        parent=parent,
        root=parent is None,
        llm=kind == "LLM",
        start=moment(at(span, "start_time")),
        question=None if parent or retrieval else question_in(_lenient(span, "input")),
        response=None if retrieval else answer_in(_lenient(span, "output")),
        about=_about(span) if parent is None else about({}, model=_model(span)),
        source=span,
    )


def _row(span: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": identifier(at(span, "context.span_id")),
        "timestamp": at(span, "start_time"),
        **tried("user_input", lambda: _question(span)),
        **tried("retrieved_contexts", lambda: contexts(_documents(span))),
        **_about(span, retriever=at(span, "name")),
    }


def _question(span: Mapping[str, Any]) -> dict[str, Any]:
    mime = at(span, "attributes.input.mime_type")
    return {"user_input": question_in(structured(at(span, "attributes.input.value"), mime))}


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
    found = documents_in(output)
    if found is None and output not in (None, ""):
        raise BadRow("retrieval.documents: not there, and output.value holds no documents")
    return found or []


def _lenient(span: Mapping[str, Any], side: str) -> Any:
    """An optional input or output. An invalid value for its MIME type is no error."""
    return structured(at(span, f"attributes.{side}.value"))


def _model(span: Mapping[str, Any]) -> Any:
    return at(span, "attributes.llm.model_name")


def _about(span: Mapping[str, Any], **tags: Any) -> dict[str, Any]:
    metadata = structured(at(span, "attributes.metadata"))
    if not isinstance(metadata, Mapping):
        names = ("index_build", "language")
        metadata = {name: at(span, f"attributes.metadata.{name}") for name in names}
    return about(
        metadata,
        project=at(span, "resource.attributes.openinference.project.name"),
        service=at(span, "resource.attributes.service.name"),
        model=_model(span),
        **tags,
    )


_COLUMNS = frozenset(
    [
        "span_kind",
        "attributes",
        "retrieval",
        "parent_id",
        "parentId",
        "context",
        "start_time",
        "name",
        "status",
        "status_code",
        "resource",
        "resourceSpans",
        "resourceMetrics",
        "resourceLogs",
    ]
)

PRESET = Preset(_read, _COLUMNS)
