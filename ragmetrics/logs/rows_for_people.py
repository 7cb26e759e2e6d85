"""Rows as a file that a person fills in: JSONL, or CSV for a spreadsheet.

In CSV, lists are JSON. A cell that a spreadsheet would run as a formula begins with an apostrophe,
which is to be removed when the file is read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.text import spreadsheet_safe


def write_rows_for_people(
    path: Path, records: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> None:
    """Write records as .csv or .jsonl. Raises InputError for another ending.

    `columns` come first in CSV, before fields that only records have.
    """
    if path.suffix == ".jsonl":
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        path.write_text("".join(lines), "utf-8", "backslashreplace")
    elif path.suffix == ".csv":
        names = list(dict.fromkeys([*columns, *(name for record in records for name in record)]))
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in one.items()} for one in records)
    else:
        raise InputError(f"{path}: the name should end in .csv, .jsonl or .html")


def _cell(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)
    return spreadsheet_safe(text)
