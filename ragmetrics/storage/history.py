"""The history of nights, and which run of a night is the current one: the one that listed its log
files last.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from ragmetrics.errors import InputError
from ragmetrics.records import UNSETTLED, Manifest
from ragmetrics.storage.file_systems import FileInfo
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import save_record
from ragmetrics.storage.run_index import RUNS, RunIndex, RunRef, by_date, read_manifests, run_name

SKEW = timedelta(minutes=15)
"""Largest difference of clocks. S3 rejects requests beyond it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Runs:
    """The finished runs of a store, and its nights: of each the current run."""

    files: Files

    def save(self, manifest: Manifest) -> None:
        """Write a run's manifest. From then on the run exists."""
        save_record(self.files, RunRef.of(manifest).manifest, manifest)

    def find(self, ref: RunRef) -> Manifest | None:
        """The manifest of a run, if it was finished."""
        return read_manifests(self.files, [ref.manifest])[0]

    def named(self, run: str) -> Manifest | None:
        """The manifest of a run by its name. The run need not be the current one of its night.

        None if it is missing or cannot be read.
        """
        paths = [info.path for info in self.files.below(RUNS) if run_name(info.path) == run]
        return next(iter(read_manifests(self.files, paths[:1])), None)

    def nights(self, *, before: date | None = None, last: int | None = None) -> list[Manifest]:
        """One manifest per night, oldest first; only nights `before` a date, only the `last` ones.

        A manifest that cannot be read is logged and left out; its night can be run again.
        """
        chosen = _chosen(self.files.below(RUNS), before, last)
        return _current(_read(self.files, [info for infos in chosen for info in infos]))

    def up_to(self, night: date | None, last: int) -> list[Manifest]:
        """The last nights up to one, oldest first; None: up to the newest. Raises InputError where
        the store has no such night.
        """
        nights = self.nights(before=night + timedelta(days=1) if night else None, last=last)
        if night and not (nights and nights[-1].date == night):
            raise InputError(f"the store has no night {night}")
        return nights

    def outlines(
        self,
        *,
        before: date | None = None,
        last: int | None = None,
        months: RunIndex | None = None,
        runs: Sequence[FileInfo] | None = None,
    ) -> list[Manifest]:
        """Like `nights`, but with outlines from the run index: for code that reads many nights.

        `months` is an index that was used before. `runs` is a newer listing than its own.
        """
        known = months or RunIndex(self.files)
        chosen = _chosen(known.listed() if runs is None else runs, before, last)
        return _current(known.outlines([info for infos in chosen for info in infos]))

    def later(self, day: date, months: RunIndex | None = None) -> list[Manifest]:
        """Outlines of the nights after a date, oldest first; `months` as in `outlines`."""
        known = months or RunIndex(self.files)
        nights = by_date(known.listed())
        later = [info for night, infos in nights.items() if night > day for info in infos]
        return _current(known.outlines(later))

    def in_full(self, outlines: Sequence[Manifest]) -> list[Manifest]:
        """The full manifests of outlines. If a manifest is gone, its outline is returned."""
        manifests = read_manifests(
            self.files, [RunRef.of(outline).manifest for outline in outlines]
        )
        return [full or outline for full, outline in zip(manifests, outlines, strict=True)]

    def current(self, day: date, without: str = "") -> Manifest | None:
        """The current run of a night, optionally `without` one run."""
        return max(self.of(day, without), key=seen, default=None)

    def of(self, day: date, without: str = "") -> list[Manifest]:
        """All runs of a night, optionally `without` one run."""
        infos = self.files.below(f"{RUNS}/dt={day.isoformat()}")
        return _read(
            self.files, [one for one in infos if run_name(one.path) not in (None, without)]
        )

    def superseding(self, manifest: Manifest) -> tuple[Manifest, Manifest | None]:
        """The manifest with a note on the run it supersedes, and that run.

        A run supersedes nothing if another run listed the log files later.
        """
        others = self.of(manifest.date, without=manifest.run)
        if not others:
            return manifest, None
        manifest = _rank_above(manifest, others)
        other = max(others, key=seen)
        if seen(other) > seen(manifest):
            log.warning(
                "run %s is not the current run of the night of %s: run %s listed its files later",
                manifest.run,
                manifest.date,
                other.run,
            )
            return manifest, None
        difference = differing(manifest, other)
        if is_ahead(other):
            difference += f"; its clock was ahead: it showed {said_seen(other):%Y-%m-%d %H:%M} UTC"
        log.info("run %s supersedes run %s: %s", manifest.run, other.run, difference)
        return manifest.model_copy(
            update={"supersedes": other.run, "difference": difference}
        ), other

    def is_current(self, manifest: Manifest) -> bool:
        """True when this run is the current run of its night."""
        other = self.current(manifest.date, without=manifest.run)
        return other is None or seen(other) <= seen(manifest)


def seen(manifest: Manifest) -> tuple[bool, datetime, datetime, str]:
    """Sort key of the runs of a night: the greatest is the current run. A run whose clock was ahead
    ranks below all others.
    """
    ranked = manifest.ranked_at or said_seen(manifest)
    return not is_ahead(manifest), ranked, manifest.finished_at, manifest.run


def said_seen(manifest: Manifest) -> datetime:
    """When a run listed the log files, by its own clock."""
    return manifest.seen_at or manifest.finished_at


def is_ahead(manifest: Manifest) -> bool:
    """True when a run listed its log files in the future, by more than clocks may differ."""
    return said_seen(manifest) > datetime.now(UTC) + SKEW


def trailing_nights(earlier: Sequence[Manifest], day: date, count: int) -> list[Manifest]:
    """The nights of the `count` days before a date."""
    return [night for night in earlier if day - timedelta(days=count) <= night.date < day]


def _chosen(
    infos: Iterable[FileInfo], before: date | None, last: int | None
) -> list[list[FileInfo]]:
    """The manifests of each night, oldest night first."""
    nights = [group for day, group in by_date(infos).items() if before is None or day < before]
    return nights[-last:] if last else nights


def _read(files: Files, infos: Sequence[FileInfo]) -> list[Manifest]:
    # A file may have been removed since the listing.
    return [one for one in read_manifests(files, [info.path for info in infos]) if one]


def _current(runs: Iterable[Manifest]) -> list[Manifest]:
    """The current run of each night."""
    current: dict[date, Manifest] = {}
    for run in runs:
        if run.date not in current or seen(run) > seen(current[run.date]):
            current[run.date] = run
    return list(current.values())


def _rank_above(manifest: Manifest, others: Sequence[Manifest]) -> Manifest:
    """The run with a rank above runs whose clocks were ahead, also when their time has come."""
    if is_ahead(manifest):
        return manifest
    for other in filter(is_ahead, others):
        log.warning(
            "run %s of the night of %s listed its files at %s, which is in the future; its "
            "clock was wrong, and it is not the current run of the night",
            other.run,
            other.date,
            said_seen(other).isoformat(),
        )
    replaced = [
        run.ranked_at or said_seen(run)
        for run in others
        if is_ahead(run) or (run.ranked_at and said_seen(run) < said_seen(manifest))
    ]
    if not replaced:
        return manifest
    return manifest.model_copy(update={"ranked_at": max(replaced) + timedelta(microseconds=1)})


def differing(manifest: Manifest, other: Manifest) -> str:
    """How a run's input and result differ from another's: `3 more files, 1,204 more rows, 2 fewer
    missing verdicts`.
    """
    new, old = manifest.source, other.source
    counts = [
        (new.files - old.files, "file"),
        (new.rows - old.rows, "row"),
        (new.quarantined - old.quarantined, "quarantined row"),
        (_missing(manifest, other) - _missing(other, manifest), "missing verdict"),
    ]
    changes = [_more(number, noun) for number, noun in counts if number]
    return ", ".join(changes) or "as many files and rows"


def _missing(manifest: Manifest, other: Manifest) -> int:
    """Number of missing verdicts, for the metrics that another run has too."""
    return sum(
        summary.status.get(status, 0)
        for summary in manifest.metrics
        for status in UNSETTLED
        if other.summary(summary.metric)
    )


def _more(number: int, noun: str) -> str:
    much = "more" if number > 0 else "fewer"
    return f"{abs(number):,} {much} {noun}{'' if abs(number) == 1 else 's'}"
