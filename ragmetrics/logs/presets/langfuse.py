r"""Exports of Langfuse.

A retrieval is an observation of type `RETRIEVER`.

Export the table *Observations* from the UI, schedule the blob
storage export (point `logs` at the folder above *traces* and *observations*), or fetch pages until `meta.cursor` is
gone:

```bash
curl -u "$LANGFUSE_PUBLIC_KEY:$LANGFUSE_SECRET_KEY" -o observations-1.json \
  "https://cloud.langfuse.com/api/public/v2/observations?fields=core,basic,io,metadata,model&limit=1000"
```

A downloaded trace (`trace-ID.json`) is read too. In projects without `RETRIEVER` observations, a `SPAN` with `retriev`
in its name whose output is a list of documents counts. Paths of `columns:` may begin with `trace.`. Tags:
`environment`, `release`, `version`, `trace`.

A score of the table *Scores* is feedback if its source is the API and its name has a word such as `feedback`,
`thumbs`, `rating` or `csat`. Put both tables into one folder.

```jsonl
{"id": "obs-2", "trace_id": "trace-1", "type": "RETRIEVER", "name": "faq-retriever", "parent_observation_id": "obs-1", "start_time": "2026-11-19 08:00:01.250000", "input": "Do I need to bring a helmet?", "output": "[{\"id\": \"faq-1\", \"page_content\": \"Helmets are lent free of charge at every station with staff.\", \"metadata\": {\"source\": \"faq.md\"}, \"type\": \"Document\"}, {\"id\": \"faq-9\", \"page_content\": \"Stations are open from 6 to 23 hours.\", \"metadata\": {\"source\": \"faq.md\"}, \"type\": \"Document\"}]", "metadata": {"index_build": "2026-11-18"}, "environment": "production", "level": "DEFAULT", "trace_name": "help-desk"}
{"id": "obs-3", "trace_id": "trace-1", "type": "GENERATION", "name": "answer", "parent_observation_id": "obs-1", "start_time": "2026-11-19 08:00:02.000000", "input": "[{\"role\": \"user\", \"content\": \"Answer with these passages: ...\"}]", "output": "{\"role\": \"assistant\", \"content\": \"No, helmets are lent at staffed stations.\"}", "provided_model_name": "gpt-4.1-mini", "environment": "production", "level": "DEFAULT"}
{"id": "obs-1", "trace_id": "trace-1", "type": "SPAN", "name": "help-desk", "parent_observation_id": null, "start_time": "2026-11-19 08:00:01.000000", "input": "{\"question\": \"Do I need to bring a helmet?\"}", "output": "No, helmets are lent at staffed stations.", "environment": "production", "release": "v12", "level": "DEFAULT"}
{"trace": {"id": "trace-2", "name": "help-desk", "timestamp": "2026-11-19T08:05:00.000Z", "input": "How much is the deposit?", "output": {"answer": "50 euros."}, "environment": "production"}, "observations": [{"id": "obs-4", "traceId": "trace-2", "type": "SPAN", "name": "retrieval", "startTime": "2026-11-19T08:05:00.100Z", "parentObservationId": null, "input": {"query": "How much is the deposit?"}, "output": {"documents": [{"content": "A deposit of 50 euros is held on your card until the bicycle is back.", "score": 0.7}]}, "level": "DEFAULT"}], "scores": []}
{"id": "score-1", "trace_id": "trace-1", "observation_id": null, "name": "thumbs", "value": 1, "data_type": "NUMERIC"}
{"id": "obs-5", "trace_id": "trace-3", "type": "RETRIEVER", "name": "faq-retriever", "parent_observation_id": null, "start_time": "2026-11-19 08:06:00.000000", "input": "When do stations open?", "output": "3 documents found", "level": "DEFAULT"}
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.exported_values import (
    answer_in,
    at,
    documents_in,
    first,
    identifier,
    is_feedback,
    moment,
    question_in,
    structured,
)
from ragmetrics.logs.preset import Layout, Preset, Skipped, Span
from ragmetrics.records import BadRow

_TYPES = frozenset(
    [
        *("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR"),
        *("EMBEDDING", "GUARDRAIL"),
    ]
)
_LAYOUT = Layout(
    id=("id",),
    trace=("traceId", "trace_id"),
    parent=("parentObservationId", "parent_observation_id"),
    start=("startTime", "start_time"),
    end=("endTime", "end_time"),
    error=("statusMessage", "status_message"),
    name=("name",),
    input=("input",),
    output=("output",),
    session=("sessionId", "session_id"),
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
        below = {key: record.get(key, trace.get(key)) for key in ("observations", "scores")}
        record = {**trace, **below}
    if at(record, "type") is not None:
        yield _observation(record, identifier(first(record, *_LAYOUT.trace)))
    elif first(record, *_LAYOUT.trace) is not None:
        yield _score(record, identifier(first(record, *_LAYOUT.trace)))
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
    scores = structured(record.get("scores"))
    for score in scores if isinstance(scores, list) else []:
        if isinstance(score, Mapping) and isinstance(found := _score(score, name), Span):
            yield found
    above = {key: value for key, value in record.items() if key not in ("observations", "scores")}
    observations = structured(record.get("observations"))
    for observation in observations if isinstance(observations, list) else []:
        if isinstance(observation, Mapping):
            yield _observation({**observation, "trace": above}, name)
        elif not isinstance(observation, str):  # ids, in the API's list of traces
            yield BadRow("observations: not a list of objects or ids")


def _score(record: Mapping[str, Any], trace: str | None) -> Span | Skipped:
    """What a user said; scores of evaluators and of people who annotate are none."""
    kind, source = first(record, "dataType", "data_type"), at(record, "source")
    categorical = kind == "CATEGORICAL"
    value = first(record, *(("stringValue", "string_value") if categorical else ()), "value")
    if not is_feedback(at(record, "name")) or source not in (None, "API") or value is None:
        return Skipped("score: not a retrieval")
    start = moment(first(record, "timestamp", "createdAt", "created_at"))
    return Span(kind="score", trace=trace, start=start, did={"feedback": value})


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


_OF_SCORES = ("scores", "value", "stringValue", "string_value", "dataType", "data_type", "source")
_TIMES = ("timestamp", "createdAt", "created_at")
_OTHERS = frozenset(
    ["trace", "observations", "type", "level", "metadata", *_ROOT, *_OF_SCORES, *_TIMES]
)
langfuse = Preset("langfuse", __doc__, _read, _LAYOUT.columns | _OTHERS)
