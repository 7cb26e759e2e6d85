r"""Traces of MLflow.

A retrieval is a span of type `RETRIEVER`.

```python
import mlflow

traces = mlflow.search_traces(locations=["1"], max_results=100_000)  # ids of experiments
traces.to_json("traces.jsonl", orient="records", lines=True)
```

It also reads `trace.to_json()` and the frame itself (`evaluate`). Tags: those that your code set on the trace, of the
names `tenant`, `environment`, `region`, `channel`, `section`, `product`, `team` and the like. The build is
`index_build` or `index_version`, an attribute of the span or a tag of the trace.

```jsonl
{"info": {"trace_id": "tr-5b8efff798038103d269b633813fc60c", "request_time": "2026-11-19T08:00:01Z", "state": "OK", "trace_metadata": {"mlflow.trace.user": "u-7"}, "tags": {"section": "stations", "index_build": "2026-11-18", "mlflow.traceName": "rag"}}, "data": {"spans": [{"trace_id": "W47/95gDgQPSabYzgT/GDA==", "span_id": "qrkZu0RmHjE=", "parent_span_id": null, "name": "rag", "start_time_unix_nano": 1795075201000000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": "\"CHAIN\"", "mlflow.spanInputs": "{\"question\": \"Do I need to bring a helmet?\"}", "mlflow.spanOutputs": "{\"answer\": \"No, helmets are lent at staffed stations.\"}"}}, {"trace_id": "W47/95gDgQPSabYzgT/GDA==", "span_id": "LkSYx4wjKg8=", "parent_span_id": "qrkZu0RmHjE=", "name": "retrieve", "start_time_unix_nano": 1795075201250000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": "\"RETRIEVER\"", "mlflow.spanInputs": "{\"query\": \"Do I need to bring a helmet?\"}", "mlflow.spanOutputs": "[{\"page_content\": \"Helmets are lent free of charge at every station with staff.\", \"metadata\": {\"doc_uri\": \"faq.md\", \"relevance_score\": 0.82}, \"id\": \"faq-1\"}, {\"page_content\": \"Stations are open from 6 to 23 hours.\", \"metadata\": {\"relevance_score\": 0.31}, \"id\": \"faq-9\"}]"}}]}}
{"trace_id": "tr-7c1d0a4be2f94c55a3b1f0d2c4e6a801", "state": "OK", "tags": {}, "trace_metadata": {}, "spans": [{"span_id": "Hy49TFtqeYg=", "parent_span_id": null, "name": "search", "start_time_unix_nano": 1795075260000000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": "\"RETRIEVER\"", "mlflow.spanInputs": "{\"query\": \"How much is the deposit?\"}", "mlflow.spanOutputs": "[{\"page_content\": \"A deposit of 50 euros is held on your card until the bicycle is back.\", \"metadata\": {\"doc_id\": \"faq-2\"}}]"}}]}
{"info": {"trace_id": "tr-9e2f6b1c8d7a45f0b3c2d1e0f9a8b7c6", "state": "ERROR"}, "data": {"spans": [{"span_id": "KiosLS4vKis=", "parent_span_id": null, "name": "retrieve", "start_time_unix_nano": 1795075320000000000, "status": {"code": "STATUS_CODE_ERROR"}, "attributes": {"mlflow.spanType": "\"RETRIEVER\"", "mlflow.spanInputs": "{\"query\": \"When do stations open?\"}"}}]}}
{"info": {"trace_id": "tr-a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5", "state": "OK"}, "data": {"spans": [{"span_id": "Ojs8PT4/Ojs=", "parent_span_id": null, "name": "retrieve", "start_time_unix_nano": 1795075380000000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": "\"RETRIEVER\"", "mlflow.spanInputs": "{\"query\": \"Do you rent unicycles?\"}", "mlflow.spanOutputs": "\"none\""}}]}}
```
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from ragmetrics.logs.exported_values import (
    TRACE_TAGS,
    at,
    documents_in,
    first,
    from_nanoseconds,
    identifier,
    structured,
)
from ragmetrics.logs.preset import Layout, Preset, Skipped, Span
from ragmetrics.logs.presets._otlp import failed
from ragmetrics.records import BadRow

_EIGHT_BYTES = re.compile(r"[A-Za-z0-9+/]{11}=")
"""How JSON has the id of a span; MLflow's pages, and what is written to it, have it in hex."""
_TYPES = ("LLM", "CHAT_MODEL", "CHAIN", "AGENT", "TOOL", "RETRIEVER", "RERANKER", "EMBEDDING")
_LAYOUT = Layout(
    id=("span_id",),
    trace=("trace_id",),
    parent=("parent_id",),
    start=("start",),
    end=("end",),
    error=("status.message",),
    name=("name",),
    input=("mlflow.spanInputs",),
    output=("mlflow.spanOutputs",),
    session=("session_id",),
    tags={"model": ("mlflow.llm.model",), **{name: (f"tags.{name}",) for name in TRACE_TAGS}},
)


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped | BadRow]:
    """The spans of a trace."""
    spans = structured(first(record, "data.spans", "spans"))
    if not isinstance(spans, list):
        raise BadRow("spans: not a list (export traces with their spans)")
    info = at(record, "info") if "info" in record else record
    if not spans:
        yield Skipped("trace without spans")
    for span in spans:
        if isinstance(span, Mapping) and isinstance(span.get("attributes"), Mapping):
            yield _span(span, info)
        else:
            yield BadRow("spans: not a list of spans with attributes")


def _span(span: Mapping[str, Any], info: Any) -> Span:
    attributes = {name: _decoded(value) for name, value in span["attributes"].items()}
    kind = attributes.get("mlflow.spanType")
    tags = structured(at(info, "tags"))
    record = {
        **attributes,
        "span_id": _hex(span.get("span_id")),
        "parent_id": _hex(span.get("parent_span_id")),
        "trace_id": identifier(at(info, "trace_id")),
        "name": span.get("name"),
        "start": from_nanoseconds(span.get("start_time_unix_nano")),
        "end": from_nanoseconds(span.get("end_time_unix_nano")),
        "status": span.get("status"),
        "tags": tags if isinstance(tags, Mapping) else {},
        "session_id": at(structured(at(info, "trace_metadata")), "mlflow.trace.session"),
    }
    return _LAYOUT.span(
        record,
        f"{kind if kind in _TYPES else 'other'} span",
        {
            "index_build": _named(record, "index_build") or _named(record, "index_version"),
            "language": _named(record, "language"),
        },
        retrieval=kind == "RETRIEVER",
        failed=failed(span),
        llm=kind in ("LLM", "CHAT_MODEL"),
        documents=_documents,
    )


def _named(record: Mapping[str, Any], name: str) -> Any:
    """An attribute of the span, else a tag of its trace."""
    return first(record, name, f"tags.{name}")


def _decoded(value: Any) -> Any:
    """The value of an attribute, which is JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        return from_json(value)
    except ValueError:
        return value


def _hex(value: Any) -> str | None:
    """The id of a span in hex."""
    if isinstance(value, str) and _EIGHT_BYTES.fullmatch(value):
        return base64.b64decode(value).hex()
    return identifier(value)


def _documents(record: Mapping[str, Any]) -> list[Any]:
    documents = documents_in(at(record, "mlflow.spanOutputs"))
    if documents is None:
        raise BadRow("mlflow.spanOutputs: no list of documents")
    return documents


mlflow = Preset(
    "mlflow",
    __doc__,
    _read,
    frozenset(["info", "data", "spans", "trace", "trace_id", "trace_metadata", "tags", "state"]),
)
