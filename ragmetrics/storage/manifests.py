"""Manifests as files: `runs/dt=DATE/run=ID.json`, known by their names and read many at a time."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from datetime import date

from pydantic import ValidationError

from ragmetrics.model import Manifest, explain_validation_error
from ragmetrics.storage.files import FileInfo, Files
from ragmetrics.storage.parallel import find_all
from ragmetrics.storage.shards import RunRef

log = logging.getLogger(__name__)
RUNS = "runs"
_RUN = re.compile(r"^runs/dt=(\d{4}-\d{2}-\d{2})/run=([^/]+)\.json$")


def path_of(ref: RunRef) -> str:
    """Where a run's manifest is."""
    return f"{ref.folder(RUNS)}.json"


def run_name(path: str) -> str | None:
    """The run whose manifest a file is; None of a file that is none."""
    match = _RUN.match(path)
    return match[2] if match else None


def by_date(infos: Iterable[FileInfo]) -> dict[date, list[FileInfo]]:
    """The manifests among some files by their nights, oldest first."""
    found: dict[date, list[FileInfo]] = {}
    for info in infos:
        if (match := _RUN.match(info.path)) and (day := _day(match[1])):
            found.setdefault(day, []).append(info)
    return dict(sorted(found.items()))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # as 2026-13-45, which somebody has put there
        return None


def read_manifests(files: Files, paths: Sequence[str]) -> list[Manifest | None]:
    """The manifests in these files, in order; None where there is none, or none that can be read.

    That one cannot be read is logged: its night can be run again.
    """
    found = zip(paths, find_all(files, paths), strict=True)
    return [None if data is None else _parse(files, path, data) for path, data in found]


def _parse(files: Files, path: str, data: bytes) -> Manifest | None:
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        log.error(
            "%s is no manifest, its run is left out: %s",
            files.uri(path),
            explain_validation_error(error),
        )
        return None
