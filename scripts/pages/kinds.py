"""Types of values in words, from a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]

_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
}
_FORMATS = ("duration", "date", "date-time")
_PLURALS = {"text": "texts", "mapping": "mappings", "number": "numbers", "date": "dates"}
_BOUNDS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "above"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "below"),
)


def choices(value: Schema) -> list[Schema]:
    """The kinds of value that may stand there, without null."""
    return [one for one in value.get("anyOf", [value]) if one.get("type") != "null"]


def kind(value: Schema, model: Callable[[str], str] = lambda name: "mapping") -> str:
    """What may stand there, with its limits, in words; `model` gives the words for a model."""
    return " or ".join(dict.fromkeys(_one_kind(choice, model) for choice in choices(value)))


def _one_kind(one: Schema, model: Callable[[str], str]) -> str:
    name = str(one.get("$ref", "")).rpartition("/")[2]
    if name:
        return "any" if name == "JsonValue" else model(name)
    if "enum" in one:
        return " or ".join(f"`{choice}`" for choice in one["enum"])
    if "const" in one:
        return f"`{one['const']}`"
    if one.get("format") in _FORMATS:
        return str(one["format"]).replace("date-time", "time")
    return _plain(one, model)


def _plain(one: Schema, model: Callable[[str], str]) -> str:
    word = one.get("type")
    if word == "array":
        items = kind(one["items"], model) if "items" in one else "values"
        return f"list of {' or '.join(_PLURALS.get(item, item) for item in items.split(' or '))}"
    if word == "object":
        return "mapping"
    return f"{_NAMES[word]}{_limits(one)}" if word else "any"


def _limits(one: Schema) -> str:
    if "minimum" in one and "maximum" in one:
        return f", {one['minimum']:,} to {one['maximum']:,}"
    found = [f"{word} {one[name]:,}" for name, word in _BOUNDS if name in one]
    return f", {', '.join(found)}" if found else ""
