"""The dotted paths of the first records of a log, with their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ragmetrics.logs.field_mapping import LIST, decoded_list
from ragmetrics.logs.key_names import is_question
from ragmetrics.text import clean

_RECORDS = 50
_BYTES = 8_000_000
_DEPTH = 8
_PATHS = 500
_KEYS = 40
_ITEMS = 20
"""Items of a list that are looked at."""
_LONGEST = 60


def first_records(records: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """The first records that are objects, with a limit on their size."""
    left, size = _RECORDS, 0
    for record in records:
        if isinstance(record, Mapping):
            yield record
            size += len(repr(record))
        left -= 1
        if not left or size > _BYTES:
            return


def paths_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values at each dotted path of the records."""
    values: dict[str, list[Any]] = {}
    for record in records:
        for path, value in islice(values_of(record), _PATHS):
            values.setdefault(path, []).append(value)
    return values


def values_of(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The dotted paths of a record, each with its value. Lists of objects have a path for what each
    object has: `hits[].doc.body`."""
    return _values(record, "", _DEPTH)


def _values(record: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, raw in list(record.items())[:_KEYS]:
        path, value = f"{before}{key}", decoded_list(raw)
        if isinstance(value, Mapping) and depth > 1:
            yield from _values(value, f"{path}.", depth - 1)
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
            yield f"{path}.0", value[0]  # Chroma has a list for each of several questions
        elif value is not None and value == value:
            yield path, value
            if isinstance(value, list) and depth > 1 and not is_question(value):
                yield from _values_of_items(value, f"{path}{LIST}", depth - 1)


def _values_of_items(items: Sequence[Any], before: str, depth: int) -> Iterator[tuple[str, Any]]:
    """For each path of the objects in a list, the list of their values; of lists within lists one
    list."""
    inner: dict[str, list[Any]] = {}
    for item in items[:_ITEMS] if all(map(is_record, items)) else ():
        for path, value in islice(_values(item, before, depth), _PATHS):
            within = LIST in path.removeprefix(before)
            inner.setdefault(path, []).extend(value if within else [value])
    yield from inner.items()


def is_record(value: Any) -> bool:
    """Whether a value is an object with keys."""
    return isinstance(value, Mapping) and bool(value)


def samples_of(paths: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """A value of each path, as a person may read it."""
    return {path: clean(_flat(values[0]), _LONGEST) for path, values in paths.items()}


def _flat(value: Any) -> str:
    """A value in one line: the first item of a list."""
    if isinstance(value, list) and value:
        more = f" (and {len(value) - 1} more)" if len(value) > 1 else ""
        return f"{str(value[0])[:_LONGEST]}{more}"
    return str(value)[: 2 * _LONGEST]
