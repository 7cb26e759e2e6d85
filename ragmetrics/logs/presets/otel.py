r"""OpenTelemetry spans, GenAI conventions.

A retrieval is a span with the operation `retrieval`.

The collector's file exporter writes OTLP as JSON lines:

```yaml
exporters:
  file:
    path: /var/log/traces/spans.jsonl
service:
  pipelines:
    traces:
      exporters: [file]
```

The Python SDK's console exporter (`span.to_json()`) is read too. Attributes: `gen_ai.operation.name`,
`gen_ai.retrieval.query.text`, `gen_ai.retrieval.documents`, `gen_ai.input.messages`, `gen_ai.output.messages` (the
conventions may change).

**Query and documents are opt-in, and the conventions ask only for `id` and `score` of a document.** Let your
instrumentation add `content` (or `text`) to each document, or name the attribute in `columns:`. A retrieval without
texts is quarantined.

OpenLLMetry's vector store spans count if they have `db.query.result` events with a `db.query.result.document`. Tags:
`service`, `data_source`.

```jsonl
{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "help-desk"}}]}, "scopeSpans": [{"scope": {"name": "help-desk.tracing"}, "spans": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "00f067aa0ba902b7", "name": "retrieval faq", "kind": 3, "startTimeUnixNano": "1795075201000000000", "endTimeUnixNano": "1795075201400000000", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "retrieval"}}, {"key": "gen_ai.data_source.id", "value": {"stringValue": "faq"}}, {"key": "gen_ai.retrieval.query.text", "value": {"stringValue": "Do I need to bring a helmet?"}}, {"key": "gen_ai.retrieval.documents", "value": {"arrayValue": {"values": [{"kvlistValue": {"values": [{"key": "id", "value": {"stringValue": "faq-1"}}, {"key": "score", "value": {"doubleValue": 0.82}}, {"key": "content", "value": {"stringValue": "Helmets are lent free of charge at every station with staff."}}]}}, {"kvlistValue": {"values": [{"key": "id", "value": {"stringValue": "faq-9"}}, {"key": "score", "value": {"doubleValue": 0.31}}, {"key": "content", "value": {"stringValue": "Stations are open from 6 to 23 hours."}}]}}]}}}, {"key": "index_build", "value": {"stringValue": "2026-11-18"}}], "status": {}, "parentSpanId": "00f067aa0ba902a1"}, {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "00f067aa0ba902b8", "name": "chat gpt-4.1-mini", "kind": 3, "startTimeUnixNano": "1795075202000000000", "endTimeUnixNano": "1795075202400000000", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}, {"key": "gen_ai.request.model", "value": {"stringValue": "gpt-4.1-mini"}}, {"key": "gen_ai.output.messages", "value": {"stringValue": "[{\"role\": \"assistant\", \"parts\": [{\"type\": \"text\", \"content\": \"No, helmets are lent at staffed stations.\"}], \"finish_reason\": \"stop\"}]"}}], "status": {}, "parentSpanId": "00f067aa0ba902a1"}]}]}]}
{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "help-desk"}}]}, "scopeSpans": [{"scope": {"name": "help-desk.tracing"}, "spans": [{"traceId": "9e2f6b1c8d7a45f0b3c2d1e0f9a8b7c6", "spanId": "11f067aa0ba902b7", "name": "retrieval faq", "kind": 3, "startTimeUnixNano": "1795075203000000000", "endTimeUnixNano": "1795075203400000000", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "retrieval"}}, {"key": "gen_ai.data_source.id", "value": {"stringValue": "faq"}}, {"key": "gen_ai.retrieval.query.text", "value": {"stringValue": "When do stations open?"}}, {"key": "gen_ai.retrieval.documents", "value": {"stringValue": "[{\"id\": \"faq-9\", \"score\": 0.77}]"}}], "status": {}}]}]}]}
{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "help-desk"}}]}, "scopeSpans": [{"scope": {"name": "help-desk.tracing"}, "spans": [{"traceId": "7c1d0a4be2f94c55a3b1f0d2c4e6a801", "spanId": "22f067aa0ba902b7", "name": "chroma.query", "kind": 3, "startTimeUnixNano": "1795075205000000000", "endTimeUnixNano": "1795075205400000000", "attributes": [{"key": "db.system", "value": {"stringValue": "chroma"}}, {"key": "db.operation", "value": {"stringValue": "query"}}], "status": {}, "parentSpanId": "22f067aa0ba902a1", "events": [{"timeUnixNano": "1795075205000000000", "name": "db.query.result", "attributes": [{"key": "db.query.result.id", "value": {"stringValue": "faq-2"}}, {"key": "db.query.result.distance", "value": {"doubleValue": 0.2}}, {"key": "db.query.result.document", "value": {"stringValue": "A deposit of 50 euros is held on your card until the bicycle is back."}}]}, {"timeUnixNano": "1795075205000000000", "name": "db.query.result", "attributes": [{"key": "db.query.result.id", "value": {"stringValue": "faq-4"}}, {"key": "db.query.result.distance", "value": {"doubleValue": 0.9}}, {"key": "db.query.result.document", "value": {"stringValue": "Lost keys cost 25 euros. Report them in the app."}}]}]}]}]}]}
{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "help-desk"}}]}, "scopeSpans": [{"scope": {"name": "help-desk.tracing"}, "spans": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "00f067aa0ba902a1", "name": "POST /ask", "kind": 3, "startTimeUnixNano": "1795075200000000000", "endTimeUnixNano": "1795075200400000000", "attributes": [{"key": "http.request.method", "value": {"stringValue": "POST"}}], "status": {}}, {"traceId": "7c1d0a4be2f94c55a3b1f0d2c4e6a801", "spanId": "22f067aa0ba902a1", "name": "ask.workflow", "kind": 3, "startTimeUnixNano": "1795075204000000000", "endTimeUnixNano": "1795075204400000000", "attributes": [{"key": "traceloop.entity.input", "value": {"stringValue": "{\"args\": [\"How much is the deposit?\"], \"kwargs\": {}}"}}, {"key": "traceloop.entity.output", "value": {"stringValue": "\"50 euros.\""}}], "status": {}}]}]}]}
{"resourceMetrics": []}
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from ragmetrics.logs.exported_values import (
    about,
    answer_in,
    at,
    contexts,
    first,
    identifier,
    moment,
    question_in,
    structured,
    tried,
)
from ragmetrics.logs.preset import Preset, Skipped, Span, elapsed, failure
from ragmetrics.logs.presets._otlp import COLUMNS, STATUS, failed, spans
from ragmetrics.records import BadRow

_LLM = ("chat", "generate_content", "text_completion")
_OTHERS = ("embeddings", "execute_tool", "create_agent", "invoke_agent", "invoke_workflow")
_RESULT = "db.query.result"


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped | BadRow]:
    for span in spans(record):
        yield _span(span) if isinstance(span, dict) else span


def _span(span: dict[str, Any]) -> Span:
    attributes = span["attributes"]
    operation = at(attributes, "gen_ai.operation.name")
    known = operation if operation in (*_LLM, *_OTHERS) else None
    results = _results(span)
    retrieval = operation == "retrieval" or bool(results)
    parent = identifier(at(span, "parent_id"))
    return Span(
        kind=f"{known or 'other'} span",
        item=_row(span, results) if retrieval else None,
        trace=identifier(at(span, "context.trace_id")),
        id=identifier(at(span, "context.span_id")),
        parent=parent,
        root=parent is None,
        llm=operation in _LLM,
        start=moment(span.get("start_time")),
        question=None if parent else _asked(attributes),
        response=None if retrieval else _answered(attributes),
        about=about({}, model=first(attributes, "gen_ai.response.model", "gen_ai.request.model")),
        source=span,
    )


def _row(span: dict[str, Any], results: list[Any]) -> dict[str, Any]:
    attributes = span["attributes"]
    resource = at(span, "resource.attributes")
    resource = resource if isinstance(resource, Mapping) else {}
    return {
        "id": identifier(at(span, "context.span_id")),
        "timestamp": span.get("start_time"),
        "user_input": at(attributes, "gen_ai.retrieval.query.text"),
        **(
            failure(first(span, *STATUS))
            if failed(span)
            else tried("retrieved_contexts", lambda: contexts(results or _documents(attributes)))
        ),
        **elapsed(span.get("start_time"), span.get("end_time")),
        **about(
            {**resource, **attributes, "session_id": at(attributes, "gen_ai.conversation.id")},
            retriever=span.get("name"),
            data_source=first(attributes, "gen_ai.data_source.id", "db.system.name", "db.system"),
            service=at(resource, "service.name"),
        ),
    }


def _documents(attributes: Mapping[str, Any]) -> list[Any]:
    documents = structured(at(attributes, "gen_ai.retrieval.documents"))
    if documents is None:
        raise BadRow("gen_ai.retrieval.documents: not recorded; it is opt-in")
    if not isinstance(documents, list):
        raise BadRow("gen_ai.retrieval.documents: not a list")
    return documents


def _results(span: dict[str, Any]) -> list[Any]:
    """The documents of OpenLLMetry, one per event. Distances are not used as scores."""
    events = span.get("events")
    return [
        {
            "text": at(event, f"attributes.{_RESULT}.document"),
            "id": at(event, f"attributes.{_RESULT}.id"),
            "score": at(event, f"attributes.{_RESULT}.score"),
        }
        for event in (events if isinstance(events, list) else [])
        if isinstance(event, Mapping) and event.get("name") == _RESULT
    ]


def _asked(attributes: Mapping[str, Any]) -> str | None:
    messages = structured(at(attributes, "gen_ai.input.messages"))
    return question_in(messages or _entity(attributes, "input"))


def _answered(attributes: Mapping[str, Any]) -> str | None:
    names = ("gen_ai.output.messages", "gen_ai.completion.0.content")
    messages = structured(first(attributes, *names))
    return answer_in(messages or _entity(attributes, "output"))


def _entity(attributes: Mapping[str, Any], side: str) -> Any:
    """Input or output of a function that OpenLLMetry traces. It is JSON, also for a text."""
    value = at(attributes, f"traceloop.entity.{side}")
    try:
        return from_json(value) if isinstance(value, str) else value
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        return value


otel = Preset("otel", __doc__, _read, COLUMNS | {"events"})
