"""Reading logs: any of our formats, streamed, each bad row told apart and none of the good lost.

Formats by name: `.jsonl` and `.ndjson` (plain, `.gz`, `.zst`), `.csv` (the same), `.parquet`.
A place is a file, a folder, a glob, or a template with `{date}`; local or in a bucket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePosixPath
from typing import Any

from ragmetrics.errors import InputError, StoreError
from ragmetrics.rows import BadRow, LogRow, Rejected, read_row
from ragmetrics.store.files import FileInfo, Files
from ragmetrics.store.formats import BROKEN, ENDINGS, EXCERPT, FORMATS, read_records

_DATE = re.compile(r"\{date(?::([^}]+))?\}")
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class LogSet:
    """The files of one place, and how their rows are read."""

    files: Files
    infos: tuple[FileInfo, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    row_bytes: int = 10_000_000
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a row that lacks a field is read with."""

    def read(self) -> Iterator[LogRow | Rejected]:
        """All rows in the order of file names and lines; bad ones as Rejected, with the reason.

        A file that is cut short or broken gives the rows before the break, then one Rejected
        with `whole_file`.
        """
        for info in self.infos:
            yield from self._read_file(info)

    def _read_file(self, info: FileInfo) -> Iterator[LogRow | Rejected]:
        number = 0
        try:
            with self.files.open(info.path) as file:
                for number, record in read_records(info.path, file, self.row_bytes, self.columns):
                    yield self._row(info.path, number, record)
        except BROKEN as error:
            reason = f"the file is cut short or broken after row {number}: {error}"
            yield Rejected(info.path, number + 1, reason, whole_file=True)
        except StoreError as error:
            yield Rejected(info.path, number + 1, str(error), whole_file=True)

    def _row(self, path: str, number: int, record: Any) -> LogRow | Rejected:
        try:
            if isinstance(record, BadRow):
                raise record
            data = map_columns(record, self.columns) if self.columns else record
            if self.defaults and isinstance(data, Mapping):
                data = {**self.defaults, **data}
            return read_row(data, f"{path}:{number}")
        except BadRow as error:
            excerpt = "" if isinstance(record, BadRow) else repr(record)[:EXCERPT]
            return Rejected(path, number, str(error), error.excerpt or excerpt)


def find_logs(
    place: str, options: Mapping[str, Any] | None = None, *, day: date | None = None
) -> tuple[Files, tuple[FileInfo, ...]]:
    """The log files at a place, by name. Raises InputError, or StoreError for a bucket's refusal.

    `{date}` stands for the day as 2026-11-19, `{date:%Y/%m/%d}` for any other form of it.
    No file at all is an empty tuple: whether that is an error is for the caller to say.
    """
    if day is not None:
        place = of_day(place, day)
    if any(sign in place for sign in _MAGIC):
        fixed = re.split(r"[*?\[]", place, maxsplit=1)[0].rpartition("/")[0] or "."
        files = Files(fixed, options)
        pattern = place[len(fixed) :].lstrip("/") if fixed != "." else place
        found = files.glob(pattern)
    elif FORMATS.search(place):
        head, _, name = place.rpartition("/")
        files = Files(head or ("/" if place.startswith("/") else "."), options)
        found = files.below(name)
        if any(info.path == name for info in found):
            return files, tuple(info for info in found if info.path == name)
    else:
        files = Files(place, options)
        found = files.below()
        if len(found) == 1 and found[0].path in ("", "."):
            raise InputError(f"{place}: not a log; names end in {ENDINGS}")
    return files, tuple(info for info in found if _is_log(info.path))


def of_day(place: str, day: date) -> str:
    """A place with the date filled in."""
    return _DATE.sub(lambda match: day.strftime(match[1] or "%Y-%m-%d"), place)


def map_columns(record: Any, columns: Mapping[str, str]) -> Any:
    """Lay a record out as our fields: `{our field: dotted path in the record}`.

    Fields that are not mapped keep their own name. `tags.NAME` fills one tag.
    """
    if not isinstance(record, Mapping):
        return record
    mapped: dict[str, Any] = dict(record)
    tags = dict(record["tags"]) if isinstance(record.get("tags"), Mapping) else {}
    for name, path in columns.items():
        value = _dig(record, path)
        if name.startswith("tags."):
            tags[name.removeprefix("tags.")] = value
        else:
            mapped[name] = value
    return {**mapped, "tags": tags} if tags else mapped


def _dig(record: Any, path: str) -> Any:
    """Follow a dotted path; a list on the way is followed item by item."""
    if isinstance(record, Mapping) and path in record:
        return record[path]
    value = record
    for i, part in enumerate(parts := path.split(".")):
        if isinstance(value, list) and not part.isdecimal():
            return [_dig(item, ".".join(parts[i:])) for item in value]
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _is_log(path: str) -> bool:
    # Spark and Hive hide what is unfinished or theirs: _SUCCESS, _temporary/, .part.crc.
    hidden = any(part.startswith(("_", ".")) for part in PurePosixPath(path).parts)
    return bool(FORMATS.search(path)) and not hidden
