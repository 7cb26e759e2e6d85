"""langfuse: exports of observations and traces, from the UI, the API or the blob storage.

A retrieval is an observation of type RETRIEVER, or a SPAN with `retriev` in its name whose output
is a list of documents. Names come in camel case (API, UI) and in snake case (blob storage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import Layout, Preset, Skipped, Span
from ragmetrics.logs.presets.values import (
    answer_in,
    at,
    documents_in,
    first,
    identifier,
    question_in,
    structured,
)
from ragmetrics.records import BadRow

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
_LAYOUT = Layout(
    id=("id",),
    trace=("traceId", "trace_id"),
    parent=("parentObservationId", "parent_observation_id"),
    start=("startTime", "start_time"),
    name=("name",),
    input=("input",),
    output=("output",),
    tags={
        "environment": ("environment",),
        "release": ("release",),
        "version": ("version",),
        "model": ("providedModelName", "provided_model_name", "model"),
    },
    row_tags={"trace": ("traceName", "trace_name")},
)
_ROOT = ("isRootObservation", "is_root_observation")


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped | BadRow]:
    trace = record.get("trace")
    if isinstance(trace, Mapping):  # a trace downloaded from the UI
        record = {**trace, "observations": record.get("observations", trace.get("observations"))}
    if at(record, "type") is not None:
        yield _observation(record, identifier(first(record, *_LAYOUT.trace)))
    elif first(record, *_LAYOUT.trace) is not None:
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
        about=_LAYOUT.about(record, structured(at(record, "metadata")), trace=_LAYOUT.name),
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
    return _LAYOUT.span(
        record,
        f"{kind} observation",
        structured(at(record, "metadata")),
        retrieval=kind == "RETRIEVER" or (kind == "SPAN" and _looks_like_one(record)),
        failed=at(record, "level") == "ERROR",
        llm=kind == "GENERATION",
        documents=_documents,
        trace=trace,
        root=first(record, *_ROOT) is True,
    )


def _looks_like_one(record: Mapping[str, Any]) -> bool:
    name = at(record, "name")
    if not isinstance(name, str) or "retriev" not in name.lower():
        return False
    return documents_in(structured(at(record, "output"))) is not None


def _documents(record: Mapping[str, Any]) -> list[Any]:
    documents = documents_in(structured(at(record, "output")))
    if documents is None:
        raise BadRow("output: no list of documents")
    return documents


_OTHERS = frozenset(["trace", "observations", "type", "level", "metadata", *_ROOT])
PRESET = Preset(_read, _LAYOUT.columns | _OTHERS)
