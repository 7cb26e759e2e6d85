"""Reads logs of all formats as a stream. Bad rows are rejected with a reason; all others are kept.

Formats by file name: `.jsonl`, `.ndjson`, `.json` and `.csv` (plain, `.gz`, `.zst`), `.parquet`.
A location is a file, a folder, a glob, or a template with `{date}`; local or in a bucket.
Other layouts: `field_mapping.py`, `presets/`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any

from ragmetrics.config import PRESETS, Settings, log_files_of_day
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs.exported_values import LISTS, plain_fields
from ragmetrics.logs.field_mapping import map_columns, plain_path
from ragmetrics.logs.formats import (
    BROKEN,
    EVERYTHING,
    FORMATS,
    ROW_BYTES,
    UNPACKED_BYTES,
    Reading,
    not_a_log,
    read_records,
)
from ragmetrics.logs.hops import JOINED, Hops
from ragmetrics.logs.parquet_records import FileTooLarge
from ragmetrics.logs.preset import Place, Skipped
from ragmetrics.logs.preset_rows import MOST_TEXT, MOST_TRACES, interpret
from ragmetrics.logs.recognition import RecognisedLayout, recognise
from ragmetrics.records import (
    EXCERPT,
    FIELDS,
    REQUIRED,
    BadRow,
    LogRow,
    Rejected,
    printable,
    read_row,
)
from ragmetrics.storage import FileInfo, Files, same_file

_MAGIC = frozenset("*?[")


@dataclass
class ReadCounts:
    """What reading found beside rows."""

    skipped: Counter[str] = field(default_factory=Counter)
    """Valid records that are not rows, by reason."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Optional fields that could not be read and were left out of their rows, by reason."""
    note: str = ""
    """How logs in an unknown layout were read, or which settings would read them."""


@dataclass(frozen=True)
class LogSet:
    """The files of one location, and how their rows are read."""

    files: Files
    infos: tuple[FileInfo, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    row_bytes: int = ROW_BYTES
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values for fields that a row lacks."""
    preset: str | None = None
    unpacked_bytes: int = UNPACKED_BYTES
    also: Collection[str] = ()
    """Fields that are read in addition to row fields."""
    context_separator: str | None = None
    """Where a log has the contexts as one text: the text between two of them."""
    between: tuple[datetime, datetime] | None = None
    """Of a log of many days, the times whose rows are read, up to and without the second; all
    others are skipped."""

    def read(self, counts: ReadCounts | None = None) -> Iterator[LogRow | Rejected]:
        """All rows in the order of file names and lines; bad rows as Rejected with the reason.

        With a preset that joins traces, rows are returned when their trace is complete. Records
        that are not rows, and fields that are left out, go to `counts`. For a truncated or damaged
        file, the rows before the damage are returned, then one Rejected with `whole_file`.

        Where neither `preset` nor `columns` is set, and the first record is not a row in our
        layout, a layout that can be recognised without doubt is read, with a note in `counts`.
        """
        return (row for row, _ in self.read_with_records(counts))

    def read_with_records(
        self, counts: ReadCounts | None = None
    ) -> Iterator[tuple[LogRow | Rejected, Any]]:
        """The rows as in `read`, each with its record, which may have other fields (see `also`).

        Of a log of many days, a row that cannot be read goes with the row before it.
        """
        counts, rows, outside = counts or ReadCounts(), 0, ""
        for row, item in self._joined(counts):
            rows += isinstance(row, LogRow)
            if isinstance(row, LogRow):
                outside = self._outside(row)
                counts.skipped.update([outside] if outside else [])
            if not outside or (isinstance(row, Rejected) and row.whole_file):
                yield row, item
        if not rows and not counts.note:
            counts.note = self.layout().note

    def _joined(self, counts: ReadCounts) -> Iterator[tuple[LogRow | Rejected, Any]]:
        """The rows with their records; the hops of a trace as one row."""
        hops: Hops | None = None
        for place, item in self._recognised(counts):
            if isinstance(item, Skipped):
                counts.skipped[item.reason] += 1
                continue
            row = item if isinstance(item, Rejected) else self.row(place, item, counts.dropped)
            if isinstance(row, Rejected) or row.trace_id is None or row.hop is None:
                yield row, item
                continue
            # The hops of a preset's trace follow each other: the trace was open in the preset.
            hops = hops or Hops(1 if self.preset else MOST_TRACES, MOST_TEXT)
            yield from hops.add(row.trace_id, row, item)
        if hops:
            yield from hops.close()
            counts.skipped.update({JOINED: hops.joined} if hops.joined else {})

    def _outside(self, row: LogRow) -> str:
        """Why a row is not among those that are read; empty if it is."""
        if self.between is None:
            return ""
        if row.timestamp is None:
            return "row without a time: its day is unknown"
        start, end = self.between
        return "" if start <= row.timestamp < end else "row of another day"

    def first_row(self) -> LogRow | Rejected | None:
        """The first record as a row in the layout of this set, which is not recognised anew."""
        for place, item in self.items():
            return item if isinstance(item, Rejected) else self.row(place, item, Counter())
        return None

    def _recognised(self, counts: ReadCounts) -> Iterator[tuple[Place, Any]]:
        """The items in our layout, or in the one that is recognised."""
        items = self.items()
        if self.preset or self.columns:
            return items
        head = list(islice(items, 1))
        needed = set(REQUIRED) - set(self.defaults)
        if all(isinstance(one, Mapping) and needed <= one.keys() for _, one in head):
            return chain(head, items)
        layout = self.layout()
        counts.note = layout.note
        if not layout.sure:
            return chain(head, items)
        return replace(self, preset=layout.preset, columns=layout.columns).items()

    def layout(self) -> RecognisedLayout:
        """The layout of the first records, whatever `preset` and `columns` say."""
        raw = replace(self, preset=None, columns={}, also=EVERYTHING)
        return recognise(
            (record for _, record in raw.items()),
            golden=bool(self.defaults),
            separator=self.context_separator,
        )

    def items(self) -> Iterator[tuple[Place, Any]]:
        """Records mapped to row fields, or the reasons why there is no row."""
        if self.preset:
            return interpret(PRESETS.find(self.preset), self._records(), self.columns)
        if self.columns:
            return ((place, map_columns(one, self.columns)) for place, one in self._records())
        return self._records()

    def _records(self) -> Iterator[tuple[Place, Any]]:
        reading = Reading(self._wanted(), self.row_bytes, self.unpacked_bytes)
        for info in self.infos:
            name, number = printable(info.path), 0
            if info.refused:
                yield _broken(Place(name, 1), info.refused)
                continue
            try:
                with self.files.open(info.path) as file:
                    for number, record in read_records(info.path, file, reading):
                        yield Place(name, number), record
            except FileTooLarge as error:
                yield _broken(Place(name, number + 1), f"not read after row {number}: {error}")
            except BROKEN as error:
                reason = f"the file is truncated or damaged after row {number}: {error}"
                yield _broken(Place(name, number + 1), reason)
            except StoreError as error:
                if error.transient and not self.files.local:
                    raise  # the bucket is down: these rows can be read later
                yield _broken(Place(name, number + 1), str(error))

    def _wanted(self) -> Collection[str]:
        """The columns to read, by the first part of their names."""
        if self.also is EVERYTHING:
            return EVERYTHING
        fields = PRESETS.find(self.preset).columns if self.preset else FIELDS
        names = (*fields, *self.also, *map(plain_path, self.columns.values()))
        return {name.partition(".")[0] for name in names}

    def row(
        self, place: Place, record: Any, dropped: Counter[str] | None = None
    ) -> LogRow | Rejected:
        """The row of one mapped record; `dropped` as in `read_row`."""
        try:
            if isinstance(record, BadRow):
                raise record
            if self.defaults and isinstance(record, Mapping):
                record = {**self.defaults, **record}
            plain = record
            if isinstance(record, Mapping) and not _is_plain(record):
                plain = plain_fields(record, self.context_separator)
            return read_row(plain, f"{place.path}:{place.number}", dropped)
        except BadRow as error:
            excerpt = "" if isinstance(record, BadRow) else repr(record)[:EXCERPT]
            return Rejected(place.path, place.number, str(error), error.excerpt or excerpt)


def _is_plain(record: Mapping[str, Any]) -> bool:
    """Whether there is nothing to convert, as in nearly all rows: a quick look at each field."""
    for name in LISTS:
        value = record.get(name)
        if type(value) is str or (type(value) is list and value and type(value[0]) is dict):
            return False
    for name in ("user_input", "response"):
        value = record.get(name)
        if value is not None and (type(value) is not str or value.lstrip()[:1] == "["):
            return False
    return True


def _broken(place: Place, reason: str) -> tuple[Place, Rejected]:
    return place, Rejected(place.path, place.number, reason, whole_file=True)


def find_logs(
    place: str, options: Mapping[str, Any] | None = None, *, day: date | None = None
) -> tuple[Files, tuple[FileInfo, ...]]:
    """The log files at a location, by name. Raises InputError, or StoreError for a bucket.

    `{date}` is the day as 2026-11-19; `{date:%Y/%m/%d}` is another format of it. Without any file
    the result is an empty tuple; the caller decides if that is an error.
    """
    if day is not None:
        place = log_files_of_day(place, day)
    fixed, pattern = _split_glob(place)
    if pattern:
        files = Files(fixed, options)
        infos = _own_files(files, files.glob(pattern))
    elif FORMATS.search(place):
        head, _, name = place.rpartition("/")
        files = Files(head or ("/" if place.startswith("/") else "."), options)
        infos = files.below(name)
        if any(info.path == name for info in infos):
            return files, tuple(info for info in infos if info.path == name)
    else:
        files = Files(place, options)
        infos = _own_files(files, files.below())
        if len(infos) == 1 and infos[0].path in ("", "."):
            raise InputError(not_a_log(place))
    return files, tuple(info for info in infos if _is_log(info.path))


def _split_glob(place: str) -> tuple[str, str]:
    """The folder of a location and the glob below it; no glob where the location has none.

    A folder of this machine whose name has a `[` is no glob if it exists.
    """
    steps = place.split("/")
    for number, step in enumerate(steps):
        literal = "/".join(steps[: number + 1])
        if _MAGIC.intersection(step) and not ("://" not in place and Path(literal).exists()):
            return "/".join(steps[:number]) or ("/" if number else "."), "/".join(steps[number:])
    return place, ""


def _own_files(files: Files, infos: Iterable[FileInfo]) -> list[FileInfo]:
    """The files of a local folder, with a mark on those that must not be opened: a file that is not
    regular may never end, and a link may lead to any file that this process can read.
    """
    folder = files.local
    if folder is None:
        return list(infos)
    home = os.path.realpath(folder)
    return [replace(info, refused=_refusal(home, folder / info.path)) for info in infos]


def _refusal(home: str, path: Path) -> str:
    try:
        regular = path.is_file()
    except OSError:  # a link to itself
        regular = False
    if not regular:
        return "not read: not a regular file"
    if path.is_symlink() or os.path.realpath(path.parent) != str(path.parent):
        leads_to = os.path.realpath(path)
        if not leads_to.startswith(home.rstrip("/") + "/"):
            return "not read: a link that leaves the folder of the logs"
    return ""


def is_among(path: Path, files: Files, infos: Iterable[FileInfo]) -> bool:
    """True when a local path is one of the files, so that writing to it would overwrite it."""
    folder = files.local
    return folder is not None and any(same_file(path, folder / info.path) for info in infos)


def _is_log(path: str) -> bool:
    # Spark and Hive mark unfinished and internal files so: _SUCCESS, _temporary/, .part.crc.
    hidden = any(part.startswith(("_", ".")) for part in PurePosixPath(path).parts)
    return bool(FORMATS.search(path)) and not hidden


def log_of(settings: Settings, files: Files, infos: tuple[FileInfo, ...]) -> LogSet:
    """Files in ragmetrics' own layout, with the limits of the settings."""
    limits = settings.limits
    return LogSet(files, infos, row_bytes=limits.row_bytes, unpacked_bytes=limits.unpacked_bytes)
