"""One side of a comparison: a log, a night, a run, an index build, or a Result."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ragmetrics.comparison import (
    find_build_log,
    find_build_nights,
)
from ragmetrics.config import Settings, night_span
from ragmetrics.errors import InputError
from ragmetrics.logs import NightInputs, inputs_of
from ragmetrics.pipeline.evaluation import Result
from ragmetrics.records import (
    Manifest,
    build_words,
    is_name,
)
from ragmetrics.storage import Files, Runs, open_store

BUILD = "build:"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_RUN = re.compile(r"[0-9a-f]{10}(-\d+)?")
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_PLACE = re.compile(r"[/\\.*?\[]")


@dataclass(frozen=True)
class Logs:
    """Rows that are scored for the comparison."""

    name: str
    inputs: NightInputs

    def places(self) -> list[str]:
        """The addresses of its files; of a log that is split, with the times of its rows."""
        return [
            f"{log.files.uri(info.path)}{log.between or ''}"
            for log in self.inputs.logs
            for info in log.infos
        ]


@dataclass(frozen=True)
class Stored:
    """Stored scores of a run, or of the nights that an index build served."""

    name: str
    files: Files
    nights: Sequence[Manifest]
    """Newest first."""
    build: str | None = None
    """The build whose rows are used; None: all rows."""

    def places(self) -> list[str]:
        """Store, runs and build, which identify its scores."""
        runs = (f"{night.date}/{night.run}" for night in self.nights)
        return [self.files.uri(), *runs, self.build or ""]


Found = Logs | Stored


def find_stored(settings: Settings, side: str) -> Stored:
    """Find a night, a run or the nights of an index build. No log is read, wherever it may be.

    Raises InputError when the store has none of that name.
    """
    if side.startswith(BUILD) and is_name(build := side.removeprefix(BUILD)):
        return _nights_of(settings, build, "its log is not read")
    if _DAY.fullmatch(side):
        return _night(settings, _day(side))
    if _RUN.fullmatch(side):
        return _run(settings, side)
    raise InputError(f"not a date such as 2026-11-19, the id of a run, or {BUILD}NAME: {side!r}")


def find_side(settings: Settings, side: Any, folder: Path) -> Found:
    """Find one side of a comparison. Rows in memory are written into a folder.

    A text is `build:NAME`, a date such as 2026-11-19, the id of a run, or a location of logs. With
    `./` in front it is always a location. Any other value is a Result, or an input of `evaluate`.
    Raises InputError when the side is not found.
    """
    if isinstance(side, Result):
        return Stored("rows that were scored before", side.files, [side.manifest])
    if isinstance(side, date):
        return _night(settings, side.date() if isinstance(side, datetime) else side)
    if not isinstance(side, str):
        return _logs(settings, side, folder)
    if side.startswith(BUILD):
        return _build(settings, side.removeprefix(BUILD))
    if _DAY.fullmatch(side):
        return _night(settings, _day(side))
    if _RUN.fullmatch(side) and not Path(side).exists():
        return _run(settings, side)
    if not _PLACE.search(side) and not Path(side).exists():
        raise InputError(
            f"{side}: not a log, a date such as 2026-11-19, or the id of a run; write "
            f"{BUILD}{side} for an index build"
        )
    return _logs(settings, side, folder)


def split_log(settings: Settings, log: Any, day: date, folder: Path) -> tuple[Logs, Logs]:
    """A log of many days as two sides: the rows before a day, in `time_zone` or in UTC, and those
    from it on."""
    whole = _logs(settings, log, folder)
    moment = night_span(day, settings.time_zone or "UTC")[0]
    spans = {"before": (_FIRST, moment), "from": (moment, _LAST)}
    before, after = (
        Logs(
            f"{whole.name} {word} {day}",
            replace(
                whole.inputs,
                logs=tuple(replace(log, between=span) for log in whole.inputs.logs),
            ),
        )
        for word, span in spans.items()
    )
    return before, after


def _logs(settings: Settings, rows: Any, folder: Path) -> Logs:
    folder.mkdir(exist_ok=True)
    places = [rows] if isinstance(rows, str | Path) else rows
    is_places = isinstance(places, list | tuple) and all(isinstance(p, str | Path) for p in places)
    name = ", ".join(map(str, places)) if is_places else "rows"
    return Logs(name, inputs_of(settings, rows, folder, None))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text}: not a valid date; write ./{text} for a folder of that name"
        ) from None


def _night(settings: Settings, day: date) -> Stored:
    files = open_store(settings)
    manifest = Runs(files).current(day)
    if manifest is None:
        raise InputError(
            f"{day}: no run of that night in {files.uri()}; choose the store with --settings"
        )
    return Stored(f"night {day} (run {manifest.run})", files, [manifest])


def _run(settings: Settings, run: str) -> Stored:
    files = open_store(settings)
    manifest = Runs(files).named(run)
    if manifest is None:
        raise InputError(f"{run}: no such run in {files.uri()}; choose the store with --settings")
    return Stored(f"run {run} (night {manifest.date})", files, [manifest])


def _build(settings: Settings, build: str) -> Found:
    if not is_name(build):
        raise InputError(f"{BUILD}{build}: not a valid name of an index build")
    log = find_build_log(settings, build)
    if log.inputs:
        return Logs(f"{build_words(build)} ({log.place})", log.inputs)
    return _nights_of(settings, build, log.problem)


def _nights_of(settings: Settings, build: str, problem: str) -> Stored:
    """The nights that a build served; `problem` says why there is no log of it."""
    files, side = open_store(settings), find_build_nights(settings, settings, build)
    manifests = (Runs(files).find(ref) for ref in side.nights) if side else ()
    nights = [night for night in manifests if night]
    if side is None or not nights:
        raise InputError(
            f"build {build}: {problem}, and no night in {files.uri()} has rows of it that were "
            "judged with these settings"
        )
    return Stored(f"{build_words(build)} ({side.logs})", files, nights, build)
