"""New records of golden questions: with the labels of now, or with a date of retirement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.logs import UNTIL, GoldenRow
from ragmetrics.passages.golden.passage_search import PassageSearch
from ragmetrics.records import Anchor

_IDS, _TEXTS = "reference_context_ids", "reference_contexts"


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
