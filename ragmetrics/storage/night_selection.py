"""Runs of one night: which of them speaks for it, and what the later one replaces."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from ragmetrics.model import UNSETTLED, Manifest
from ragmetrics.storage.files import Files
from ragmetrics.storage.history import is_ahead, run_of, runs_of, said_seen, seen

log = logging.getLogger(__name__)


def superseding(files: Files, manifest: Manifest) -> tuple[Manifest, Manifest | None]:
    """The manifest with what it says of the run it replaces, and that run, if there is one.

    A run that another one overtook, which looked for the night's files later, replaces nothing.
    """
    others = runs_of(files, manifest.date, without=manifest.run)
    if not others:
        return manifest, None
    manifest = _above(manifest, others)
    other = max(others, key=seen)
    if seen(other) > seen(manifest):
        log.warning(
            "run %s does not speak for the night of %s: run %s looked for its files later",
            manifest.run,
            manifest.date,
            other.run,
        )
        return manifest, None
    difference = differing(manifest, other)
    if is_ahead(other):
        difference += f"; its clock was ahead: it says {said_seen(other):%Y-%m-%d %H:%M} UTC"
    log.info("run %s supersedes run %s: %s", manifest.run, other.run, difference)
    return manifest.model_copy(update={"supersedes": other.run, "difference": difference}), other


def _above(manifest: Manifest, others: Sequence[Manifest]) -> Manifest:
    """A run that ranks above those whose clocks were ahead, also once their moment has come."""
    if is_ahead(manifest):
        return manifest
    for one in others:
        if is_ahead(one):
            log.warning(
                "run %s of the night of %s says that it looked for its files at %s, which is yet "
                "to come; its clock was wrong, and it does not speak for the night",
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
    """In what a run's input differs from another's, and what came of it: `3 more files, 1,204 more
    rows, 2 fewer missing verdicts`.
    """
    mine, its = manifest.source, other.source
    counts = [
        (mine.files - its.files, "file"),
        (mine.rows - its.rows, "row"),
        (mine.quarantined - its.quarantined, "quarantined row"),
        (_missing(manifest, other) - _missing(other, manifest), "missing verdict"),
    ]
    told = [_more(number, noun) for number, noun in counts if number]
    return ", ".join(told) or "as many files and rows"


def _missing(manifest: Manifest, other: Manifest) -> int:
    """The verdicts that are missing of the metrics that another run has too."""
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
    """Whether this run is the one that speaks for its night, now."""
    other = run_of(files, manifest.date, without=manifest.run)
    return other is None or seen(other) <= seen(manifest)
