"""Rows to be labelled as a file for a person: a row of a labels file whose values are empty.

Three more fields have the texts that a person needs: `contexts`, `reference_sentences` and
`response`. In CSV, lists are JSON. A cell that a spreadsheet would run as a formula begins with an
apostrophe, which is removed when the file is read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.labels.label_file import UNITS
from ragmetrics.model import LabelSuggestion
from ragmetrics.text import spreadsheet_safe

COLUMNS: Mapping[str, str] = {metric: column for column, (metric, _) in UNITS.items()}
"""The column for the labels of a metric that has units."""


def label_record(one: LabelSuggestion) -> dict[str, Any]:
    """A suggestion as a row of a labels file; only its values are to be filled in.

    Where nothing was retrieved, nothing is relevant: this needs no person.
    """
    known = {"context_relevance": 0} if not one.contexts else {}
    return {
        "id": one.id,
        "date": one.night.isoformat(),
        "sampling_weight": one.sampling_weight,
        "person": "",
        **{COLUMNS.get(metric, metric): "" for metric in one.metrics},
        **{metric: value for metric, value in known.items() if metric in one.metrics},
        "user_input": one.user_input,
    }


def write_label_suggestions(path: Path, suggestions: Iterable[LabelSuggestion]) -> None:
    """Write suggestions as .csv or .jsonl. Raises InputError for another ending."""
    records = [
        label_record(one)
        | {
            "contexts": one.contexts,
            "reference_sentences": one.sentences,
            "response": one.response or "",
        }
        for one in suggestions
    ]
    if path.suffix == ".jsonl":
        lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in records]
        path.write_text("".join(lines), "utf-8", "backslashreplace")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            columns = list(dict.fromkeys(name for one in records for name in one))
            writer = csv.DictWriter(file, columns or ["user_input"])
            writer.writeheader()
            writer.writerows({name: _cell(value) for name, value in one.items()} for one in records)
    else:
        raise InputError(f"{path}: the name should end in .csv, .jsonl or .html")


def _cell(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)
    return spreadsheet_safe(text)
