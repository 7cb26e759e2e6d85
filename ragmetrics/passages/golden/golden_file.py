"""Reads the records of a golden set, and writes them again with the fields that they had.

New records have the labels of now, or a date of retirement.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import EVERYTHING, UNTIL, GoldenRow, ReadCounts, golden_set, read_golden
from ragmetrics.passages.golden.passage_search import PassageSearch
from ragmetrics.records import Anchor

_MOST_REASONS = 50
_IDS, _TEXTS = "reference_context_ids", "reference_contexts"


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


def relabelled(
    rows: Sequence[GoldenRow], anchors: Iterable[Anchor], search: PassageSearch
) -> list[dict[str, Any]]:
    """The records of golden questions with the ids that hold their passages now.

    A label whose passage was not found stays as it is, so that nothing is lost. Where a record has
    a text for each label (`reference_contexts`), it gets the texts of the new labels.
    """
    by_label = {(anchor.id, anchor.context_id): anchor for anchor in anchors}
    return [_record(row, by_label, search) for row in rows]


def _record(
    one: GoldenRow, by_label: dict[tuple[str, str], Anchor], search: PassageSearch
) -> dict[str, Any]:
    ids, texts = one.row.reference_context_ids or (), one.row.reference_contexts or ()
    old_texts = dict(zip(ids, texts, strict=True)) if len(ids) == len(texts) else {}
    labels: dict[str, str] = {}
    for name in ids:
        anchor = by_label.get((one.row.id, name))
        for new in anchor.to if anchor and anchor.to else [name]:
            labels.setdefault(new, search.text_of(new) or old_texts.get(name, ""))
    record = record_of(one)
    if ids and list(labels) != list(ids):
        record[_IDS] = list(labels)
        if old_texts:
            record[_TEXTS] = list(labels.values())
    return record


def record_of(one: GoldenRow) -> dict[str, Any]:
    """The record of a golden question, without empty fields."""
    return {name: value for name, value in one.record.items() if value is not None}


def retired(rows: Sequence[GoldenRow], wanted: Collection[str], day: date) -> list[dict[str, Any]]:
    """The records of golden questions, of which some are used until a day.

    Raises InputError for an id that no question has.
    """
    if strange := sorted(set(wanted) - {row.row.id for row in rows}):
        raise InputError(f"no golden question has the id {strange[0]!r:.100}")
    return [
        record_of(row) | ({UNTIL: day.isoformat()} if row.row.id in wanted else {}) for row in rows
    ]
