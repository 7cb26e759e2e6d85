"""`prune`: what of a store nobody needs any more.

    kind               what is removed                                    when
    nights             runs, scores, rows, quarantine, pages, what-ifs,  older than `keep`
                       lists of scores that were written back
    rows               logged rows and quarantine; scores and pages stay  older than `keep_rows`
    superseded runs    runs of a night that another run replaced          night older than 14 days
    unfinished runs    rows and scores of a run without a manifest        night older than 14 days
    gates              rows and scores of gates; their verdicts stay      older than `keep_rows`
    replies            files in which all replies of judges are old       older than `keep`

No run is removed that `store_references` knows to be needed. `removal` removes the rest. The
dashboard needs rows to write the pages of a night again; the pages that are written stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.judges import outdated_replies
from ragmetrics.pipeline.store_references import (
    RUN_FILE,
    References,
    RunKey,
    find_references,
    run_key,
)
from ragmetrics.storage import FileInfo, Runs, open_store

LEAST_KEEP = timedelta(days=60)
"""Rules compare a night with up to 60 nights before it."""
LEAST_ROWS = timedelta(days=14)
"""A night writes missing pages of the 14 nights before it."""
UNFINISHED = "unfinished runs"

_OF_DAY = re.compile(
    r"(?:dashboard/|calibrations/replies/dt=|whatif/dt=|write-back/sent/dt=|alerts/delivered/)"
    r"(?P<day>[0-9-]{10})(?:/|(?:\.\d+)?\.json$)"
)
# Manifests first: a run without one does not exist, so nothing reads the rest.
_ORDER = ("runs", "scores", "rows", "quarantine")


@dataclass(frozen=True)
class Retention:
    """How long things are kept. Raises InputError for less than ragmetrics itself needs."""

    keep: timedelta
    keep_rows: timedelta

    def __post_init__(self) -> None:
        for name, value, least in (
            ("--keep", self.keep, LEAST_KEEP),
            ("--keep-rows", self.keep_rows, LEAST_ROWS),
        ):
            if value < least:
                raise InputError(f"{name} {value.days}d: should be at least {least.days}d")


def _days(name: str, text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})d", text.strip())
    if match is None:
        raise InputError(f"{name} {text}: should be a number of days, such as 400d")
    return timedelta(days=int(match[1]))


@dataclass
class Prunable:
    """The files of one kind that can be removed."""

    kind: str
    files: list[FileInfo] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Size of the files in bytes."""
        return sum(info.size for info in self.files)


@dataclass(frozen=True)
class PrunePlan:
    """What can be removed from a store, and what is old and stays."""

    kinds: list[Prunable]
    """By kind, each in the order of removal."""
    needed: dict[str, str]
    """Old runs that stay, as `DATE RUN`, each with what refers to it."""
    at: datetime
    """When it was made."""

    @property
    def files(self) -> list[FileInfo]:
        """All files that can be removed."""
        return [info for one in self.kinds for info in one.files]

    def paths(self, kind: str) -> set[str]:
        """The paths of one kind."""
        return {info.path for one in self.kinds if one.kind == kind for info in one.files}


def find_prunable(settings: Settings, keep: str, keep_rows: str) -> PrunePlan:
    """What can be removed from the store of the settings, which keeps nights and replies for
    `keep`, such as `400d`, and logged rows for `keep_rows`. Raises as `plan_removal`.
    """
    retention = Retention(_days("--keep", keep), _days("--keep-rows", keep_rows))
    return plan_removal(settings, retention, datetime.now(UTC))


def plan_removal(settings: Settings, retention: Retention, now: datetime) -> PrunePlan:
    """What can be removed from the store of the settings.

    Raises InputError or StoreError where it cannot be known what is needed.
    """
    files = open_store(settings)
    listed = files.below()
    references = find_references(settings, files, listed, now)
    current = {RunKey(one.date, one.run) for one in Runs(files).outlines()}
    finished = {key for info in listed if (key := run_key(info.path)) and _is_manifest(info)}
    sorter = _Sorter(retention, now, references, current, finished)
    for info in listed:
        sorter.add(info)
    replies = Prunable("replies", list(outdated_replies(files, now - retention.keep)))
    kinds = [*sorter.kinds.values(), *([replies] if replies.files else [])]
    for kind in kinds:
        kind.files.sort(key=_removal_order)
    return PrunePlan(kinds, sorter.needed, now)


class _Sorter:
    """Sorts files into kinds that can be removed, and notes the runs that stay."""

    def __init__(
        self,
        retention: Retention,
        now: datetime,
        references: References,
        current: set[RunKey],
        finished: set[RunKey],
    ) -> None:
        self._retention, self._now, self._references = retention, now, references
        self._current, self._finished = current, finished
        self._days = {one.night for one in current}
        self._kept_days = {key.night for key in (*references.whole, *references.scores)}
        self.kinds: dict[str, Prunable] = {}
        self.needed: dict[str, str] = {}

    def add(self, info: FileInfo) -> None:
        """Sort one file."""
        key, kind = run_key(info.path), ""
        if key is None:
            kind = self._kind_of_day(info)
        elif kind := self._kind_of_gate(info) if key.gate else self._kind_of_run(info, key):
            rows = _is_rows(info) and kind == "rows"
            if why := self._references.why(key, rows=rows):
                self.needed.setdefault(f"{key.night} {key.run}", why)
                kind = "" if self._references.why(key, rows=True) else self._rows_alone(info, key)
        if kind:
            self.kinds.setdefault(kind, Prunable(kind)).files.append(info)

    def _kind_of_run(self, info: FileInfo, key: RunKey) -> str:
        """Why a file of a run can be removed if nothing refers to the run; empty if it is new."""
        age = self._now.date() - key.night
        if age > LEAST_ROWS and key not in self._finished:
            return UNFINISHED
        if age > self._retention.keep:
            return "nights"
        if age > LEAST_ROWS and key.night in self._days and key not in self._current:
            return "superseded runs"
        return self._rows_alone(info, key)

    def _rows_alone(self, info: FileInfo, key: RunKey) -> str:
        """`rows` for old rows of a run whose scores stay."""
        old = self._now.date() - key.night > self._retention.keep_rows
        return "rows" if _is_rows(info) and old else ""

    def _kind_of_gate(self, info: FileInfo) -> str:
        old = self._now.timestamp() - info.modified if info.modified is not None else 0.0
        return "gates" if old > self._retention.keep_rows.total_seconds() else ""

    def _kind_of_day(self, info: FileInfo) -> str:
        match = _OF_DAY.match(info.path)
        day = _day(match["day"]) if match else None
        if day is None or day in self._kept_days:
            return ""
        return "nights" if self._now.date() - day > self._retention.keep else ""


def _part(info: FileInfo) -> str:
    match = RUN_FILE.match(info.path)
    return match["kind"] if match else ""


def _is_rows(info: FileInfo) -> bool:
    return _part(info) in ("rows", "quarantine")


def _is_manifest(info: FileInfo) -> bool:
    return _part(info) == "runs"


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _removal_order(info: FileInfo) -> tuple[int, str, bool, str]:
    """Manifests first; of the rows of a run its record of staging, so that a run that starts again
    stages them again.
    """
    head, _, rest = info.path.partition("/")
    order = _ORDER.index(head) if head in _ORDER else len(_ORDER)
    folder, _, name = rest.rpartition("/")
    return order, folder, name != "staged.json", name
