"""Reads values of exporters: JSON in text, messages, documents, times."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from math import isnan
from typing import Any, TypeGuard

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from ragmetrics.logs.field_mapping import decoded, decoded_list, find_path
from ragmetrics.records import BadRow, Time

# In the order of the search.
_QUESTION = (
    *("query", "question", "user_input", "user_query", "input", "inputs", "text", "content"),
    *("parts", "prompt", "messages", "message", "kwargs", "args"),
)
_ANSWER = (
    *("answer", "response", "result", "output", "outputs", "output_text", "text", "content"),
    *("parts", "messages", "message", "choices", "generations", "kwargs"),
)
_USER = frozenset(["user", "human"])
_ASSISTANT = frozenset(["assistant", "ai", "model"])
_SPEAKERS = _USER | _ASSISTANT | {"system", "developer", "tool", "function"}
# Lists that contain messages even without a speaker. Other lists may contain documents.
_SPOKEN = frozenset(["messages", "parts", "content", "choices", "generations", "args"])
_DEPTH = 8

LISTS = (
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "retrieved_context_scores",
    "clicked_context_ids",
    "context_propensities",
    "nuggets",
    "tags",
)
"""Fields of a row that are a list or a mapping. A table of texts has them as a text."""

# Of LangChain, LlamaIndex, Haystack, MLflow, Bedrock; of Pinecone, Qdrant, Elasticsearch, Weaviate.
_TEXTS = (
    *("page_content", "pageContent", "content", "text", "document.content", "document.text"),
    *("node.text", "content.text", "metadata.text", "payload.text", "payload.page_content"),
    *("payload.content", "_source.text", "_source.content", "properties.text"),
    *("properties.content", "passage", "chunk", "snippet", "body"),
)
_IDS = (
    *("id", "document.id", "metadata.id", "metadata.doc_id", "metadata.chunk_id", "id_", "_id"),
    *("node.id_", "node_id", "doc_id", "doc_uri"),
)
_SCORES = ("score", "document.score", "metadata.score", "metadata.relevance_score", "_score")
_LISTS = ("documents", "output", "docs", "results", "matches")

_FEEDBACK = re.compile(r"feedback|thumb|rating|stars|csat|satisf|vote|user.?score", re.IGNORECASE)
TRACE_TAGS = (
    *("tenant", "tenant_id", "team", "department", "environment", "env", "region", "channel"),
    *("section", "product", "application", "app", "domain", "category", "workflow"),
    *("variant", "experiment", "plan", "tier", "release", "version"),
)
"""Names of what is noted on a trace that describe a kind of rows. Others may be about people, and
tags are shown on redacted pages too: `columns:` of the settings names what else is one."""

_TIME = TypeAdapter[datetime | None](Time)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(record: Any, path: str) -> Any:
    """The value at a dotted path; None also for NaN, which pandas writes for missing values."""
    value = find_path(record, path)
    return None if isinstance(value, float) and isnan(value) else value


def first(record: Any, *paths: str) -> Any:
    """The first value that is found at one of the paths."""
    return next((value for path in paths if (value := at(record, path)) is not None), None)


def identifier(value: Any) -> str | None:
    """An id as text; None for an invalid id."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def is_feedback(name: Any) -> bool:
    """Whether a tool's name of a value is one of what users said: `user-feedback`, `thumbs`."""
    return isinstance(name, str) and bool(_FEEDBACK.search(name))


def structured(value: Any, mime: Any = None) -> Any:
    """The value, decoded if it is a JSON object or list in a text.

    Text that is not valid JSON stays text. With a MIME type of JSON it raises BadRow instead.
    """
    if not isinstance(value, str) or mime == "text/plain":
        return value
    if mime != "application/json":
        return decoded(value)
    try:
        return from_json(value)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        raise BadRow("user_input: its MIME type says JSON, but it is not") from None


def question_in(value: Any) -> str | None:
    """The question in an input: the text itself, or the last user message, or a named field."""
    text = _text(value, _QUESTION, _USER, _DEPTH)
    if not text and isinstance(value, Mapping) and len(value) == 1:
        (only,) = value.values()
        return only if isinstance(only, str) else None
    return text


def answer_in(value: Any) -> str | None:
    """The answer in an output: the text itself, or the last reply, or a named field."""
    return _text(value, _ANSWER, _ASSISTANT, _DEPTH) or None


def _text(
    value: Any, keys: tuple[str, ...], speakers: frozenset[str], depth: int, key: str = ""
) -> str | None:
    if isinstance(value, str):
        return value
    if not depth:
        return None
    if isinstance(value, Mapping):
        if _speaker(value) in _SPEAKERS - speakers:
            return None
        texts = (_text(value[key], keys, speakers, depth - 1, key) for key in keys if key in value)
    elif isinstance(value, list):
        parts = [item for item in value if isinstance(item, Mapping) and item.get("type") == "text"]
        if parts and not any("role" in part for part in parts):
            return "".join(text for part in parts if (text := _text(part, keys, speakers, 1)))
        turns = [item for item in value if key in _SPOKEN or _speaker(item) in speakers]
        texts = (_text(one, keys, speakers, depth - 1, key) for one in reversed(turns))
    else:
        return None
    return next((text for text in texts if text), None)


def _speaker(value: Any) -> str:
    speaker = (value.get("role") or value.get("type")) if isinstance(value, Mapping) else None
    return speaker if isinstance(speaker, str) else ""


def documents_in(value: Any) -> list[Any] | None:
    """The list of documents in a retriever's output, which may be wrapped; None without one."""
    if isinstance(value, Mapping):
        lists = (value[key] for key in _LISTS if isinstance(value.get(key), list))
        value = next(lists, None)
    if isinstance(value, list) and all(isinstance(item, str | Mapping) for item in value):
        return value
    return None


def contexts(documents: list[Any]) -> dict[str, Any]:
    """Fields of a row for retrieved documents (texts, or objects), in rank order.

    Ids and scores are set only if every document has one. Raises BadRow for a missing text.
    """
    texts = [_text_of(document) for document in documents]
    lacking = sum(text is None for text in texts)
    if lacking:
        raise BadRow(f"retrieved_contexts: no text in {lacking} of {len(texts)} documents")
    row: dict[str, Any] = {"retrieved_contexts": texts}
    objects = [document for document in documents if isinstance(document, Mapping)]
    ids = [first(document, *_IDS) for document in objects]
    if ids and len(ids) == len(texts) and all(map(identifier, ids)):
        row["retrieved_context_ids"] = [identifier(one) for one in ids]
    scores = [first(document, *_SCORES) for document in objects]
    if scores and len(scores) == len(texts) and all(type(one) in (int, float) for one in scores):
        row["retrieved_context_scores"] = scores
    return row


def _text_of(document: Any) -> str | None:
    if isinstance(document, str):
        return document
    texts = (at(document, path) for path in _TEXTS) if isinstance(document, Mapping) else ()
    return next((text for text in texts if isinstance(text, str)), None)


def plain_fields(record: Mapping[str, Any], separator: str | None = None) -> dict[str, Any]:
    """A record with the texts of its documents and messages, as the fields of a row need them.

    A list of documents becomes their texts, ids and scores, a list of messages the text of the last
    one of its speaker. A list or mapping in a text, as in CSV, is decoded. Contexts in one text are
    split at `separator`.
    """
    row = dict(record)
    for name in LISTS:
        if isinstance(row.get(name), str):
            row |= tried(name, partial(_decoded_field, name, row[name]))
    if separator and isinstance(texts := row.get("retrieved_contexts"), str):
        row["retrieved_contexts"] = [one for one in texts.split(separator) if one.strip()]
    for name, texts_of in (("user_input", question_in), ("response", answer_in)):
        if _has_messages(value := structured(row.get(name))):
            row[name] = texts_of(value)
    if _has_documents(row.get("reference_contexts")):
        row["reference_contexts"] = [_text_of(context) for context in row["reference_contexts"]]
    if _has_documents(retrieved := row.get("retrieved_contexts")):
        row |= tried("retrieved_contexts", lambda: {**contexts(retrieved), **_known(row)})
    return row


def _decoded_field(name: str, text: str) -> dict[str, Any]:
    value = decoded(text) if name == "tags" else decoded_list(text)
    if value is text and text.lstrip()[:1] in ("[", "{"):
        raise BadRow(
            f"{name}: no list or mapping, as JSON or Python writes it, nor an array of Postgres"
        )
    return {name: value}


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    """The ids and scores that a row has already."""
    names = ("retrieved_context_ids", "retrieved_context_scores")
    return {name: row[name] for name in names if row.get(name) is not None}


def _has_messages(value: Any) -> bool:
    return isinstance(value, list) and any(
        isinstance(item, Mapping) and _speaker(item) in _SPEAKERS for item in value
    )


def _has_documents(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def tried(name: str, build: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Fields of a row. If they cannot be read, the field `name` has the reason. Then `columns:` may
    still set it, and the trace knows that there was a retrieval.
    """
    try:
        return build()
    except BadRow as error:
        return {name: error}


_OF_METADATA = ("index_build", "language", "session_id", "turn")


def about(metadata: Any, **tags: Any) -> dict[str, Any]:
    """Tags that are text or numbers; index build, language and place in a conversation from the
    metadata.
    """
    named = {name: first(metadata, name) for name in _OF_METADATA}
    fields: dict[str, Any] = {
        name: str(value) for name, value in named.items() if _plain(value) and value != ""
    }
    texts = {name: str(value) for name, value in tags.items() if _plain(value) and value != ""}
    return {**fields, "tags": texts} if texts else fields


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def moment(value: Any) -> datetime | None:
    """A time for the order of spans; None if it cannot be read."""
    try:
        return _TIME.validate_python(value)
    except ValidationError:
        return None


def from_nanoseconds(value: Any) -> Any:
    """The time of an OTLP value in nanoseconds since 1970; any other value is returned as it is."""
    try:
        return _EPOCH + timedelta(microseconds=int(value) // 1_000) if value else None
    except (TypeError, ValueError, OverflowError):
        return value
