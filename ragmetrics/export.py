"""Writing scores row by row to a file of the user's choice."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragmetrics.errors import InputError
from ragmetrics.store.files import Files
from ragmetrics.store.parts import PartWriter, workspace

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
# A spreadsheet runs a cell that begins with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_name(path: Path) -> None:
    """Raise InputError unless the file's name says one of the formats."""
    if path.suffix not in (".parquet", ".jsonl", ".csv"):
        raise InputError(f"--out {path}: the name should end in .parquet, .jsonl or .csv")
    if path.is_dir():
        raise InputError(f"--out {path}: is a folder")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {path.parent}")


def export(records: Iterable[dict[str, Any]], path: Path) -> None:
    """Write one line per row and metric: id, metric, value, status, reason, details, tags."""
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
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
