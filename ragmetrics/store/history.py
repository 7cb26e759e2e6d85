"""History: the manifests of the nights so far. One run speaks for a night: the one that looked
for its files last, whichever ended last.

runs/dt=DATE/run=ID.json
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from pydantic import ValidationError

from ragmetrics.records import Manifest
from ragmetrics.rows import explain
from ragmetrics.store.files import Files
from ragmetrics.store.parts import RunRef

log = logging.getLogger(__name__)
_RUN = re.compile(r"^runs/dt=(\d{4}-\d{2}-\d{2})/run=([^/]+)\.json$")


def save_manifest(files: Files, manifest: Manifest) -> None:
    """Write a run's manifest: from now on the run exists."""
    path = f"runs/dt={manifest.date.isoformat()}/run={manifest.run}.json"
    files.write(path, manifest.model_dump_json(indent=1).encode())


def find_manifest(files: Files, ref: RunRef) -> Manifest | None:
    """The manifest of a run, if it was finished."""
    data = files.find(f"{ref.folder('runs')}.json")
    return None if data is None else _parse(files, f"{ref.folder('runs')}.json", data)


def named_run(files: Files, run: str) -> Manifest | None:
    """The manifest of a run of any night by its name, whether or not it speaks for its night.

    None where there is none, or none that can be read.
    """
    matches = (_RUN.match(info.path) for info in files.below("runs"))
    path = next((match[0] for match in matches if match and match[2] == run), None)
    data = files.find(path) if path else None
    return None if path is None or data is None else _parse(files, path, data)


def nights(files: Files, *, before: date | None = None, last: int | None = None) -> list[Manifest]:
    """One manifest per night, oldest first; only nights `before` a date, only the `last` ones.

    A manifest that cannot be read is as good as none, and logged: its night can be run again.
    """
    by_date: dict[date, list[str]] = {}
    for info in files.below("runs"):
        if match := _RUN.match(info.path):
            day = date.fromisoformat(match[1])
            if before is None or day < before:
                by_date.setdefault(day, []).append(info.path)
    chosen = sorted(by_date)[-last:] if last else sorted(by_date)
    return [one for day in chosen if (one := _newest(files, by_date[day]))]


def run_of(files: Files, day: date, without: str = "") -> Manifest | None:
    """The run that speaks for a night, or would `without` another."""
    paths = [
        info.path
        for info in files.below(f"runs/dt={day.isoformat()}")
        if (match := _RUN.match(info.path)) and match[2] != without
    ]
    return _newest(files, paths)


def seen(manifest: Manifest) -> tuple[datetime, datetime, str]:
    """By what of two runs of a night one speaks for it: the greater one."""
    return manifest.seen_at or manifest.finished_at, manifest.finished_at, manifest.run


def trailing(earlier: Sequence[Manifest], day: date, count: int) -> list[Manifest]:
    """Of earlier nights, those of the `count` days before a date."""
    return [night for night in earlier if day - timedelta(days=count) <= night.date < day]


def ref_of(manifest: Manifest) -> RunRef:
    """The reference to a manifest's run."""
    return RunRef(date=manifest.date, run=manifest.run, shards=manifest.shards)


def _newest(files: Files, paths: Sequence[str]) -> Manifest | None:
    # One may be gone since the listing.
    found = ((path, files.find(path)) for path in paths)
    manifests = [_parse(files, path, data) for path, data in found if data is not None]
    readable = (manifest for manifest in manifests if manifest)
    return max(readable, key=seen, default=None)


def _parse(files: Files, path: str, data: bytes) -> Manifest | None:
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        log.error("%s is no manifest, its run is left out: %s", files.uri(path), explain(error))
        return None
