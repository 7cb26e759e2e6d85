"""Applies a preset: turns the records of a tool into rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from reprlib import Repr
from typing import Any

from ragmetrics.logs.field_mapping import override
from ragmetrics.logs.presets import langfuse, langsmith, openinference, otel, ragas
from ragmetrics.logs.presets.base import Place, Preset, Skipped, Span
from ragmetrics.logs.presets.traces import Item, Traces
from ragmetrics.model import EXCERPT, BadRow, Rejected

PRESETS: dict[str, Preset] = {
    "ragas": ragas.PRESET,
    "openinference": openinference.PRESET,
    "langfuse": langfuse.PRESET,
    "otel": otel.PRESET,
    "langsmith": langsmith.PRESET,
}

# A record may be large and contain many bad spans, so excerpts are abbreviated.
_BRIEF = Repr()
_BRIEF.maxlevel, _BRIEF.maxdict, _BRIEF.maxlist, _BRIEF.maxstring = 3, 8, 2, 60


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
        for part in preset.read(record):
            yield _shown(part, record) if isinstance(part, BadRow) else part
    except BadRow as error:
        yield _shown(error, record)


def _without_source(span: Span, columns: Mapping[str, str]) -> Span:
    """The span with `columns` applied, and without its record, to save memory."""
    if not isinstance(span.item, dict):
        return replace(span, source={})
    row = override(span.item, columns, span.source)
    bad = next((value for value in row.values() if isinstance(value, BadRow)), None)
    return replace(span, item=_shown(bad, span.source) if bad else row, source={})


def _shown(error: BadRow, record: Any) -> BadRow:
    error.excerpt = error.excerpt or _BRIEF.repr(record)[:EXCERPT]
    return error
