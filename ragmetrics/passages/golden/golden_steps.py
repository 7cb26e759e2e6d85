"""The golden set in the life of a store: checked, anchored, and extended by live questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.passages.golden.anchors import find_anchors
from ragmetrics.passages.golden.check import check_golden
from ragmetrics.passages.golden.confirmed import (
    Added,
    add_confirmed,
    read_suggestions,
    write_suggestions,
)
from ragmetrics.passages.golden.golden_file import (
    GoldenRows,
    read_golden_rows,
    relabelled,
    retired,
    write_golden_rows,
)
from ragmetrics.passages.golden.nuggets import VERDICTS, CutNuggets, add_reviews, cut_nuggets
from ragmetrics.passages.golden.passages import Passages, listed_passages, night_passages
from ragmetrics.passages.golden.suggestions import suggest_questions
from ragmetrics.records import Anchor, GoldenCheck, Manifest, Suggestion
from ragmetrics.storage import Files, Runs, open_store

_EARLIER = 14
"""Nights before that earlier texts, scores and live questions are read from."""


def check_golden_set(
    settings: Settings, night: date | None = None, passages: str | None = None
) -> GoldenCheck:
    """What is stale in the golden set, by the newest night or that of a date; or by a list of all
    `passages` of an index.

    Raises InputError where there is no golden set or no such night, StoreError where the store
    is down.
    """
    golden, files = read_golden_rows(settings), open_store(settings)
    there, day, earlier = _sides(settings, files, night, passages)
    return check_golden(golden, golden.used_on(day), there, files, earlier)[0]


def anchor_golden_set(
    settings: Settings, out: Path | None, night: date | None = None, passages: str | None = None
) -> list[Anchor]:
    """Find the passages of all labels, and write the golden set with their ids of now.

    Without `out` nothing is written. Raises as `check_golden_set`.
    """
    golden, files = read_golden_rows(settings), open_store(settings)
    if out is not None:
        _refuse_unreadable(golden)
    there, _, earlier = _sides(settings, files, night, passages)
    anchors, search = find_anchors(golden.rows, there, files, earlier)
    if out is not None:
        write_golden_rows(out, relabelled(golden.rows, anchors, search))
    return anchors


def suggest_golden_questions(
    settings: Settings, out: Path | None, night: date | None = None, count: int = 20
) -> list[Suggestion]:
    """Propose live questions of the last 14 nights, and write them as .csv or .jsonl.

    Raises InputError where the store has no night, StoreError where it is down.
    """
    golden = read_golden_rows(settings) if settings.golden else GoldenRows("", (), 0)
    files = open_store(settings)
    known = Runs(files).up_to(night, _EARLIER)
    found = suggest_questions(files, known, golden.rows, count)
    if out is not None:
        write_suggestions(out, found)
    return found


def add_to_golden_set(
    settings: Settings, suggestions: Path, out: Path, day: date | None = None
) -> Added:
    """Write the golden set with the confirmed suggestions of a file, used from `day` (today) on,
    or with the nuggets that were reviewed in it.
    """
    rows, day = read_suggestions(suggestions), day or _today()
    golden = read_golden_rows(settings) if settings.golden else GoldenRows("", (), 0)
    _refuse_unreadable(golden)
    reviews = [row for row in rows if VERDICTS in row]
    reviewed = add_reviews(golden.rows, reviews, day)
    found = add_confirmed(reviewed, [row for row in rows if VERDICTS not in row], day)
    write_golden_rows(out, found.records)
    return replace(found, reviewed=len(reviews))


def cut_golden_nuggets(
    settings: Settings, out: Path | None, count: int | None = None
) -> CutNuggets:
    """Cut the references that have no nuggets, at most `count`, and write the golden set with them.

    Without `out` no set is written. Raises as `cut_nuggets`, and InputError without a golden set.
    """
    golden = read_golden_rows(settings)
    if out is not None:
        _refuse_unreadable(golden)
    found = cut_nuggets(settings, golden.rows, _today(), count)
    if out is not None:
        write_golden_rows(out, found.records)
    return found


def retire_golden_questions(
    settings: Settings, ids: Sequence[str], out: Path, day: date | None = None
) -> None:
    """Write the golden set with some questions that are not used from `day` (today) on.

    Raises InputError for an id that no question has.
    """
    golden = read_golden_rows(settings)
    _refuse_unreadable(golden)
    write_golden_rows(out, retired(golden.rows, ids, day or _today()))


def _refuse_unreadable(golden: GoldenRows) -> None:
    """A row that cannot be read would be missing in the written set."""
    if golden.unreadable:
        raise InputError(
            f"golden set {golden.place}: {golden.unreadable:,} rows cannot be read, and would be "
            "lost: fix them first (`ragmetrics check` names them)"
        )


def _sides(
    settings: Settings, files: Files, night: date | None, place: str | None
) -> tuple[Passages, date, Sequence[Manifest]]:
    """The passages of now, the day whose questions are used, and the nights before."""
    known = Runs(files).up_to(night, _EARLIER + 1)
    if place is not None:
        return listed_passages(settings, place), night or _today(), known[-_EARLIER:]
    if not known:
        raise InputError(
            "the store has no night yet: run one first, or name all passages by --passages"
        )
    *earlier, newest = known
    return night_passages(files, newest), newest.date, earlier[-_EARLIER:]


def _today() -> date:
    return datetime.now(UTC).date()
