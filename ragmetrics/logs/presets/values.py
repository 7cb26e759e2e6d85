"""Reading values as exporters write them: JSON in text, messages, documents, times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import isnan
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from ragmetrics.logs.field_mapping import find_path
from ragmetrics.model import BadRow

# In the order in which they are looked for.
_QUESTION = tuple(
    [
        "query",
        "question",
        "user_input",
        "user_query",
        "input",
        "inputs",
        "text",
        "content",
        "parts",
        "prompt",
        "messages",
        "message",
        "kwargs",
        "args",
    ]
)
_ANSWER = tuple(
    [
        "answer",
        "response",
        "result",
        "output",
        "outputs",
        "output_text",
        "text",
        "content",
        "parts",
        "messages",
        "message",
        "choices",
        "generations",
        "kwargs",
    ]
)
_USER = frozenset(["user", "human"])
_ASSISTANT = frozenset(["assistant", "ai", "model"])
_SPEAKERS = _USER | _ASSISTANT | {"system", "developer", "tool", "function"}
# Lists that hold what was said even where no speaker is named; others may hold documents.
_SPOKEN = frozenset(["messages", "parts", "content", "choices", "generations", "args"])
_DEPTH = 8

_TEXTS = ("page_content", "pageContent", "content", "text", "document.content")
_IDS = ("id", "document.id", "metadata.id", "metadata.doc_id", "metadata.chunk_id")
_SCORES = ("score", "document.score", "metadata.score", "metadata.relevance_score")
_LISTS = ("documents", "output", "docs", "results", "matches")

_TIME = TypeAdapter(datetime)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(record: Any, path: str) -> Any:
    """What stands at a dotted path; None also for the NaN that pandas writes for nothing."""
    value = find_path(record, path)
    return None if isinstance(value, float) and isnan(value) else value


def first(record: Any, *paths: str) -> Any:
    """The first of some paths that leads to something."""
    return next((value for path in paths if (value := at(record, path)) is not None), None)


def identifier(value: Any) -> str | None:
    """An id as text; None for what is none."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def structured(value: Any, mime: Any = None) -> Any:
    """The value, decoded where it is a JSON object or list written as text.

    Text that only looks like JSON stays text; a question whose MIME type says JSON is then broken
    and raises BadRow.
    """
    if not isinstance(value, str) or mime == "text/plain":
        return value
    said = mime == "application/json"
    if not said and not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return from_json(value)
    except ValueError:
        if said:
            raise BadRow("user_input: its MIME type says JSON, but it is not") from None
        return value


def question_in(value: Any) -> str | None:
    """The question in an input: the text itself, or the last user message, or a named field."""
    found = _text(value, _QUESTION, _USER, _DEPTH)
    if not found and isinstance(value, Mapping) and len(value) == 1:
        (only,) = value.values()
        return only if isinstance(only, str) else None
    return found


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
        found = (_text(value[one], keys, speakers, depth - 1, one) for one in keys if one in value)
    elif isinstance(value, list):
        parts = [one for one in value if isinstance(one, Mapping) and one.get("type") == "text"]
        if parts and not any("role" in one for one in parts):
            return "".join(text for one in parts if (text := _text(one, keys, speakers, 1)))
        said = [one for one in value if key in _SPOKEN or _speaker(one) in speakers]
        found = (_text(one, keys, speakers, depth - 1, key) for one in reversed(said))
    else:
        return None
    return next((text for text in found if text), None)


def _speaker(value: Any) -> str:
    speaker = (value.get("role") or value.get("type")) if isinstance(value, Mapping) else None
    return speaker if isinstance(speaker, str) else ""


def documents_in(value: Any) -> list[Any] | None:
    """The list of documents in a retriever's output, however it is wrapped; None if none is."""
    if isinstance(value, Mapping):
        lists = (value[key] for key in _LISTS if isinstance(value.get(key), list))
        value = next(lists, None)
    if isinstance(value, list) and all(isinstance(one, str | Mapping) for one in value):
        return value
    return None


def contexts(documents: list[Any]) -> dict[str, Any]:
    """Fields of a row for retrieved documents (texts, or objects), in rank order.

    Ids and scores are given only where every document has one. Raises BadRow without texts.
    """
    texts = [_first_in(one, _TEXTS) for one in documents]
    lacking = sum(text is None for text in texts)
    if lacking:
        raise BadRow(f"retrieved_contexts: no text in {lacking} of {len(texts)} documents")
    row: dict[str, Any] = {"retrieved_contexts": texts}
    ids = [_first_in(one, _IDS) for one in documents if isinstance(one, Mapping)]
    if ids and len(ids) == len(texts) and all(map(identifier, ids)):
        row["retrieved_context_ids"] = [identifier(one) for one in ids]
    scores = [_first_in(one, _SCORES) for one in documents if isinstance(one, Mapping)]
    if scores and len(scores) == len(texts) and all(type(one) in (int, float) for one in scores):
        row["retrieved_context_scores"] = scores
    return row


def _first_in(document: Any, keys: tuple[str, ...]) -> Any:
    if isinstance(document, str):
        return document
    return first(document, *keys) if isinstance(document, Mapping) else None


def tried(name: str, build: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Fields of a row; where they cannot be had, the reason takes the place of the field `name`,
    so that `columns:` may still fill it, and the trace knows that there was a retrieval.
    """
    try:
        return build()
    except BadRow as error:
        return {name: error}


def about(metadata: Any, **tags: Any) -> dict[str, Any]:
    """Tags that are text or numbers, and the index build and language that metadata may name."""
    named = {name: first(metadata, name) for name in ("index_build", "language")}
    fields: dict[str, Any] = {
        name: str(value) for name, value in named.items() if _plain(value) and value != ""
    }
    kept = {name: str(value) for name, value in tags.items() if _plain(value) and value != ""}
    return {**fields, "tags": kept} if kept else fields


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def moment(value: Any) -> datetime | None:
    """A time, to put spans in order; None where it cannot be read."""
    try:
        time = _TIME.validate_python(value)
    except ValidationError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def from_nanoseconds(value: Any) -> Any:
    """The time that OTLP writes as nanoseconds since 1970; what is no such number stays."""
    try:
        return _EPOCH + timedelta(microseconds=int(value) // 1_000) if value else None
    except (TypeError, ValueError, OverflowError):
        return value
