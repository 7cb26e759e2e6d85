"""The types of presets: a preset turns a record into spans, and some spans are retrievals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ragmetrics.model import BadRow


class Place(NamedTuple):
    """The location of a record: its file, and its line or its number in the file."""

    path: str
    number: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """The reason why a valid record is not a row. It is counted, not quarantined."""

    reason: str


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace. A record without a trace is a single span."""

    kind: str
    """The name under which spans are counted. There are only a few kinds."""
    item: dict[str, Any] | BadRow | Skipped | None = None
    """The row of a retrieval, or the reason why there is no row; None for any other span.
    A field of the row may be a BadRow, which says why the field is missing."""
    trace: str | None = None
    id: str | None = None
    parent: str | None = None
    root: bool = False
    """True for the span of the whole trace, which has the user's question and response."""
    llm: bool = False
    start: datetime | None = None
    question: str | None = None
    response: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    """Fields (tags, index_build, language) for rows of the trace that lack them."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """The record to which `columns:` is applied."""

    @property
    def retrieval(self) -> bool:
        """True for a retrieval that did not fail."""
        return isinstance(self.item, dict | BadRow)


@dataclass(frozen=True, slots=True)
class Preset:
    """One layout of logs."""

    read: Callable[[Mapping[str, Any]], Iterator[Span | Skipped | BadRow]]
    """Returns the spans of a record; may raise BadRow."""
    columns: frozenset[str]
    """The top-level keys of a record that it reads, or the first part of dotted keys."""
    json_cells: frozenset[str] = frozenset()
    """Columns of a CSV file that always contain JSON."""


FAILED = Skipped("retrieval that failed")
