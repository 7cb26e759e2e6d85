"""Reads the records of a golden set, and writes them again with the fields that they had."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import EVERYTHING, GoldenRow, ReadCounts, golden_set, read_golden

_MOST_REASONS = 50


@dataclass(frozen=True)
class GoldenRows:
    """All questions of a golden set."""

    place: str
    rows: tuple[GoldenRow, ...]
    unreadable: int
    """Rows that cannot be read."""
    problems: Mapping[str, int] = field(default_factory=dict)
    """Why rows, or fields of rows, cannot be read, and how often."""

    def used_on(self, day: date) -> list[GoldenRow]:
        """The questions that are used on a night."""
        return [row for row in self.rows if row.is_used_on(day)]


def read_golden_rows(settings: Settings) -> GoldenRows:
    """The golden set of the settings, with every field of its records.

    Raises InputError where there is none, a file of it is truncated or no question can be read;
    StoreError for a bucket.
    """
    golden = golden_set(settings)
    if golden is None:
        raise InputError("there is no golden set: name one by `golden:` in the settings")
    counts, reasons = ReadCounts(), Counter[str]()
    found = []
    for item in read_golden(replace(golden, also=EVERYTHING), counts):
        if isinstance(item, GoldenRow):
            found.append(item)
        elif item.whole_file:
            raise InputError(f"golden set {golden.files.uri(item.file)}: {item.reason}")
        else:
            reasons[item.reason] += 1
    if not found:
        first = next(iter(reasons), counts.note or "there is no row in it")
        raise InputError(f"golden set {settings.golden}: no question can be read: {first}")
    problems = dict((reasons + counts.dropped).most_common(_MOST_REASONS))
    return GoldenRows(settings.golden or "", tuple(found), reasons.total(), problems)


def write_golden_rows(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSON Lines. Raises InputError for another ending of the name."""
    if path.suffix != ".jsonl":
        raise InputError(f"{path}: a golden set is written as .jsonl")
    lines = [json.dumps(dict(record), ensure_ascii=False, default=str) + "\n" for record in records]
    beside = path.with_name(f"{path.name}.part")
    beside.write_text("".join(lines), "utf-8", "backslashreplace")
    beside.replace(path)
