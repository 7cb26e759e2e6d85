"""LogRow: one logged retrieval, and the record of a row that cannot be read."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
)

from ragmetrics.errors import RagmetricsError
from ragmetrics.records.nugget import Nugget
from ragmetrics.text import normalise

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


MAX_CONTEXTS = 1_000
LONGEST_FEEDBACK = 60
"""Characters of the category that a user chose."""
EXCERPT = 200
"""Characters of a bad row that are stored."""
_LONGEST_PLACE = 100
_HOURS = re.compile(r"(:\d\d(?:\.\d+)?) ?([+-]\d\d)$")
"""The end of a time of Postgres: its zone in hours."""


class BadRow(RagmetricsError):
    """A row that is not a valid LogRow; the error text is the quarantine reason."""

    excerpt = ""
    """Beginning of the row, so that a person can find it."""

    def __repr__(self) -> str:
        """As one value of a row that is shown."""
        return f"<{self}>"


def bad_row(reason: str, data: bytes = b"") -> BadRow:
    """The error of a row that cannot be decoded, with the beginning of the row."""
    error = BadRow(reason)
    error.excerpt = data[:EXCERPT].decode("utf-8", "backslashreplace")
    return error


def printable(text: str) -> str:
    """The text with lone surrogates escaped. File names may have them, UTF-8 files cannot."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _tags(value: object) -> object:
    """Accept numbers and booleans as tag values, as exporters write them."""
    if isinstance(value, Mapping):
        return {
            str(key): str(item) if isinstance(item, int | float) else item
            for key, item in value.items()
            if item is not None
        }
    return {} if value is None else value


def _written(value: object) -> object:
    """A time as Postgres (`... 08:00:01+00`) or BigQuery (`... 08:00:01 UTC`) writes it, in ISO
    8601; None for a blank text.
    """
    if not isinstance(value, str):
        return value
    return _HOURS.sub(r"\1\2:00", value.strip().removesuffix(" UTC")) or None


def _aware(value: datetime | None) -> datetime | None:
    """The time in UTC. A time without a zone counts as UTC, so that all times compare."""
    if value is None or value.tzinfo is None:
        return value and value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:  # Parquet could write it, but not read it
        raise ValueError("outside the calendar") from None


Time = Annotated[datetime | None, BeforeValidator(_written), AfterValidator(_aware)]
Tags = Annotated[dict[str, str], BeforeValidator(_tags)]


def _number(value: object) -> object:
    """A whole number as text: ragas and many exporters number their documents.

    pandas turns a column of whole numbers with gaps into floats: 1.0 is document 1.
    """
    if type(value) is float and value.is_integer():
        return str(int(value))
    return str(value) if type(value) is int else value


Identifier = Annotated[str, BeforeValidator(_number)]


def _feedback(value: object) -> object:
    """A thumb, a rating or a category as text: `up`, `0.5`, `4/5`, `outdated`; None for a blank.

    Raises ValueError for a longer text: a comment may name people, and is no category.
    """
    if isinstance(value, Mapping):
        first = (value.get(name) for name in ("thumb", "rating", "score", "value", "category"))
        given, best = next((one for one in first if one is not None), None), value.get("best")
        value = given if best is None else f"{_feedback(given)}/{_feedback(best)}"
    if isinstance(value, bool):
        return "up" if value else "down"
    if isinstance(value, int | float):
        return f"{value:g}"
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and len(text) > LONGEST_FEEDBACK:
        raise ValueError(f"a category has at most {LONGEST_FEEDBACK} characters, and is no comment")
    return text or None


Feedback = Annotated[str | None, BeforeValidator(_feedback)]


class Hop(NamedTuple):
    """One retrieval of a trace."""

    query: str
    contexts: tuple[str, ...]


def _failure(value: object) -> object:
    """A reason why the retriever failed: exporters also write only whether it did."""
    if value is True:
        return "failed"
    return None if value in (False, "") else value


Failure = Annotated[str | None, BeforeValidator(_failure)]


@dataclass(frozen=True, slots=True)
class LogRow:
    """One retrieval, or all of a trace: the question, the contexts, and the reference.

    Field names are those of ragas's dataset. `retrieved_contexts` is in rank order.
    """

    __pydantic_config__ = ConfigDict(extra="ignore", str_strip_whitespace=False)

    id: Identifier
    user_input: str
    retrieved_contexts: tuple[str, ...]
    timestamp: Time = None
    response: str | None = None
    reference: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    retrieved_context_ids: tuple[Identifier, ...] | None = None
    reference_context_ids: tuple[Identifier, ...] | None = None
    retrieved_context_scores: tuple[FiniteFloat, ...] | None = None
    index_build: Identifier | None = None
    language: str | None = None
    trace_id: Identifier | None = None
    span_id: Identifier | None = None
    feedback: Feedback = None
    clicked_context_ids: tuple[Identifier, ...] | None = None
    context_propensities: tuple[FiniteFloat, ...] | None = None
    hop: int | None = None
    """Place of the retrieval among those of its trace: rows that share a trace and have a hop are
    read as one row."""
    hop_queries: tuple[str, ...] | None = None
    """What each hop of the trace asked, in order."""
    hop_sizes: tuple[NonNegativeInt, ...] | None = None
    """How many of the contexts, which are in the order of the hops, each hop retrieved."""
    session_id: Identifier | None = None
    turn: int | None = None
    """Place of the question in the conversation of its session, from 1."""
    nuggets: tuple[Nugget, ...] | None = None
    retrieval_ms: Annotated[FiniteFloat, Field(ge=0)] | None = None
    retrieval_error: Failure = None
    retrieved_context_dates: tuple[Time, ...] | None = None
    last_contexts: tuple[str, ...] | None = None
    """What the nights before say, for metrics that look back: see `scoring/nights_before.py`."""
    score_place: FiniteFloat | None = None
    new_words: FiniteFloat | None = None
    tags: Tags = field(default_factory=dict)

    @property
    def question_key(self) -> str:
        """Equal for equal questions. It decides the row's shard and its cluster."""
        return question_key(self.user_input)

    @property
    def context_keys(self) -> list[str]:
        """16 hex digits a context, equal for equal ids; without ids, for equal normalised texts."""
        names = self.retrieved_context_ids or map(normalise, self.retrieved_contexts)
        return [
            hashlib.blake2b(printable(one).encode(), digest_size=8).hexdigest() for one in names
        ]

    @property
    def hops(self) -> list[Hop]:
        """The retrievals of the row in order: one, if the log does not say that there were more."""
        sizes, queries = self.hop_sizes or (), self.hop_queries or ()
        if not sizes or len(sizes) != len(queries) or sum(sizes) != len(self.retrieved_contexts):
            return [Hop(self.user_input, self.retrieved_contexts)]
        contexts = iter(self.retrieved_contexts)
        parts = (tuple(islice(contexts, size)) for size in sizes)
        return [Hop(*hop) for hop in zip(queries, parts, strict=True)]

    @property
    def size(self) -> int:
        """Number of characters of its texts."""
        return sum(map(len, self.texts))

    @property
    def texts(self) -> tuple[str, ...]:
        """Question, response, reference and contexts."""
        known = (self.user_input, self.response or "", self.reference or "")
        return known + self.retrieved_contexts


def question_key(question: str) -> str:
    """Eight hex digits, equal for questions with equal normalised text."""
    text = normalise(question).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=4).hexdigest()


FIELDS = tuple(LogRow.__dataclass_fields__)
REQUIRED = ("user_input", "retrieved_contexts")
"""Fields without which there is no row."""
_ROW = TypeAdapter(LogRow)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row, or the rest of a file, that was not read: its place and the reason."""

    file: str
    line: int
    reason: str
    excerpt: str = ""
    whole_file: bool = False

    def __post_init__(self) -> None:
        for name in ("file", "reason", "excerpt"):
            object.__setattr__(self, name, printable(getattr(self, name)))


def read_row(data: object, default_id: str, dropped: Counter[str] | None = None) -> LogRow:
    """Validate one decoded row; raise BadRow with a reason that helps to correct the row.

    A row without an id gets `default_id`, which names its place in the log. An optional field that
    cannot be read is left out, and counted in `dropped` with its reason. Without `dropped` it makes
    the row a bad one. A value may be a BadRow, which says why the value cannot be read.
    """
    if not isinstance(data, Mapping):
        raise BadRow(f"not an object but {_kind(data)}")
    # Exporters that go through pandas write a missing value as NaN.
    known = {name: data[name] for name in FIELDS if name in data and data[name] == data[name]}
    if known.get("user_input") is None:
        raise BadRow("user_input: no question")
    reasons: dict[str, str] = {}
    for name, value in known.items():
        if isinstance(value, BadRow):
            if dropped is None or name in REQUIRED:
                raise value
            reasons[name] = str(value)
    try:
        row = _validated(known, reasons, default_id)
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False)
        required = [mistake for mistake in mistakes if mistake["loc"][0] in REQUIRED]
        if required or dropped is None:
            raise BadRow(_explained(required or mistakes)) from None
        reasons |= {str(one["loc"][0]): f"{one['loc'][0]}: {_message(one)}" for one in mistakes}
        row = _validated(known, reasons, default_id)
    if dropped is not None and reasons:
        dropped.update(reasons.values())
    if len(row.retrieved_contexts) > MAX_CONTEXTS:
        raise BadRow(f"retrieved_contexts: {len(row.retrieved_contexts):,} contexts in one row")
    return row


def _validated(known: Mapping[str, Any], unread: Collection[str], default_id: str) -> LogRow:
    """The row of the fields that can be read. Raises ValidationError."""
    fields = dict(known)
    if fields.get("retrieval_error") and fields.get("retrieved_contexts") is None:
        fields["retrieved_contexts"] = ()  # a retriever that failed has none
    for name in unread:
        fields.pop(name, None)
    return _ROW.validate_python({**fields, "id": _id(fields.get("id"), default_id)})


def explain_validation_error(error: ValidationError, most: int = 1) -> str:
    """A validation error of pydantic in one line: `retrieved_contexts.2: should be a string`.

    It lists the first `most` mistakes, and counts the others.
    """
    return _explained(error.errors(include_url=False, include_input=False), most)


def explain_mistakes(mistakes: Sequence[ErrorDetails]) -> list[str]:
    """Each mistake of a validation error in one line, with its place."""
    return [_mistake(one) for one in mistakes]


def _explained(mistakes: Sequence[ErrorDetails], most: int = 1) -> str:
    more = f" (and {len(mistakes) - most} more)" if len(mistakes) > most else ""
    return "; ".join(explain_mistakes(mistakes[:most])) + more


def _mistake(mistake: ErrorDetails) -> str:
    place = ".".join(str(part) for part in mistake["loc"] if not str(part).startswith("function-"))
    if len(place) > _LONGEST_PLACE:  # users choose keys, which may be long
        place = f"{place[: _LONGEST_PLACE - 1]}…"
    return f"{place}: {_message(mistake)}" if place else _message(mistake)


def _message(mistake: ErrorDetails) -> str:
    return _PLAIN.get(mistake["type"]) or re.sub(r"^(Input|Value error,) ", "", mistake["msg"])


_PLAIN = {
    "extra_forbidden": "there is no such key",
    "missing": "not there",
    "tuple_type": "should be a list",
    "dict_type": "should be a mapping of texts to texts",
    "datetime_parsing": "should be a time such as 2026-11-19T08:00:00Z",
    "datetime_from_date_parsing": "should be a time such as 2026-11-19T08:00:00Z",
}


def _id(value: Any, default_id: str) -> Any:
    return default_id if value is None or value == "" else value


def _kind(data: object) -> str:
    names = {list: "a list", str: "a text", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(data), type(data).__name__)
