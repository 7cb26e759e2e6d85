"""The golden set: questions with right answers, each with the dates between which it is used.

    since   first night of the question; none: it was always used
    until   first night without it; none: it is used until further notice

A night uses the questions of its date. So a question that is added today changes no night before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs.log_files import LogSet, ReadCounts, find_logs, log_of
from ragmetrics.records import LogRow, Rejected
from ragmetrics.text import normalise

SINCE, UNTIL = "since", "until"
_RECENT = timedelta(days=60)
"""Nights that are compared are at most so far apart, except for a pinned run."""


@dataclass(frozen=True, slots=True)
class GoldenRow:
    """A golden question, with the record that it was read from."""

    row: LogRow
    record: Mapping[str, Any]
    since: date | None = None
    until: date | None = None

    def is_used_on(self, day: date) -> bool:
        """Whether the question is used on a night."""
        started = self.since is None or self.since <= day
        return started and (self.until is None or day < self.until)


def golden_set(settings: Settings) -> LogSet | None:
    """The golden set of the settings; None without one. Raises InputError for a missing file."""
    if settings.golden is None:
        return None
    files, infos = find_logs(settings.golden, settings.storage_options)
    if not infos:
        raise InputError(f"golden set {settings.golden}: no such file")
    ours = log_of(settings, files, infos)
    return replace(ours, defaults={"retrieved_contexts": []}, also=(SINCE, UNTIL))


def read_golden(rows: LogSet, counts: ReadCounts | None = None) -> Iterator[GoldenRow | Rejected]:
    """The questions of a golden set; bad rows as Rejected. A date that cannot be read is left out,
    and counted.
    """
    counts = counts or ReadCounts()
    for row, record in rows.read_with_records(counts):
        if isinstance(row, Rejected):
            yield row
            continue
        since, until = (_date(record, name, counts) for name in (SINCE, UNTIL))
        yield GoldenRow(row, record, since, until)


def _date(record: Mapping[str, Any], name: str, counts: ReadCounts) -> date | None:
    value = record.get(name)
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if value is None or value != value or not str(value).strip():
        return None
    try:
        return datetime.fromisoformat(str(value).strip()).date()
    except ValueError:
        counts.dropped[f"{name}: should be a date like 2026-11-19"] += 1
        return None


class GoldenSet:
    """The golden set, indexed by question and by id. It fills in the missing references of rows.

    With `first`, its references replace those of a row with an equal question. Only the questions
    that are used on `day` count; None: today.
    """

    def __init__(
        self, rows: LogSet | None, *, first: bool = False, day: date | None = None
    ) -> None:
        self.rejected: list[Rejected] = []
        self.counts = ReadCounts()
        self.joined: set[str] = set()
        """Keys of the golden questions that were joined to rows."""
        self.since: dict[str, date] = {}
        """First nights of the questions that were added recently, by their keys."""
        self.until: dict[str, date] = {}
        """First nights without the questions that were retired recently, by their keys."""
        self._first = first
        self._by_id: dict[str, LogRow] = {}
        self._by_question: dict[str, LogRow] = {}
        day = day or datetime.now(UTC).date()
        for item in read_golden(rows, self.counts) if rows else ():
            if isinstance(item, Rejected):
                self.rejected.append(replace(item, file=f"golden set {item.file}"))
            else:
                self._add(item, day)
        if self.counts.note:
            self.counts.note = f"Golden set: {self.counts.note}"

    def _add(self, golden: GoldenRow, day: date) -> None:
        row = golden.row
        if golden.is_used_on(day):
            self._by_id[row.id] = row
            self._by_question[normalise(row.user_input)] = row
            if golden.since and day - golden.since <= _RECENT:
                self.since[row.question_key] = golden.since
        elif golden.until and timedelta() <= day - golden.until <= _RECENT:
            self.until[row.question_key] = golden.until

    @property
    def questions(self) -> set[str]:
        """The keys of its questions."""
        return {row.question_key for row in self._by_question.values()}

    def join(self, row: LogRow) -> tuple[LogRow, bool]:
        """The row with the references of its golden row, and True if there is a golden row.

        Questions are matched before ids, because ids that only number the rows of a log would match
        other questions.
        """
        same = self._by_question.get(normalise(row.user_input))
        golden = same or self._by_id.get(row.id)
        if golden is None:
            return row, False
        self.joined.add(golden.question_key)
        overrules = self._first and same is not None
        references = {
            name: value
            for name in ("reference", "reference_contexts", "reference_context_ids")
            if (value := getattr(golden, name)) is not None
            and (overrules or getattr(row, name) is None)
        }
        return replace(row, **references), True
