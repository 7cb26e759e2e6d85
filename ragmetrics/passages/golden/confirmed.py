"""Suggestions as a file for a person, and the golden set with the suggestions that were confirmed.

A suggestion is a golden row with three more fields:

    confirmed   empty; `yes` adds the question, anything else does not
    why         the reason
    response    what the product answered, as a draft of `reference`

In CSV, the cells of lists are JSON. A cell that a spreadsheet would run as a formula begins with an
apostrophe, which is removed when the file is read.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.logs import SINCE, GoldenRow, write_rows_for_people
from ragmetrics.passages.golden.golden_file import record_of
from ragmetrics.records import BadRow, Suggestion, question_key, read_row
from ragmetrics.text import without_spreadsheet_signs

_COLUMNS = (
    "confirmed",
    "why",
    "user_input",
    "reference",
    "reference_context_ids",
    "reference_contexts",
    "response",
    "id",
)
_LISTS = ("reference_context_ids", "reference_contexts")
_YES = ("yes", "y", "true", "1", "x")


@dataclass(frozen=True)
class Added:
    """The golden set with the confirmed suggestions."""

    records: list[dict[str, Any]]
    added: int
    """Questions that are new in it."""
    known: int
    """Confirmed questions that it had already."""
    unconfirmed: int
    reviewed: int = 0
    """Questions whose nuggets were reviewed."""


def suggestion_record(one: Suggestion) -> dict[str, Any]:
    """A suggestion as a row of the file, with the passages that the judge found relevant."""
    chosen = [passage for passage in one.passages if passage.relevant]
    return {
        "confirmed": "",
        "why": one.why,
        "user_input": one.user_input,
        "reference": "",
        "reference_context_ids": [passage.id for passage in chosen if passage.id],
        "reference_contexts": [passage.text for passage in chosen],
        "response": one.response or "",
        "id": f"live-{question_key(one.user_input)}",
    }


def write_suggestions(path: Path, suggestions: Iterable[Suggestion]) -> None:
    """Write suggestions as .csv or .jsonl. Raises InputError for another ending."""
    write_rows_for_people(path, [suggestion_record(one) for one in suggestions], _COLUMNS)


def read_suggestions(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of suggestions. Raises InputError where it cannot be read."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        rows = _csv(text) if path.suffix == ".csv" else _lines(text)
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from None
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not str(row.get("user_input") or "").strip():
            raise InputError(f"{path}: row {number} has no user_input")
    return rows


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _csv(text: str) -> list[Any]:
    return [
        {name: _value(name, cell) for name, cell in row.items() if name and cell}
        for row in csv.DictReader(io.StringIO(text, newline=""))
    ]


def _value(name: str, cell: str) -> Any:
    plain = without_spreadsheet_signs(cell)
    return json.loads(plain) if name in _LISTS else plain


def add_confirmed(
    golden: Sequence[GoldenRow], suggestions: Iterable[Mapping[str, Any]], day: date
) -> Added:
    """The records of a golden set with the confirmed suggestions, which are used from `day` on.

    Raises InputError for a confirmed row without a right answer: neither a reference nor a passage.
    """
    records = [record_of(one) for one in golden]
    known = {one.row.question_key for one in golden}
    added = double = left = 0
    for suggestion in suggestions:
        if str(suggestion.get("confirmed") or "").strip().casefold() not in _YES:
            left += 1
        elif question_key(suggestion["user_input"]) in known:
            double += 1
        else:
            records.append(_golden(suggestion, day))
            known.add(question_key(suggestion["user_input"]))
            added += 1
    return Added(records, added, double, left)


def _golden(one: Mapping[str, Any], day: date) -> dict[str, Any]:
    names = ("id", "user_input", "reference", *_LISTS, "language", "tags")
    record = {name: one[name] for name in names if one.get(name)}
    if not record.keys() & {"reference", *_LISTS}:
        raise InputError(
            f"{one['user_input']:.100}: is confirmed, and has neither a reference nor a passage"
        )
    try:
        read_row({"retrieved_contexts": [], **record}, "")
    except BadRow as error:
        raise InputError(f"{one['user_input']:.100}: {error}") from None
    return record | {SINCE: day.isoformat()}
