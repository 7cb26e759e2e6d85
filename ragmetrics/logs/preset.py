"""The types of presets: a preset turns a record into spans, and some spans are retrievals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from ragmetrics.logs.exported_values import (
    about,
    answer_in,
    contexts,
    first,
    identifier,
    moment,
    question_in,
    structured,
    tried,
)
from ragmetrics.records import BadRow
from ragmetrics.text import shorten


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
    did: Mapping[str, Any] = field(default_factory=dict)
    """What users did: fields (feedback, a list of clicked_context_ids) of the rows of the trace."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """The record to which `columns:` is applied."""

    @property
    def retrieval(self) -> bool:
        """True for a retrieval that did not fail."""
        return isinstance(self.item, dict | BadRow) and not self.failed

    @property
    def failed(self) -> bool:
        """True for a retrieval that failed: its row says why, and has no contexts."""
        return isinstance(self.item, dict) and bool(self.item.get("retrieval_error"))


@dataclass(frozen=True, slots=True)
class Preset:
    """One layout of logs."""

    name: str
    docs: str
    """Markdown: a title, what a retrieval is, how to export, and a sample as JSON lines, in which
    one record is malformed. It is the docstring of the module."""
    read: Callable[[Mapping[str, Any]], Iterator[Span | Skipped | BadRow]]
    """Returns the spans of a record; may raise BadRow."""
    columns: frozenset[str]
    """The top-level keys of a record that it reads, or the first part of dotted keys."""
    rows: bool = False
    """True where a record is a row and no span: then an optional field may be unreadable."""
    ids_only: bool = False
    """True where a log has the ids of contexts, which stand for their texts."""

    @property
    def title(self) -> str:
        """What it reads: the first line of its docs."""
        return self.docs.split("\n", 1)[0]

    @property
    def sample(self) -> list[Any]:
        """The records of the sample in its docs."""
        lines = self.docs.partition("```jsonl\n")[2].partition("\n```")[0].splitlines()
        return [json.loads(line) for line in lines]


FAILED = Skipped("retrieval that failed, without its question")


def failure(reason: Any) -> dict[str, Any]:
    """The fields of a retrieval that failed."""
    told = reason if isinstance(reason, str) and reason.strip() else "failed"
    return {"retrieval_error": shorten(told), "retrieved_contexts": []}


def elapsed(start: Any, end: Any) -> dict[str, Any]:
    """The milliseconds of a span as a field of a row; nothing without both of its times."""
    first, last = moment(start), moment(end)
    if first is None or last is None or last < first:
        return {}
    return {"retrieval_ms": (last - first).total_seconds() * 1_000}


Paths = tuple[str, ...]
"""Dotted paths of a value in a record. The first path with a value counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the records of a tracing tool have the values of a span."""

    id: Paths
    trace: Paths
    parent: Paths
    start: Paths
    end: Paths
    error: Paths
    """What is said of a span that failed."""
    name: Paths
    input: Paths
    output: Paths
    tags: Mapping[str, Paths]
    """Tags of a row; `model` is also taken from the LLM call that answers."""
    row_tags: Mapping[str, Paths] = field(default_factory=dict)
    """Tags that only a retrieval has."""
    session: Paths = ()
    """Id of the conversation."""

    @property
    def columns(self) -> frozenset[str]:
        """The top-level keys of a record that have these values."""
        ids, times = (self.id, self.trace, self.parent), (self.start, self.end, self.error)
        texts = (self.name, self.input, self.output, self.session)
        paths = chain(*ids, *times, *texts, *self.tags.values(), *self.row_tags.values())
        return frozenset(path.partition(".")[0] for path in paths)

    def span(
        self,
        record: Mapping[str, Any],
        kind: str,
        metadata: Any,
        *,
        retrieval: bool,
        failed: bool,
        llm: bool,
        documents: Callable[[Mapping[str, Any]], list[Any]],
        trace: str | None = None,
        root: bool = False,
        mime: Any = None,
    ) -> Span:
        """The span of a record. `documents` finds the retrieved documents, or raises BadRow.

        `trace` is the id of a trace that contains the record. With `root` it is the root of its
        trace although it has a parent. `mime` is the MIME type of the input.
        """
        parent, name = identifier(first(record, *self.parent)), identifier(first(record, *self.id))
        asked = first(record, *self.input)
        item: dict[str, Any] | None = None
        if retrieval:
            start = first(record, *self.start)
            item = {
                "id": name,
                "timestamp": start,
                **tried("user_input", lambda: {"user_input": question_in(structured(asked, mime))}),
                **(
                    failure(first(record, *self.error))
                    if failed
                    else tried("retrieved_contexts", lambda: contexts(documents(record)))
                ),
                **elapsed(start, first(record, *self.end)),
                **self.about(record, metadata, retriever=self.name, **self.row_tags),
            }
        model = first(record, *self.tags["model"])
        return Span(
            kind=kind,
            item=item,
            trace=trace or identifier(first(record, *self.trace)),
            id=name,
            parent=parent,
            root=root or parent is None,
            llm=llm,
            start=moment(first(record, *self.start)),
            question=None if parent or retrieval else question_in(structured(asked)),
            response=None if retrieval else answer_in(structured(first(record, *self.output))),
            about=self.about(record, metadata) if parent is None else about({}, model=model),
            source=record,
        )

    def about(self, record: Mapping[str, Any], metadata: Any, **more: Paths) -> dict[str, Any]:
        """Index build, language, conversation and tags of a record; `more` are further tags."""
        tags = {name: first(record, *paths) for name, paths in {**self.tags, **more}.items()}
        session = identifier(first(record, *self.session))
        return {**({"session_id": session} if session else {}), **about(metadata, **tags)}
