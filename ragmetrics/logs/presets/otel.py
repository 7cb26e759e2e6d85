"""otel: OpenTelemetry spans by the GenAI semantic conventions, and OpenLLMetry's vector stores.

A retrieval is a span whose `gen_ai.operation.name` is `retrieval`, or a span with
`db.query.result` events, as the instrumentations of OpenLLMetry write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from ragmetrics.logs.presets.base import FAILED, Preset, Skipped, Span
from ragmetrics.logs.presets.otlp import COLUMNS, failed, spans
from ragmetrics.logs.presets.values import (
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
        item=(FAILED if failed(span) else _row(span, results)) if retrieval else None,
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
        **tried("retrieved_contexts", lambda: contexts(results or _documents(attributes))),
        **about(
            {**resource, **attributes},
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
    except ValueError:
        return value


PRESET = Preset(_read, COLUMNS | {"events"})
