"""Applies a preset: turns the records of a tool into rows, and joins the spans of a trace.

A retrieval gets its response and question from other spans of its trace. Spans come in any order,
and traces are interleaved. So a trace stays open until the end of the logs, or until there are too
many open traces, or too large ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from reprlib import Repr
from typing import Any

from ragmetrics.config import PRESETS
from ragmetrics.logs.field_mapping import override
from ragmetrics.logs.hops import MOST_HOPS
from ragmetrics.logs.preset import FAILED, Place, Preset, Skipped, Span
from ragmetrics.records import EXCERPT, REQUIRED, BadRow, Rejected
from ragmetrics.text import shorten

# A record may be large and contain many bad spans, so excerpts are abbreviated.
_BRIEF = Repr()
_BRIEF.maxlevel, _BRIEF.maxdict, _BRIEF.maxlist, _BRIEF.maxstring = 3, 8, 2, 60

MOST_TRACES = 10_000
MOST_TEXT = 64 << 20
"""Largest number of characters in all open traces."""
_OVERHEAD = 500
"""Added to the size of every span, so that the number of small spans is bounded too."""
_MOST_KEPT = 200_000
"""Closed traces without a row of which it is kept what users did, as in a file of its own."""
AGAIN = Skipped("span that its trace has already")
INSIDE = Skipped("retrieval inside another retrieval")
_BEGINNING = datetime.min.replace(tzinfo=UTC)
Item = tuple[Place, dict[str, Any] | BadRow | Skipped]


def interpret(
    preset: Preset,
    records: Iterable[tuple[Place, Any]],
    columns: Mapping[str, str],
    traces: Traces | None = None,
) -> Iterator[Item | tuple[Place, Rejected]]:
    """Turn records into rows: a record becomes rows, reasons to skip it, or BadRow.

    Values that `columns` find in the record of a retrieval override those of the preset.
    """
    traces = traces or Traces()
    for place, record in records:
        if isinstance(record, Rejected):
            yield place, record
            continue
        for part in _parts(preset, record):
            if isinstance(part, Span):
                yield from traces.add(place, _without_source(part, columns))
            else:
                yield place, part
    yield from traces.close()


def _parts(preset: Preset, record: Any) -> Iterator[Span | Skipped | BadRow]:
    try:
        if isinstance(record, BadRow):
            raise record
        if not isinstance(record, Mapping):
            raise BadRow(f"not an object but {type(record).__name__}")
        if not preset.rows and (bad := _unread(record.values())):
            raise bad
        for part in preset.read(record):
            yield _shown(part, record) if isinstance(part, BadRow) else part
    except BadRow as error:
        yield _shown(error, record)
    except Exception as error:
        if preset.name in PRESETS.bundled_names:
            raise
        yield _shown(BadRow(f"preset {preset.name}: {shorten(repr(error))}"), record)


def _without_source(span: Span, columns: Mapping[str, str]) -> Span:
    """The span with `columns` applied, and without its record, to save memory."""
    if not isinstance(span.item, dict):
        return replace(span, source={})
    row = override(span.item, columns, span.source)
    bad = _unread(row.get(name) for name in REQUIRED)
    return replace(span, item=_shown(bad, span.source) if bad else row, source={})


def _unread(values: Iterable[Any]) -> BadRow | None:
    """The first reason among values of a record."""
    return next((value for value in values if isinstance(value, BadRow)), None)


def _shown(error: BadRow, record: Any) -> BadRow:
    error.excerpt = error.excerpt or _BRIEF.repr(record)[:EXCERPT]
    return error


@dataclass
class _Trace:
    spans: list[tuple[Place, Span]] = field(default_factory=list)
    size: int = 0


class Traces:
    """The open traces. Each span that is added is returned once: as a row, or with a reason."""

    def __init__(self, most_traces: int = MOST_TRACES, most_text: int = MOST_TEXT) -> None:
        self._most_traces, self._most_text = most_traces, most_text
        self._open: dict[str, _Trace] = {}
        self._held = 0
        self._kept: dict[str, dict[str, Any]] = {}
        self._clicks = False

    def add(self, place: Place, span: Span) -> Iterator[Item]:
        """Add a span. Returns the oldest traces if there is no room for more."""
        if span.trace is None:
            yield from _joined([(place, span)], span.did)
            return
        trace = self._open.setdefault(span.trace, _Trace())
        self._clicks |= not span.retrieval and "clicked_context_ids" in span.did
        size = _size(span)
        trace.spans.append((place, span))
        trace.size += size
        self._held += size
        while len(self._open) > self._most_traces or self._held > self._most_text:
            yield from self._close(next(iter(self._open)))

    def close(self) -> Iterator[Item]:
        """Return all traces, in the order of their first spans."""
        for name in list(self._open):
            yield from self._close(name)

    def _close(self, name: str) -> Iterator[Item]:
        trace = self._open.pop(name)
        self._held -= trace.size
        did = _did([span for _, span in trace.spans], self._kept.pop(name, {}))
        if did and not any(span.retrieval for _, span in trace.spans):
            self._kept[name] = did
            if len(self._kept) > _MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
        if not self._clicks:  # a log without events does not say that nothing was clicked
            did.pop("clicked_context_ids", None)
        yield from _joined(trace.spans, did)


def _size(span: Span) -> int:
    texts = [span.question or "", span.response or ""]
    if isinstance(span.item, dict):
        for value in span.item.values():
            texts += value if isinstance(value, list) else [value]
    return _OVERHEAD + sum(len(text) for text in texts if isinstance(text, str))


def _did(spans: list[Span], before: Mapping[str, Any]) -> dict[str, Any]:
    """What users did with a trace: all clicks, and what they said last."""
    did = dict(before)
    for span in sorted(spans, key=lambda span: span.start or _BEGINNING):
        for name, value in span.did.items():
            did[name] = [*did.get(name, ()), *value] if isinstance(value, list) else value
    return did


def _joined(spans: list[tuple[Place, Span]], did: Mapping[str, Any]) -> Iterator[Item]:
    """The results of the spans of one trace, in their order; `did` is what users did with it."""
    fresh, seen = [], set()
    for place, span in spans:
        if span.id is not None and span.id in seen:
            yield place, AGAIN
            continue
        seen.add(span.id)
        fresh.append((place, span))
    tree = _Tree([span for _, span in fresh])
    retrievals = [span for _, span in fresh if span.retrieval and not tree.inside(span)]
    root = next((span for _, span in fresh if span.root and not span.retrieval), None)
    retrievals.sort(key=lambda span: (span.start or _BEGINNING, span.id or ""))
    batch = not 1 <= len(retrievals) <= MOST_HOPS
    call = None if batch else tree.call(retrievals[-1])
    answer = None if batch else tree.answered_root() or call
    for place, span in fresh:
        if span.retrieval and tree.inside(span):
            yield place, INSIDE
        elif span.failed and isinstance(span.item, dict):
            row = _completed(_with_ids(span, span.item), root, None, None)
            yield place, row if isinstance(row.get("user_input"), str) else FAILED
        elif isinstance(span.item, dict):
            row = {**did, **_completed(_with_ids(span, span.item), root, call, answer)}
            is_hop = len(retrievals) > 1 and not batch
            yield place, _hop(row, root, retrievals.index(span) + 1) if is_hop else row
        elif span.item is not None:
            yield place, span.item
        elif span is answer:
            yield place, Skipped(f"{span.kind}: gave a row its response")
        elif span.did and span.id is None:
            yield place, Skipped(f"{span.kind}: what a user did")
        else:
            yield place, Skipped(f"{span.kind}: not a retrieval")


def _hop(row: dict[str, Any], root: Span | None, number: int) -> dict[str, Any]:
    """The row of one of several retrievals, which is about the question of the whole trace."""
    asked = {"hop": number, "hop_queries": [row["user_input"]]}
    whole = {"user_input": root and root.question, "span_id": root and root.id}
    return {**row, **asked, **{name: value for name, value in whole.items() if value is not None}}


def _with_ids(span: Span, row: dict[str, Any]) -> dict[str, Any]:
    """The row with the ids of its trace and span, by which scores find their way back."""
    ids = {"trace_id": span.trace, "span_id": span.id}
    return {**{name: value for name, value in ids.items() if value is not None}, **row}


def _completed(
    row: dict[str, Any], root: Span | None, call: Span | None, answer: Span | None
) -> dict[str, Any]:
    """The row with missing fields from the root of its trace and from the LLM call after it."""
    abouts = [span.about for span in (root, call) if span]
    tags = {name: value for about in abouts for name, value in about.get("tags", {}).items()}
    extra = {name: value for about in abouts for name, value in about.items()}
    if root and root.question is not None:
        extra["user_input"] = root.question
    if answer:
        extra["response"] = answer.response
    full = {**extra, **{name: value for name, value in row.items() if value is not None}}
    tags |= row["tags"] if isinstance(row.get("tags"), dict) else {}
    return {**full, "tags": tags} if tags else full


class _Tree:
    """The tree of spans of a trace. Damaged logs may have a cycle of parents without a root."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._by_id = {span.id: span for span in spans if span.id is not None}
        self._inside: dict[str, bool] = {}

    def inside(self, span: Span) -> bool:
        """True when a span is inside a retrieval."""
        path: list[str] = []
        is_inside = False
        for name in self._above(span):
            is_inside = self._by_id[name].retrieval or self._inside.get(name, False)
            if is_inside or name in self._inside:
                break
            path.append(name)
        self._inside.update(dict.fromkeys(path, is_inside))
        return is_inside

    def answered_root(self) -> Span | None:
        """The root span, if it has a response."""
        roots = (span for span in self._spans if span.root and not span.llm and not span.retrieval)
        return next((span for span in roots if span.response), None)

    def call(self, retrieval: Span) -> Span | None:
        """The last LLM call with a response that started after the retrieval or contains it."""
        above = set(self._above(retrieval))
        calls = [
            span
            for span in self._spans
            if span.llm
            and span.response
            and not self.inside(span)
            and (span.id in above or not _before(span, retrieval))
        ]
        return max(calls, key=lambda span: span.start or _BEGINNING, default=None)

    def _above(self, span: Span) -> Iterator[str]:
        """The ids of a span's ancestors, nearest first."""
        passed: set[str | None] = {span.id}
        name = span.parent
        while name is not None and name in self._by_id and name not in passed:
            passed.add(name)
            yield name
            name = self._by_id[name].parent


def _before(span: Span, other: Span) -> bool:
    return bool(span.start and other.start and span.start < other.start)
