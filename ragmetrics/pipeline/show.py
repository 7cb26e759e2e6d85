"""Showing a published night: its pages, the overview, the history by month, and monitoring.

All of it is made from manifests and scores, and none of it decides anything. So it comes after the
alert, and what could not be written is written by the next run.
"""

from __future__ import annotations

from functools import partial

from ragmetrics.calibration import load_history
from ragmetrics.config import Settings
from ragmetrics.model import Manifest
from ragmetrics.report import push_metrics, write_dashboard, write_pages
from ragmetrics.storage import (
    Files,
    RunIndex,
    do_all,
    find_manifest,
    open_store,
    outlines,
    ref_of,
    save_manifest,
)

_TREND_NIGHTS = 60


def show_run(settings: Settings, manifest: Manifest, *, overview: bool = True) -> None:
    """Write the pages of a night, and what tells of all nights; the manifest where it is missing.

    Without `overview` the pages of all nights are left to `refresh_dashboard`: to write them after
    each of many nights takes as long as their number squared. Nothing is pushed then. Raises one
    StoreError with everything that could not be written.
    """
    files = open_store(settings)
    if overview:
        shown = partial(_show_among_all, settings, files, manifest)
    else:
        shown = partial(_show_alone, files, manifest)
    do_all(partial(_keep, files, manifest), shown)


def _keep(files: Files, manifest: Manifest) -> None:
    """Write the manifest where `publish` could not."""
    if find_manifest(files, ref_of(manifest)) != manifest:
        save_manifest(files, manifest)


def _show_among_all(settings: Settings, files: Files, manifest: Manifest) -> None:
    newest = write_dashboard(files, manifest)
    if settings.metrics_push:
        push_metrics(settings.metrics_push, newest)


def _show_alone(files: Files, manifest: Manifest) -> None:
    months = RunIndex(files)
    earlier = outlines(files, before=manifest.date, last=_TREND_NIGHTS, months=months)
    do_all(
        partial(write_pages, files, manifest, earlier, load_history(files)),
        lambda: months.keep(months.listed(manifest.date), of=manifest.date),
    )


__all__ = ["show_run"]
