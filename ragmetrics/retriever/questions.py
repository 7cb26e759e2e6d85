"""Questions for a retriever, and the retriever's answers as rows of the log.

`contexts`, `ids`, `scores` and `response` in the settings are dotted paths into the answer, as in
`columns:`. Other fields are read under our own names. A plain list contains texts, or mappings with
`text`, and optionally `id` and `score`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ragmetrics.config import RetrieverSettings, Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import find_path, golden_set, read_golden
from ragmetrics.records import FIELDS, BadRow, LogRow, Rejected, dump_json, read_row

UNREADABLE = "unreadable"
_NAMES = {
    "contexts": "retrieved_contexts",
    "ids": "retrieved_context_ids",
    "scores": "retrieved_context_scores",
    "response": "response",
}
_OF_HIT = {
    "retrieved_contexts": "text",
    "retrieved_context_ids": "id",
    "retrieved_context_scores": "score",
}
_MOST_KEYS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """The fields of a row that a retriever is asked with."""

    id: str
    user_input: str
    language: str
    tags: Mapping[str, str]

    @property
    def key(self) -> str:
        """Key of the question."""
        return key_of(self.id, self.user_input)


@dataclass(frozen=True)
class QuestionSet:
    """The questions of a golden set, each once, in its order."""

    asked: tuple[Question, ...]
    unreadable: int
    """Rows of the golden set that cannot be read, or have no question."""

    @property
    def digest(self) -> str:
        """Digest of all fields of the questions."""
        parts = [[one.id, one.user_input, one.language, dict(one.tags)] for one in self.asked]
        return digest_of(parts)


class NoAnswer(Exception):
    """A question has no usable answer: `kind` is the word it is counted under."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def key_of(row_id: str, user_input: str) -> str:
    """The key of a row, by which an answer finds its question."""
    return digest_of([row_id, user_input])


def digest_of(parts: Sequence[object]) -> str:
    """Digest of some values, as 24 hex digits."""
    text = dump_json(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def golden_questions(settings: Settings, limit: int | None = None) -> QuestionSet:
    """The first `limit` questions of the golden set, or all.

    Unreadable rows are counted. Raises InputError where there is no golden set, no question in it,
    or a file of it is truncated: a log of half the questions must not be written.
    """
    golden = golden_set(settings)
    if golden is None:
        raise InputError(
            "a replay asks the golden questions: name them by `golden:` in the settings or --golden"
        )
    questions: dict[str, Question] = {}
    unreadable = 0
    today = datetime.now(UTC).date()
    for item in read_golden(golden):
        if isinstance(item, Rejected) and item.whole_file:
            raise InputError(f"golden set {golden.files.uri(item.file)}: {item.reason}")
        if isinstance(item, Rejected) or not item.row.user_input.strip():
            unreadable += 1
            continue
        if not item.is_used_on(today):
            continue
        question = question_of(item.row, settings.language)
        questions.setdefault(question.key, question)
    if not questions:
        raise InputError(f"golden set {settings.golden}: there is no question in it")
    return QuestionSet(tuple(questions.values())[:limit], unreadable)


def question_of(row: LogRow, language: str = "") -> Question:
    """The question of a row; `language` is that of a row without one."""
    return Question(row.id, row.user_input, row.language or language, row.tags)


def read_answer(
    settings: RetrieverSettings, question: Question, build: str, answer: Any, now: datetime
) -> LogRow:
    """The row of a question. An answer without hits is a row without contexts.

    Raises NoAnswer for an answer without a list of texts at the configured path, with another
    number of ids or scores than texts, or with more texts than `max_contexts`.
    """
    fields = _fields(settings, answer)
    contexts = fields["retrieved_contexts"]
    if isinstance(contexts, list | tuple) and len(contexts) > settings.max_contexts:
        raise NoAnswer(
            "too_many_contexts",
            f"{len(contexts):,} contexts in one answer, and `retriever: max_contexts:` is "
            f"{settings.max_contexts:,}: ask for fewer, or raise it",
        )
    row = {
        **fields,
        "id": question.id,
        "user_input": question.user_input,
        "language": question.language,
        "tags": question.tags,
        "index_build": build,
        "timestamp": now,
    }
    try:
        read = read_row(row, question.id)
    except (BadRow, ValueError) as error:  # ValueError: values that do not compare, such as tables
        raise NoAnswer(UNREADABLE, f"the answer is not a valid row: {error}") from None
    _check_lengths(read)
    return read


def line_of(row: LogRow, limit: int) -> bytes:
    """The row as a line of a log. Raises NoAnswer where readers of logs would reject it."""
    values = {name: getattr(row, name) for name in FIELDS}
    known = {name: value for name, value in values.items() if value is not None and value != {}}
    text = json.dumps(known, ensure_ascii=False, allow_nan=False, default=_plain)
    line = text.encode("utf-8", "replace") + b"\n"  # a lone surrogate of a cut text becomes "?"
    if len(line) > limit:
        raise NoAnswer(
            "too_large", f"a row of {len(line):,} bytes, and `limits: row_bytes:` is {limit:,}"
        )
    return line


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _fields(settings: RetrieverSettings, answer: Any) -> dict[str, Any]:
    answer = list(answer) if isinstance(answer, tuple) else _plain_list(answer)
    fields = _unnamed(answer, named=settings.contexts is not None)
    for key, name in _NAMES.items():
        path = getattr(settings, key)
        if path is not None:
            fields[name] = _at(answer, path, key)
    if fields.get("retrieved_contexts") is None:
        if settings.contexts is None:
            raise NoAnswer(UNREADABLE, f"{_kind(answer)}: say where under `retriever: contexts:`")
        fields["retrieved_contexts"] = []
    return {name: _plain_list(value) for name, value in fields.items()}


def _plain_list(value: Any) -> Any:
    """An array of numpy or pandas as a list; other values unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def _unnamed(answer: Any, *, named: bool) -> dict[str, Any]:
    """The fields under our own names; with `named` contexts, only the other fields."""
    if isinstance(answer, Mapping):
        return {name: answer.get(name) for name in _NAMES.values()}
    if named or not isinstance(answer, list):
        return {}
    if not any(isinstance(hit, Mapping) for hit in answer):
        return {"retrieved_contexts": answer}
    keys = {key for hit in answer if isinstance(hit, Mapping) for key in hit}
    return {
        name: [hit.get(key) if isinstance(hit, Mapping) else None for hit in answer]
        for name, key in _OF_HIT.items()
        if key in keys or key == "text"
    }


def _at(answer: Any, path: str, key: str) -> Any:
    value = answer if path == "." else find_path(answer, path)
    if value is None and not _is_null(answer, path):
        raise NoAnswer(
            UNREADABLE, f"nothing at {path} (`retriever: {key}:`) in the answer, {_kind(answer)}"
        )
    return value


def _is_null(record: Any, path: str) -> bool:
    """Whether there is a null on the path: some servers write an empty list as null."""
    if not isinstance(record, Mapping):
        return False
    heads = [path[:at] for at, sign in enumerate(path) if sign == "."] + [path]
    return any(
        record[head] is None or _is_null(record[head], path[len(head) + 1 :])
        for head in heads
        if head in record
    )


def _check_lengths(row: LogRow) -> None:
    for name in ("retrieved_context_ids", "retrieved_context_scores"):
        values = getattr(row, name)
        if values is not None and len(values) != len(row.retrieved_contexts):
            raise NoAnswer(
                UNREADABLE,
                f"{len(row.retrieved_contexts):,} contexts and {len(values):,} of {name}",
            )


def _kind(answer: Any) -> str:
    """A description of an answer, for a person who looks for the right path."""
    if isinstance(answer, Mapping):
        keys = ", ".join(str(key)[:40] for key in list(answer)[:_MOST_KEYS])
        return f"a mapping with {keys}" if keys else "an empty mapping"
    if isinstance(answer, list):
        return f"a list of {len(answer):,}"
    return "null" if answer is None else f"a {type(answer).__name__}"
