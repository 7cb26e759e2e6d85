"""Reads manifests (`runs/dt=DATE/run=ID.json`), many at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

from ragmetrics.model import Manifest
from ragmetrics.storage.files import FileInfo, Files
from ragmetrics.storage.json_records import parse_record
from ragmetrics.storage.parallel import find_all
from ragmetrics.storage.shards import RunRef

RUNS = "runs"
_RUN = re.compile(r"^runs/dt=(\d{4}-\d{2}-\d{2})/run=([^/]+)\.json$")


def path_of(ref: RunRef) -> str:
    """The path of a run's manifest."""
    return f"{ref.folder(RUNS)}.json"


def run_name(path: str) -> str | None:
    """The name of the run whose manifest a file is; None for any other file."""
    match = _RUN.match(path)
    return match[2] if match else None


def by_date(infos: Iterable[FileInfo]) -> dict[date, list[FileInfo]]:
    """The manifests among some files, by night, oldest first."""
    found: dict[date, list[FileInfo]] = {}
    for info in infos:
        if (match := _RUN.match(info.path)) and (day := _day(match[1])):
            found.setdefault(day, []).append(info)
    return dict(sorted(found.items()))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # such as 2026-13-45
        return None


def read_manifests(files: Files, paths: Sequence[str]) -> list[Manifest | None]:
    """The manifests in these files, in order; None for one that is missing or cannot be read.

    The latter is logged; its night can be run again.
    """
    found = zip(paths, find_all(files, paths), strict=True)
    problem = "not a manifest, its run is left out"
    return [parse_record(files, path, data, Manifest, problem) for path, data in found]
