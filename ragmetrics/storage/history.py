"""History: the nights so far. One run speaks for a night: the one that looked for its files last,
whichever ended last.

runs/dt=DATE/run=ID.json
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from ragmetrics.model import Manifest
from ragmetrics.storage.files import FileInfo, Files
from ragmetrics.storage.manifests import RUNS, by_date, path_of, read_manifests, run_name
from ragmetrics.storage.run_index import RunIndex
from ragmetrics.storage.shards import RunRef

SKEW = timedelta(minutes=15)
"""By how much clocks may differ: S3 turns away who is further off."""


def save_manifest(files: Files, manifest: Manifest) -> None:
    """Write a run's manifest: from now on the run exists."""
    files.write(path_of(ref_of(manifest)), manifest.model_dump_json(indent=1).encode())


def find_manifest(files: Files, ref: RunRef) -> Manifest | None:
    """The manifest of a run, if it was finished."""
    return read_manifests(files, [path_of(ref)])[0]


def named_run(files: Files, run: str) -> Manifest | None:
    """The manifest of a run of any night by its name, whether or not it speaks for its night.

    None where there is none, or none that can be read.
    """
    paths = [info.path for info in files.below(RUNS) if run_name(info.path) == run]
    return next(iter(read_manifests(files, paths[:1])), None)


def nights(files: Files, *, before: date | None = None, last: int | None = None) -> list[Manifest]:
    """One manifest per night, oldest first; only nights `before` a date, only the `last` ones.

    A manifest that cannot be read is as good as none, and logged: its night can be run again.
    """
    chosen = _chosen(files.below(RUNS), before, last)
    return _speaking(_read(files, [info for own in chosen for info in own]))


def outlines(
    files: Files,
    *,
    before: date | None = None,
    last: int | None = None,
    months: RunIndex | None = None,
    runs: Sequence[FileInfo] | None = None,
) -> list[Manifest]:
    """As `nights`, but in outline, as `months` says: for what looks at many nights.

    `months` is what the caller has read of them so far, `runs` a listing that is newer than theirs.
    """
    known = months or RunIndex(files)
    chosen = _chosen(known.listed() if runs is None else runs, before, last)
    return _speaking(known.outlines([info for own in chosen for info in own]))


def in_full(files: Files, found: Sequence[Manifest]) -> list[Manifest]:
    """The manifests of outlines; an outline stays as it is where its manifest is gone."""
    whole = read_manifests(files, [path_of(ref_of(one)) for one in found])
    return [full or one for full, one in zip(whole, found, strict=True)]


def run_of(files: Files, day: date, without: str = "") -> Manifest | None:
    """The run that speaks for a night, or would `without` another."""
    return max(runs_of(files, day, without), key=seen, default=None)


def runs_of(files: Files, day: date, without: str = "") -> list[Manifest]:
    """All runs of a night, `without` one of them."""
    infos = files.below(f"{RUNS}/dt={day.isoformat()}")
    return _read(files, [one for one in infos if run_name(one.path) not in (None, without)])


def seen(manifest: Manifest) -> tuple[bool, datetime, datetime, str]:
    """By what of two runs of a night one speaks for it: the greater one. A run whose clock was
    ahead comes after all others.
    """
    ranked = manifest.ranked_at or said_seen(manifest)
    return not is_ahead(manifest), ranked, manifest.finished_at, manifest.run


def said_seen(manifest: Manifest) -> datetime:
    """When a run says that it looked for the night's files."""
    return manifest.seen_at or manifest.finished_at


def is_ahead(manifest: Manifest) -> bool:
    """Whether that moment lies further in the future than clocks may differ."""
    return said_seen(manifest) > datetime.now(UTC) + SKEW


def trailing_nights(earlier: Sequence[Manifest], day: date, count: int) -> list[Manifest]:
    """Of earlier nights, those of the `count` days before a date."""
    return [night for night in earlier if day - timedelta(days=count) <= night.date < day]


def ref_of(manifest: Manifest) -> RunRef:
    """The reference to a manifest's run."""
    return RunRef(date=manifest.date, run=manifest.run, shards=manifest.shards)


def _chosen(
    infos: Iterable[FileInfo], before: date | None, last: int | None
) -> list[list[FileInfo]]:
    """The manifests of each night, oldest night first."""
    nights = [own for day, own in by_date(infos).items() if before is None or day < before]
    return nights[-last:] if last else nights


def _read(files: Files, infos: Sequence[FileInfo]) -> list[Manifest]:
    # One may be gone since the listing.
    return [one for one in read_manifests(files, [info.path for info in infos]) if one]


def _speaking(runs: Iterable[Manifest]) -> list[Manifest]:
    """Of each night the run that speaks for it."""
    found: dict[date, Manifest] = {}
    for one in runs:
        if one.date not in found or seen(one) > seen(found[one.date]):
            found[one.date] = one
    return list(found.values())
