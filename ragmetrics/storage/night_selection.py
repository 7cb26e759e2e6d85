"""Selects the current run of a night, and describes what it supersedes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from ragmetrics.model import UNSETTLED, Manifest
from ragmetrics.storage.files import Files
from ragmetrics.storage.history import is_ahead, run_of, runs_of, said_seen, seen

log = logging.getLogger(__name__)


def superseding(files: Files, manifest: Manifest) -> tuple[Manifest, Manifest | None]:
    """The manifest with a note on the run it supersedes, and that run.

    A run supersedes nothing if another run listed the log files later.
    """
    others = runs_of(files, manifest.date, without=manifest.run)
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
    return manifest.model_copy(update={"supersedes": other.run, "difference": difference}), other


def _rank_above(manifest: Manifest, others: Sequence[Manifest]) -> Manifest:
    """The run with a rank above runs whose clocks were ahead, also when their time has come."""
    if is_ahead(manifest):
        return manifest
    for one in others:
        if is_ahead(one):
            log.warning(
                "run %s of the night of %s listed its files at %s, which is in the future; its "
                "clock was wrong, and it is not the current run of the night",
                one.run,
                one.date,
                said_seen(one).isoformat(),
            )
    replaced = [
        one.ranked_at or said_seen(one)
        for one in others
        if is_ahead(one) or (one.ranked_at and said_seen(one) < said_seen(manifest))
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
        one.status.get(status, 0)
        for one in manifest.metrics
        for status in UNSETTLED
        if other.summary(one.metric)
    )


def _more(number: int, noun: str) -> str:
    much = "more" if number > 0 else "fewer"
    return f"{abs(number):,} {much} {noun}{'' if abs(number) == 1 else 's'}"


def is_current(files: Files, manifest: Manifest) -> bool:
    """True when this run is the current run of its night."""
    other = run_of(files, manifest.date, without=manifest.run)
    return other is None or seen(other) <= seen(manifest)
