"""langfuse: exports of observations and traces, from the UI, the API or the blob storage.

A retrieval is an observation of type RETRIEVER, or a SPAN with `retriev` in its name whose output
is a list of documents. Names come in camel case (API, UI) and in snake case (blob storage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import FAILED, Preset, Skipped, Span
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

_TYPES = frozenset(
    [
        "SPAN",
        "GENERATION",
        "EVENT",
        "AGENT",
        "TOOL",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    ]
)


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped | BadRow]:
    trace = record.get("trace")
    if isinstance(trace, Mapping):  # a trace downloaded from the UI
        record = {**trace, "observations": record.get("observations", trace.get("observations"))}
    if at(record, "type") is not None:
        yield _observation(record, identifier(first(record, "traceId", "trace_id")))
    elif first(record, "traceId", "trace_id") is not None:
        yield Skipped("score: not a retrieval")
    elif identifier(at(record, "id")) is None:
        raise BadRow("neither an observation nor a trace: no type, no trace id, no id")
    else:
        yield from _trace(record)


def _trace(record: Mapping[str, Any]) -> Iterator[Span | BadRow]:
    name = identifier(record.get("id"))
    yield Span(
        kind="trace",
        trace=name,
        root=True,
        question=question_in(structured(at(record, "input"))),
        response=answer_in(structured(at(record, "output"))),
        about=_about(record, trace=at(record, "name")),
    )
    above = {key: value for key, value in record.items() if key != "observations"}
    observations = structured(record.get("observations"))
    for one in observations if isinstance(observations, list) else []:
        if isinstance(one, Mapping):
            yield _observation({**one, "trace": above}, name)
        elif not isinstance(one, str):  # ids, in the API's list of traces
            yield BadRow("observations: not a list of objects or ids")


def _observation(record: Mapping[str, Any], trace: str | None) -> Span:
    kind = at(record, "type")
    kind = kind.upper() if isinstance(kind, str) and kind.upper() in _TYPES else "other"
    parent = identifier(first(record, "parentObservationId", "parent_observation_id"))
    retrieval = kind == "RETRIEVER" or (kind == "SPAN" and _looks_like_one(record))
    return Span(
        kind=f"{kind} observation",
        item=(FAILED if at(record, "level") == "ERROR" else _row(record)) if retrieval else None,
        trace=trace,
        id=identifier(at(record, "id")),
        parent=parent,
        root=parent is None or first(record, "isRootObservation", "is_root_observation") is True,
        llm=kind == "GENERATION",
        start=moment(_start(record)),
        question=None if parent or retrieval else question_in(structured(at(record, "input"))),
        response=None if retrieval else answer_in(structured(at(record, "output"))),
        about=_about(record) if parent is None else about({}, model=_model(record)),
        source=record,
    )


def _looks_like_one(record: Mapping[str, Any]) -> bool:
    name = at(record, "name")
    if not isinstance(name, str) or "retriev" not in name.lower():
        return False
    return documents_in(structured(at(record, "output"))) is not None


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": identifier(at(record, "id")),
        "timestamp": _start(record),
        "user_input": question_in(structured(at(record, "input"))),
        **tried("retrieved_contexts", lambda: contexts(_documents(record))),
        **_about(
            record,
            retriever=at(record, "name"),
            trace=first(record, "traceName", "trace_name"),
        ),
    }


def _documents(record: Mapping[str, Any]) -> list[Any]:
    documents = documents_in(structured(at(record, "output")))
    if documents is None:
        raise BadRow("output: no list of documents")
    return documents


def _start(record: Mapping[str, Any]) -> Any:
    return first(record, "startTime", "start_time")


def _model(record: Mapping[str, Any]) -> Any:
    return first(record, "providedModelName", "provided_model_name", "model")


def _about(record: Mapping[str, Any], **tags: Any) -> dict[str, Any]:
    return about(
        structured(at(record, "metadata")),
        environment=at(record, "environment"),
        release=at(record, "release"),
        version=at(record, "version"),
        model=_model(record),
        **tags,
    )


_COLUMNS = frozenset(
    [
        "trace",
        "observations",
        "type",
        "traceId",
        "trace_id",
        "id",
        "name",
        "input",
        "output",
        "level",
        "metadata",
        "environment",
        "parentObservationId",
        "parent_observation_id",
        "isRootObservation",
        "is_root_observation",
        "startTime",
        "start_time",
        "traceName",
        "trace_name",
        "providedModelName",
        "provided_model_name",
        "model",
        "release",
        "version",
    ]
)

PRESET = Preset(_read, _COLUMNS)
