"""Nights as `publish` leaves them in a store, for tests of what is told about them."""

from __future__ import annotations

from ragmetrics.delivery.outbox import Batches, known_batches
from ragmetrics.delivery.state import AlertStates, judge_findings
from ragmetrics.delivery.state_fold import folded_from, states_after
from ragmetrics.records import Manifest
from ragmetrics.rules import known_silences
from ragmetrics.storage import Files, Runs


def known(files: Files, manifest: Manifest, remind_days: int = 7) -> AlertStates:
    """The alert states before a night, with what people know about it."""
    before, batches = _before(files, manifest, remind_days)
    return before.heard(batches.told_tonight(manifest.date))


def published(files: Files, manifest: Manifest, remind_days: int = 7) -> Manifest:
    """The manifest of a night with its states, stored."""
    before, batches = _before(files, manifest, remind_days)
    states, day = before.heard(batches.told_tonight(manifest.date)), manifest.date
    _, found = judge_findings(states, manifest.findings, day, remind_days, known_silences(files))
    if manifest.silent:
        found = [one.model_copy(update={"transition": None}) for one in found]
    manifest = manifest.model_copy(update={"findings": found, "alerts": before.snapshot})
    Runs(files).save(manifest)
    return manifest


def _before(files: Files, manifest: Manifest, remind_days: int) -> tuple[AlertStates, Batches]:
    past = Runs(files).outlines(before=manifest.date)
    batches = known_batches(files, folded_from(past), manifest.date)
    return states_after(files, past, batches, remind_days, manifest.date), batches
