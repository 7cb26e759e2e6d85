"""Writes the scores of each row to a file of the user."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragmetrics.errors import InputError
from ragmetrics.logs import find_logs, is_among
from ragmetrics.storage import Files, PartWriter, same_file, workspace
from ragmetrics.text import spreadsheet_safe

COLUMNS = ("id", "metric", "value", "status", "reason", "details", "tags")
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("details", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)


def check_name(
    path: Path,
    read: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    record: Path | None = None,
) -> None:
    """Raise InputError if the name has no known format, or if another file would be overwritten.

    Such files are the inputs at the places `read`, and the recording of the run.
    """
    if path.suffix not in (".parquet", ".jsonl", ".csv"):
        raise InputError(f"--out {path}: the name should end in .parquet, .jsonl or .csv")
    if path.is_dir():
        raise InputError(f"--out {path}: is a folder")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")
    if path.exists() and any(is_among(path, *find_logs(place, options)) for place in read):
        raise InputError(f"--out {path}: is one of the inputs")
    if record is not None and same_file(path, record):
        raise InputError(f"--out {path}: is the recording too")


def export(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Write one line per row and metric, with the fields of COLUMNS."""
    if path.suffix == ".parquet":
        _parquet(records, path)
    elif path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    else:
        _csv(records, path)


def _parquet(records: Iterable[dict[str, Any]], path: Path) -> None:
    with workspace() as folder:
        writer = PartWriter(folder, _SCHEMA)
        for record in records:
            details, tags = json.dumps(record["details"]), list(record["tags"].items())
            writer.add({**record, "details": details, "tags": tags}, size=300)
        writer.finish(Files(str(path.parent)), path.name)


def _csv(records: Iterable[dict[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for record in records:
            cells = {**record, **{name: json.dumps(record[name]) for name in ("details", "tags")}}
            writer.writerow({name: _inert(cell) for name, cell in cells.items()})


def _inert(cell: Any) -> Any:
    return spreadsheet_safe(cell) if isinstance(cell, str) else cell
