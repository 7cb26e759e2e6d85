"""Writes docs/reference/records.md from the models of what is stored as JSON; a test compares them.

python -m scripts.records_page
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ragmetrics.config.base import models_in
from ragmetrics.config.schema import field_docstrings
from scripts.pages import cell, table
from scripts.pages.kinds import kind
from scripts.store_page import FILES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "records.md"

_HEAD = """\
# Stored records

The JSON files of [the store](store.md) hold these records: first those that are files, then those
within them.
`python -m scripts.records_page` writes this page from the code.

Fields are only ever added, and an unknown field is ignored: [versions](versioning.md).
"""


def page() -> str:
    """The whole page: the records of files in their order, then the records that they hold."""
    parts = [_HEAD]
    found: list[type[BaseModel]] = [one for _, one, _ in FILES if not isinstance(one, str)]
    for record in found:  # it grows
        found += [fromkey for fromkey in dict.fromkeys(_inner(record)) if fromkey not in found]
        parts += [f"## {record.__name__}\n\n{cell(record.__doc__ or '')}\n", _fields(record)]
    return "\n".join(parts)


def _inner(record: type[BaseModel]) -> list[type[BaseModel]]:
    """The records in the fields of a record."""
    return [
        inner
        for field in record.model_fields.values()
        for inner in models_in(field.annotation)
        if inner is not record
    ]


def _fields(record: type[BaseModel]) -> str:
    known = {one.__name__ for one in (record, *_inner(record))}
    meanings = field_docstrings(record)

    def link(name: str) -> str:
        return f"[{name}](#{name.lower()})" if name in known else "mapping"

    rows = [
        (f"`{name}`", cell(kind(value, link)), cell(meanings.get(name, "")))
        for name, value in _properties(record).items()
    ]
    return table(("field", "value", "meaning"), rows)


def _properties(record: type[BaseModel]) -> dict[str, Any]:
    """The fields of a record. A record that holds its own kind has a schema of its own place."""
    schema = record.model_json_schema()
    own = schema.get("$defs", {}).get(record.__name__, schema)
    properties: dict[str, Any] = own["properties"]
    return properties


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
