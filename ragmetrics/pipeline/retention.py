"""`prune`: removes from a store what nobody needs any more.

    kind               what is removed                                    when
    nights             runs, scores, rows, quarantine, pages, what-ifs,  older than `keep`
                       lists of scores that were written back
    rows               logged rows and quarantine; scores and pages stay  older than `keep_rows`
    superseded runs    runs of a night that another run replaced          night older than 14 days
    unfinished runs    rows and scores of a run without a manifest        night older than 14 days
    gates              rows and scores of gates; their verdicts stay      older than `keep_rows`
    replies            files in which all replies of judges are old       older than `keep`

The dashboard needs rows to write the pages of a night again; the pages that are written stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from ragmetrics.errors import InputError
from ragmetrics.judges import outdated_replies
from ragmetrics.report import refresh_builds
from ragmetrics.storage import FileInfo, Files, outlines

LEAST_KEEP = timedelta(days=60)
"""Rules compare a night with up to 60 nights before it."""
LEAST_ROWS = timedelta(days=14)
"""A night writes missing pages of the 14 nights before it."""

_OF_RUN = re.compile(
    r"(?P<kind>runs|scores|rows|quarantine)/dt=(?P<day>[0-9-]{10})/run=(?P<run>[^/]+?)"
    r"(?:\.jsonl?)?(?:/|$)"
)
_OF_DAY = re.compile(
    r"(?:dashboard/|calibrations/replies/dt=|whatif/dt=|write-back/sent/dt=)(?P<day>[0-9-]{10})(?:/|\.json$)"
)
_OF_GATE = re.compile(r"gates/(?:rows|scores)/")
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


@dataclass
class Prunable:
    """The files of one kind that can be removed."""

    kind: str
    files: list[FileInfo] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(info.size for info in self.files)


def find_prunable(files: Files, retention: Retention, now: datetime) -> list[Prunable]:
    """The files that can be removed, by kind, in the order of their removal."""
    current = {(one.date, one.run) for one in outlines(files)}
    nights = {day for day, _ in current}
    listed = files.below()
    finished = {(run[1], run[2]) for info in listed if (run := _run_of(info)) and run[0] == "runs"}
    found: dict[str, Prunable] = {}
    for info in listed:
        kind = ""
        if run := _run_of(info):
            part, day, name = run
            is_rows = part in ("rows", "quarantine")
            kind = _kind_of_run(
                is_rows,
                now.date() - day,
                retention,
                superseded=day in nights and (day, name) not in current,
                finished=(day, name) in finished,
            )
        elif match := _OF_DAY.match(info.path):
            kind = "nights" if _age(match["day"], now) > retention.keep else ""
        elif _OF_GATE.match(info.path):
            old = (now.timestamp() - info.modified) if info.modified is not None else 0.0
            kind = "gates" if old > retention.keep_rows.total_seconds() else ""
        if kind:
            found.setdefault(kind, Prunable(kind)).files.append(info)
    replies = Prunable("replies", list(outdated_replies(files, now - retention.keep)))
    everything = [*found.values(), *([replies] if replies.files else [])]
    for one in everything:
        one.files.sort(key=_removal_order)
    return everything


def prune(files: Files, found: Sequence[Prunable], tell: Callable[[int, int], None]) -> None:
    """Remove the files, and write the overview again. `tell` receives the number of removed files
    and of all files. A repeated call continues. Raises StoreError.
    """
    todo = [info.path for one in found for info in one.files]
    for number, path in enumerate(todo, 1):
        files.remove(path)
        tell(number, len(todo))
    if todo:
        refresh_builds(files)


def _kind_of_run(
    is_rows: bool, age: timedelta, retention: Retention, *, superseded: bool, finished: bool
) -> str:
    """Why a file of a run can be removed; empty where it is needed."""
    if age > retention.keep:
        return "nights"
    if age > LEAST_ROWS and not finished:
        return "unfinished runs"
    if age > LEAST_ROWS and superseded:
        return "superseded runs"
    return "rows" if is_rows and age > retention.keep_rows else ""


def _run_of(info: FileInfo) -> tuple[str, date, str] | None:
    """The kind, night and run of a file; None for other files."""
    match = _OF_RUN.match(info.path)
    if match is None:
        return None
    try:
        return match["kind"], date.fromisoformat(match["day"]), match["run"]
    except ValueError:
        return None


def _age(day: str, now: datetime) -> timedelta:
    try:
        return now.date() - date.fromisoformat(day)
    except ValueError:
        return timedelta()


def _removal_order(info: FileInfo) -> tuple[int, str]:
    head = info.path.partition("/")[0]
    return _ORDER.index(head) if head in _ORDER else len(_ORDER), info.path
