"""Finding a field in a record of any layout, by dotted path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def find_path(record: Any, path: str) -> Any:
    """What stands at a dotted path, or None.

    A list on the way is followed by number, or else item by item. Keys may hold dots themselves,
    as exporters write them: `attributes.input.value` is found nested, flat or half and half.
    """
    if isinstance(record, list):
        head, _, rest = path.partition(".")
        if not head.isdecimal():
            return [find_path(item, path) for item in record]
        item = record[int(head)] if int(head) < len(record) else None
        return find_path(item, rest) if rest else item
    if not isinstance(record, dict):
        return None
    if path in record:
        return record[path]
    end = path.find(".")
    while end >= 0:
        if path[:end] in record:
            found = find_path(record[path[:end]], path[end + 1 :])
            if found is not None:
                return found
        end = path.find(".", end + 1)
    return None


def map_columns(record: Any, columns: Mapping[str, str]) -> Any:
    """Lay a record out as our fields: `{our field: dotted path in the record}`.

    Fields that are not mapped keep their own name. `tags.NAME` fills one tag.
    """
    if not isinstance(record, Mapping):
        return record
    return _laid(record, {name: find_path(record, path) for name, path in columns.items()})


def override(row: Mapping[str, Any], columns: Mapping[str, str], record: Any) -> dict[str, Any]:
    """A row with what `columns` find in the record it came from; the rest stays as it is."""
    values = {name: find_path(record, path) for name, path in columns.items()}
    return _laid(row, {name: value for name, value in values.items() if value is not None})


def _laid(row: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    mapped: dict[str, Any] = dict(row)
    tags = dict(row["tags"]) if isinstance(row.get("tags"), Mapping) else {}
    for name, value in values.items():
        if name.startswith("tags."):
            tags[name.removeprefix("tags.")] = value
        else:
            mapped[name] = value
    return {**mapped, "tags": tags} if tags else mapped
