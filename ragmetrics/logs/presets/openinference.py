"""openinference: spans of Arize Phoenix, from its data frame, its API or OTLP files.

A retrieval is a span of kind RETRIEVER. Attributes are found nested or flat, with the documents
as a list or flattened to `retrieval.documents.0.document.content`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import Layout, Preset, Skipped, Span
from ragmetrics.logs.presets.otlp import COLUMNS, failed, spans
from ragmetrics.logs.presets.values import at, documents_in, first, structured
from ragmetrics.records import BadRow

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
_LAYOUT = Layout(
    id=("context.span_id",),
    trace=("context.trace_id",),
    parent=("parent_id", "parentId"),
    start=("start_time",),
    name=("name",),
    input=("attributes.input.value",),
    output=("attributes.output.value",),
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
    return _LAYOUT.span(
        span,
        f"{kind} span",
        _metadata(span),
        retrieval=kind == "RETRIEVER",
        failed=failed(span),
        llm=kind == "LLM",
        documents=_documents,
        mime=at(span, "attributes.input.mime_type"),
    )


def _metadata(span: Mapping[str, Any]) -> Any:
    metadata = structured(at(span, "attributes.metadata"))
    if isinstance(metadata, Mapping):
        return metadata
    return {name: at(span, f"attributes.metadata.{name}") for name in ("index_build", "language")}


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


PRESET = Preset(_read, COLUMNS | _LAYOUT.columns | {"span_kind", "retrieval"})
