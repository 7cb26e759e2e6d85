"""Finds fields by dotted path in records of any layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragmetrics.logs.postgres_arrays import read_array
from ragmetrics.logs.python_literals import read_literal
from ragmetrics.records import BadRow

LIST = "[]."
"""In a path as people read it: what is before it is a list, the rest is of each of its items."""


def find_path(record: Any, path: str, *, decode: bool = False) -> Any:
    """The value at a dotted path, or None.

    In a list, a number selects an item; any other path is applied to each item. Keys may contain
    dots, as exporters write them: `attributes.input.value` is found nested, flat or mixed. With
    `decode`, a text on the way is read as JSON. A path into a BadRow gives that BadRow, with the
    reason why the value cannot be read.
    """
    if isinstance(record, BadRow):
        return record
    if decode and isinstance(record, str):
        record = decoded(record)
    if isinstance(record, list):
        head, _, rest = path.partition(".")
        if not head.isdecimal():
            return [find_path(item, path, decode=decode) for item in record]
        item = record[int(head)] if int(head) < len(record) else None
        return find_path(item, rest, decode=decode) if rest else item
    if not isinstance(record, dict):
        return None
    if path in record:
        return record[path]
    end = path.find(".")
    while end >= 0:
        if path[:end] in record:
            value = find_path(record[path[:end]], path[end + 1 :], decode=decode)
            if value is not None:
                return value
        end = path.find(".", end + 1)
    return None


def decoded(value: Any) -> Any:
    """The list or mapping in a text, as JSON or Python writes it; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return read_literal(value)
    except ValueError:
        return value


def decoded_list(value: Any) -> Any:
    """As `decoded`; an array of Postgres in a text is a list too."""
    read = decoded(value)
    if not (isinstance(value, str) and (read is value or read == {}) and value.lstrip()[:1] == "{"):
        return read
    try:
        return read_array(value)
    except ValueError:
        return read


def plain_path(path: str) -> str:
    """A path without the signs of lists: `hits[].doc.body` is `hits.doc.body`."""
    return path.replace(LIST, ".")


def map_columns(record: Any, columns: Mapping[str, str]) -> Any:
    """Map a record to row fields: `{row field: dotted path in the record}`.

    Other fields keep their names. `tags.NAME` sets one tag. `[]` may stand behind the name of a
    list: `hits[].doc.body`.
    """
    if not isinstance(record, Mapping):
        return record
    return _with_values(record, _found(record, columns))


def override(row: Mapping[str, Any], columns: Mapping[str, str], record: Any) -> dict[str, Any]:
    """Set row fields from the row's original record, where `columns` find a value."""
    values = _found(record, columns)
    return _with_values(row, {name: value for name, value in values.items() if value is not None})


def _found(record: Any, columns: Mapping[str, str]) -> dict[str, Any]:
    return {name: _value_at(record, path) for name, path in columns.items()}


def _value_at(record: Any, path: str) -> Any:
    """The value at a path. Where lists are within lists (`stages[].hits[].text`), the items of all
    of them follow each other.
    """
    value = find_path(record, plain_path(path), decode=True)
    for _ in range(path.count(LIST) - 1):
        if isinstance(value, list) and all(isinstance(item, list) for item in value):
            value = [item for items in value for item in items]
    return value


def _with_values(row: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    mapped: dict[str, Any] = dict(row)
    tags = dict(row["tags"]) if isinstance(row.get("tags"), Mapping) else {}
    for name, value in values.items():
        if name.startswith("tags."):
            tags[name.removeprefix("tags.")] = value
        else:
            mapped[name] = value
    return {**mapped, "tags": tags} if tags else mapped
