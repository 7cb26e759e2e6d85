"""Shows a published night: writes its pages, the overview, the run index and monitoring files.

All of it is derived from manifests and scores. So it comes after the alerts, and the next run
writes what could not be written.
"""

from __future__ import annotations

from functools import partial

from ragmetrics.config import Settings
from ragmetrics.dashboard import push_metrics, write_dashboard, write_pages
from ragmetrics.people import load_history
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, RunIndex, RunRef, Runs, do_all, open_store

_TREND_NIGHTS = 60


def show_run(settings: Settings, manifest: Manifest, *, overview: bool = True) -> None:
    """Write the pages of a night and the overview of all nights; also the manifest if it is
    missing.

    Without `overview` it writes only the night's own pages and pushes no metrics;
    `refresh_dashboard` writes the overview later. After each of many nights it would take quadratic
    time. Raises one StoreError that lists everything that could not be written.
    """
    files = open_store(settings)
    alone = partial(_show_alone, files, manifest)
    show = partial(_show_with_overview, settings, files, manifest) if overview else alone
    do_all(partial(_save_missing, files, manifest), show)


def _save_missing(files: Files, manifest: Manifest) -> None:
    """Write the manifest if `publish` could not."""
    if Runs(files).find(RunRef.of(manifest)) != manifest:
        Runs(files).save(manifest)


def _show_with_overview(settings: Settings, files: Files, manifest: Manifest) -> None:
    newest = write_dashboard(files, manifest)
    if settings.metrics_push:
        push_metrics(settings.metrics_push, newest)


def _show_alone(files: Files, manifest: Manifest) -> None:
    index = RunIndex(files)
    earlier = Runs(files).outlines(before=manifest.date, last=_TREND_NIGHTS, months=index)
    do_all(
        partial(write_pages, files, manifest, earlier, load_history(files)),
        lambda: index.keep(index.listed(manifest.date), of=manifest.date),
    )
