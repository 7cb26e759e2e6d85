"""The inputs of a run: the log files of a night or rows passed in Python, and the golden set.

Rows in Python are paths, dicts, a pandas DataFrame or a dataset. They are written as a log. The
golden set has questions with right answers, each with the dates between which it is used:

    since   first night of the question; none: it was always used
    until   first night without it; none: it is used until further notice

A night uses the questions of its date. So a question that is added today changes no night before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings, file_and_judge, night_before, night_span
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs.formats import ENDINGS
from ragmetrics.logs.log_files import LogSet, ReadCounts, find_logs, is_among, log_of
from ragmetrics.records import BadRow, LogRow, Rejected, question_key
from ragmetrics.storage import FileInfo, Files, same_file
from ragmetrics.text import normalise

SINCE, UNTIL = "since", "until"
NUGGETS_OF = "nuggets_of"
"""Key of the reference that nuggets were cut from: after a change of the reference they are old."""
_RECENT = timedelta(days=60)
"""Nights that are compared are at most so far apart, except for a pinned run."""


@dataclass(frozen=True)
class NightInputs:
    """The log files of a run and its golden set."""

    logs: tuple[LogSet, ...]
    golden: LogSet | None
    problem: str | None = None
    limit: int | None = None
    """Rows after which reading ends."""
    golden_first: bool = False
    """True for a gate: the references of the golden set replace those of the logs, and its rejected
    rows are not counted with those of the logs."""

    def log_files(self) -> list[FileInfo]:
        """All log files, in the order they are read."""
        return [info for logs in self.logs for info in logs.infos]


def find_inputs(settings: Settings, day: date) -> NightInputs:
    """Find the files of a night. Missing or refused logs become the `problem` of the night, which
    causes an alert. Raises StoreError when a bucket is down or the golden set cannot be read.
    """
    options, problem = settings.storage_options, None
    try:
        files, infos = find_logs(settings.logs, options, day=day)
        if not infos:
            problem = f"no log file at {files.uri()}"
    except StoreError as error:
        if error.transient:
            raise  # the files are unknown, which is not the same as no files
        files, infos, problem = Files("."), (), str(error)
    logs = in_layout(settings, log_of(settings, files, infos))
    if settings.split_nights:
        logs = replace(logs, between=night_span(day, settings.time_zone or "UTC"))
    return NightInputs((logs,), golden_set(settings), problem)


def days_of(settings: Settings) -> list[date]:
    """The days that the rows of a log of many days have, in the zone of the nights. Raises
    InputError where there is no log, or no row has a time.
    """
    logs = log_set(settings, settings.logs)
    times = (row.timestamp for row in logs.read() if isinstance(row, LogRow))
    before = {night_before(moment, settings.time_zone) for moment in times if moment}
    if not before:
        raise InputError(f"{settings.logs}: no row has a time, which `split_nights` needs")
    return [day + timedelta(days=1) for day in sorted(before)]


def log_set(settings: Settings, place: str) -> LogSet:
    """The logs at a location. Raises InputError when there are none."""
    files, infos = find_logs(place, settings.storage_options)
    if not infos:
        raise InputError(f"{place}: no such log; names end in {ENDINGS}")
    return in_layout(settings, log_of(settings, files, infos))


def log_sets(settings: Settings, places: Iterable[str]) -> list[LogSet]:
    """The logs at some locations. With a preset, files of one folder are one log: a trace may go
    over several of them.
    """
    by_folder: dict[str, LogSet] = {}
    for number, place in enumerate(places):
        logs = log_set(settings, place)
        key = logs.files.uri() if settings.preset else str(number)
        known = by_folder.get(key)
        infos = tuple(dict.fromkeys((*known.infos, *logs.infos))) if known else logs.infos
        by_folder[key] = replace(logs, infos=infos)
    return list(by_folder.values())


def in_layout(settings: Settings, logs: LogSet) -> LogSet:
    """Logs in the layout that the settings name."""
    return replace(
        logs,
        columns=settings.columns,
        preset=settings.preset,
        context_separator=settings.context_separator,
    )


def inputs_of(settings: Settings, rows: Any, folder: Path, limit: int | None) -> NightInputs:
    """The inputs of a run. Rows in memory are written into a folder as a log.

    Raises InputError for rows of an unknown type.
    """
    if isinstance(rows, str | Path):
        rows = [rows]
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], str | Path):
        logs = tuple(log_sets(settings, map(str, rows)))
    else:
        logs = (_written(settings, _dicts(rows), folder),)
    return NightInputs(logs, golden_set(settings), limit=limit)


def overwrites(path: Path, settings: Settings, inputs: NightInputs) -> bool:
    """True when writing to a path would overwrite a log, the golden set or a used recording."""
    judges = [one for one in settings.panel if one.kind.is_place(one.argument)]
    recordings = [file_and_judge(judge.argument)[0] for judge in judges]
    sets = [*inputs.logs, *([inputs.golden] if inputs.golden else [])]
    return any(same_file(path, recording) for recording in recordings) or any(
        is_among(path, log_set.files, log_set.infos) for log_set in sets
    )


def _dicts(rows: Any) -> Iterable[Any]:
    if hasattr(rows, "to_pandas"):  # ragas's EvaluationDataset and Hugging Face's Dataset
        rows = rows.to_pandas()
    table = _pandas_attribute("DataFrame")
    if table and isinstance(rows, table):
        named = rows.index.name and rows.index.name not in rows  # such as Phoenix's span ids
        records: list[Any] = (rows.reset_index() if named else rows).to_dict("records")
        return records
    if isinstance(rows, Iterable) and not isinstance(rows, Mapping | bytes):
        return rows
    raise InputError(f"rows: expected a path, dicts or a table, not {type(rows).__name__}")


def _written(settings: Settings, rows: Iterable[Any], folder: Path) -> LogSet:
    """Write rows in memory as a log, so that there is one way to read rows."""
    ours = settings.preset in (None, "ragas") and "id" not in settings.columns
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows):
            if ours and isinstance(row, Mapping) and row.get("id") is None:
                row = {**row, "id": str(number)}
            file.write(json.dumps(row, default=_plain) + "\n")
    return log_set(settings, str(folder / "rows.jsonl"))


def _plain(value: Any) -> Any:
    if any(value is _pandas_attribute(name) for name in ("NaT", "NA")):
        return None
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _pandas_attribute(name: str) -> Any:
    """An attribute of pandas; None if pandas is not imported: then no value can come from it."""
    return getattr(sys.modules.get("pandas"), name, None)


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
    return replace(ours, defaults={"retrieved_contexts": []}, also=(SINCE, UNTIL, NUGGETS_OF))


def read_golden(rows: LogSet, counts: ReadCounts | None = None) -> Iterator[GoldenRow | Rejected]:
    """The questions of a golden set; bad rows as Rejected. A date that cannot be read is left out,
    and counted; so are nuggets that were cut from an earlier reference.
    """
    counts = counts or ReadCounts()
    for row, record in rows.read_with_records(counts):
        if isinstance(row, Rejected):
            yield row
            continue
        since, until = (_date(record, name, counts) for name in (SINCE, UNTIL))
        cut_from = record.get(NUGGETS_OF)
        if row.nuggets is not None and cut_from not in (
            None,
            "",
            question_key(row.reference or ""),
        ):
            counts.dropped["nuggets: of an earlier reference, see `ragmetrics golden nuggets`"] += 1
            row = replace(row, nuggets=None)
        yield GoldenRow(row, record, since, until)


def _date(record: Mapping[str, Any], name: str, counts: ReadCounts) -> date | None:
    try:
        return date_of(record.get(name), name)
    except BadRow as bad:
        counts.dropped[str(bad)] += 1
        return None


def date_of(value: Any, name: str) -> date | None:
    """The date in a field of a record; None for an empty field. Raises BadRow for anything else."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if value is None or value != value or not str(value).strip():
        return None
    try:
        return datetime.fromisoformat(str(value).strip()).date()
    except ValueError:
        raise BadRow(f"{name}: should be a date like 2026-11-19") from None


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
            for name in ("reference", "reference_contexts", "reference_context_ids", "nuggets")
            if (value := getattr(golden, name)) is not None
            and (overrules or getattr(row, name) is None)
        }
        return replace(row, **references), True
