"""Reads OTLP/JSON: the spans of a line from the OpenTelemetry Collector's file exporter.

Each span gets the form of the Python SDK's `span.to_json()`, so that one reader serves both: name,
context (trace_id, span_id), parent_id, start_time, status, attributes, events, resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.exported_values import from_nanoseconds
from ragmetrics.logs.preset import Skipped
from ragmetrics.records import BadRow

_OTHER_SIGNALS = {"resourceMetrics": "metrics", "resourceLogs": "logs"}
_OF_A_SPAN = (
    *("name", "context", "parent_id", "start_time", "end_time", "status", "status_code"),
    "attributes",
)
STATUS = ("status.message", "status.description")
"""What is said of a span that failed, in OTLP and by the SDK."""
COLUMNS = frozenset([*_OF_A_SPAN, "resource", "resourceSpans", *_OTHER_SIGNALS])
"""The top-level keys of both forms, as in a preset."""


def spans(record: Mapping[str, Any]) -> Iterator[dict[str, Any] | Skipped | BadRow]:
    """The spans of a record, in either form. Raises BadRow for a record that a trace file cannot
    contain.
    """
    if "resourceSpans" in record:
        yield from _spans(record)
        return
    for name, signal in _OTHER_SIGNALS.items():
        if name in record:
            yield Skipped(f"{signal}, not traces")
            return
    if not isinstance(record.get("attributes"), Mapping):
        raise BadRow("not a span: neither resourceSpans nor attributes")
    yield dict(record)


def failed(span: Mapping[str, Any]) -> bool:
    """True when the span ended in an error, in the form of OTLP, the SDK or Phoenix."""
    status = span.get("status")
    codes = [span.get("status_code")]
    if isinstance(status, Mapping):
        codes += [status.get("code"), status.get("status_code")]
    return any(code in (2, "ERROR", "STATUS_CODE_ERROR") for code in codes)


def _spans(record: Mapping[str, Any]) -> Iterator[dict[str, Any] | Skipped | BadRow]:
    empty = True
    for resource_spans in _objects(record, "resourceSpans"):
        resource = resource_spans.get("resource") or {}
        if not isinstance(resource, Mapping):
            raise BadRow("resource: not an object")
        about = {"attributes": _attributes(resource.get("attributes"))}
        for scope_spans in _objects(resource_spans, "scopeSpans"):
            for span in _objects(scope_spans, "spans"):
                empty = False
                try:
                    yield _as_sdk(span, about)
                except BadRow as error:
                    yield error
    if empty:
        yield Skipped("line without spans")


def _as_sdk(span: Mapping[str, Any], resource: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": span.get("name"),
        "context": {"trace_id": span.get("traceId"), "span_id": span.get("spanId")},
        "parent_id": span.get("parentSpanId"),
        "start_time": from_nanoseconds(span.get("startTimeUnixNano")),
        "end_time": from_nanoseconds(span.get("endTimeUnixNano")),
        "status": span.get("status"),
        "attributes": _attributes(span.get("attributes")),
        "events": [
            {"name": event.get("name"), "attributes": _attributes(event.get("attributes"))}
            for event in _objects(span, "events")
        ],
        "resource": resource,
    }


def _objects(parent: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    values = parent.get(name)
    for value in [] if values is None else values if isinstance(values, list) else [values]:
        if not isinstance(value, Mapping):
            raise BadRow(f"{name}: not a list of objects")
        yield value


def _attributes(pairs: Any) -> dict[str, Any]:
    if pairs is None:
        return {}
    if not isinstance(pairs, list):
        raise BadRow("attributes: not a list of keys and values")
    attributes = {}
    for pair in pairs:
        if not isinstance(pair, Mapping) or not isinstance(pair.get("key"), str):
            raise BadRow("attributes: an item has no key")
        attributes[pair["key"]] = _value(pair.get("value"))
    return attributes


def _value(value: Any) -> Any:
    """The value of an AnyValue: an object with one key, which is the type."""
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind in ("arrayValue", "kvlistValue"):
        items = inner.get("values") if isinstance(inner, Mapping) else None
        if kind == "kvlistValue":
            return _attributes(items)
        return [_value(item) for item in items] if isinstance(items, list) else []
    if kind == "intValue" and isinstance(inner, str):  # 64-bit numbers are text in proto JSON
        try:
            return int(inner)
        except ValueError:
            raise BadRow("attributes: intValue is not a number") from None
    return inner
