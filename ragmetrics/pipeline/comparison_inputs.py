"""The sides of a comparison as they are named: logs, a night, a run, an index build, a Result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ragmetrics.comparison import find_build_log, find_build_nights
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import NightInputs, inputs_of
from ragmetrics.model import JudgeInfo, Manifest, is_name
from ragmetrics.pipeline.evaluation import Result
from ragmetrics.scoring import judge_info, metric_fingerprints
from ragmetrics.storage import Files, find_manifest, named_run, open_store, run_of

BUILD = "build:"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_RUN = re.compile(r"[0-9a-f]{10}(-\d+)?")
_PLACE = re.compile(r"[/\\.*?\[]")


@dataclass(frozen=True)
class Logs:
    """Rows that are scored for the comparison."""

    name: str
    inputs: NightInputs

    def places(self) -> list[str]:
        """Where its files are."""
        return [one.files.uri(info.path) for one in self.inputs.logs for info in one.infos]


@dataclass(frozen=True)
class Stored:
    """Scores that there are: of a run, or of the nights that an index build served."""

    name: str
    files: Files
    nights: Sequence[Manifest]
    """The newest first."""
    build: str | None = None
    """The build whose rows count; None: all do."""

    def places(self) -> list[str]:
        """Where its scores are, of which rows."""
        runs = (f"{one.date}/{one.run}" for one in self.nights)
        return [self.files.uri(), *runs, self.build or ""]


Found = Logs | Stored


def find_side(settings: Settings, given: Any, folder: Path) -> Found:
    """What the user means by one side; rows of this process are written into a folder.

    A text is `build:NAME`, a date as 2026-11-19, the id of a run, or else a place of logs; `./`
    before a name says that it is a place. Anything else is what `evaluate` takes, or a Result of
    it. Raises InputError where there is no such thing.
    """
    if isinstance(given, Result):
        return Stored("rows that were scored before", given.files, [given.manifest])
    if isinstance(given, date):
        return _night(settings, given.date() if isinstance(given, datetime) else given)
    if not isinstance(given, str):
        return _logs(settings, given, folder)
    if given.startswith(BUILD):
        return _build(settings, given.removeprefix(BUILD))
    if _DAY.fullmatch(given):
        return _night(settings, _day(given))
    if _RUN.fullmatch(given) and not Path(given).exists():
        return _run(settings, given)
    if not _PLACE.search(given) and not Path(given).exists():
        raise InputError(
            f"{given}: neither a log, nor a date as 2026-11-19, nor the id of a run; an index "
            f"build is named {BUILD}{given}"
        )
    return _logs(settings, given, folder)


def fingerprints(settings: Settings, found: Found) -> Mapping[str, str]:
    """By metric, in what way it was scored, or would be."""
    if isinstance(found, Logs):
        return metric_fingerprints(settings)
    return {
        one.metric: one.fingerprint for night in reversed(found.nights) for one in night.metrics
    }


def judge_of(settings: Settings, found: Found) -> JudgeInfo:
    """Who judged a side, or would."""
    return judge_info(settings)[0] if isinstance(found, Logs) else found.nights[0].judge


def _logs(settings: Settings, given: Any, folder: Path) -> Logs:
    folder.mkdir(exist_ok=True)
    places = [given] if isinstance(given, str | Path) else given
    is_places = isinstance(places, list | tuple) and all(isinstance(p, str | Path) for p in places)
    name = ", ".join(map(str, places)) if is_places else "rows"
    return Logs(name, inputs_of(settings, given, folder, None))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text}: there is no such day; a folder of that name is ./{text}"
        ) from None


def _night(settings: Settings, day: date) -> Stored:
    files = open_store(settings)
    manifest = run_of(files, day)
    if manifest is None:
        raise InputError(
            f"{day}: no run of that night in {files.uri()}; --settings names the store"
        )
    return Stored(f"night {day} (run {manifest.run})", files, [manifest])


def _run(settings: Settings, run: str) -> Stored:
    files = open_store(settings)
    manifest = named_run(files, run)
    if manifest is None:
        raise InputError(f"{run}: no such run in {files.uri()}; --settings names the store")
    return Stored(f"run {run} (night {manifest.date})", files, [manifest])


def _build(settings: Settings, build: str) -> Found:
    if not is_name(build):
        raise InputError(f"{BUILD}{build}: no name of an index build")
    log = find_build_log(settings, build)
    if log.inputs:
        return Logs(f"build {build} ({log.place})", log.inputs)
    files, side = open_store(settings), find_build_nights(settings, settings, build)
    found = (find_manifest(files, ref) for ref in side.nights) if side else ()
    nights = [night for night in found if night]
    if side is None or not nights:
        raise InputError(
            f"build {build}: {log.problem}, and no night in {files.uri()} has rows of it that were "
            "judged as the settings say"
        )
    return Stored(f"build {build} ({side.logs})", files, nights, build)
