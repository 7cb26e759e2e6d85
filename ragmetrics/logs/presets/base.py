"""What a preset makes of a record: spans, of which some are retrievals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ragmetrics.model import BadRow


class Place(NamedTuple):
    """Where a record stands: its file and its line, or its number in the file."""

    path: str
    number: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is well and no row: why. Counted, and not put into quarantine."""

    reason: str


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace, as far as rows need it. A record without a trace is a span alone."""

    kind: str
    """Shown where spans are counted; one of few."""
    item: dict[str, Any] | BadRow | Skipped | None = None
    """The row of a retrieval, or why there is none; None where the span is no retrieval.
    A field of the row may be a BadRow, which says why it cannot be had."""
    trace: str | None = None
    id: str | None = None
    parent: str | None = None
    root: bool = False
    """It stands for the whole trace: its question and its response are the user's."""
    llm: bool = False
    start: datetime | None = None
    question: str | None = None
    response: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    """Fields (tags, index_build, language) that the trace's rows get where they lack them."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """The record as `columns:` sees it."""

    @property
    def retrieval(self) -> bool:
        """Whether documents were looked for, and the looking did not fail."""
        return isinstance(self.item, dict | BadRow)


@dataclass(frozen=True, slots=True)
class Preset:
    """One layout of logs."""

    read: Callable[[Mapping[str, Any]], Iterator[Span | Skipped | BadRow]]
    """The spans of a record; may raise BadRow."""
    columns: frozenset[str]
    """The keys at the top of a record that it looks at, of dotted ones the first part."""
    json_cells: frozenset[str] = frozenset()
    """Columns of a CSV file that hold JSON and nothing else."""


FAILED = Skipped("retrieval that failed")
