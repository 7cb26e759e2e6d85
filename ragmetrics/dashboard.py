"""The dashboard of a store: which of its pages are written anew, by what the store has now."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.alerts.silences import silences, with_silences
from ragmetrics.calibration.history import History, load_history
from ragmetrics.gates.kept import load_gates
from ragmetrics.gates.undecided import load_undecided
from ragmetrics.records import Manifest
from ragmetrics.report.site import (
    write_assets,
    write_builds,
    write_calibrations,
    write_night,
    write_overview,
)
from ragmetrics.store.files import Files
from ragmetrics.store.history import nights, ref_of, run_of
from ragmetrics.store.parts import ScoredRow, scored_rows
from ragmetrics.superseding import until_settled


def write_dashboard(files: Files, manifest: Manifest) -> None:
    """Write a night's pages, the calibrations and the overview anew, as the store is now.

    The pages are those of the run that speaks for the night, which may be another one by now.
    """
    site = files.at("dashboard")
    write_assets(site)

    def write() -> None:
        everything, history = _nights_now(files), load_history(files)
        told = next((night for night in everything if night.date == manifest.date), manifest)
        earlier = [night for night in everything if night.date < manifest.date]
        write_night(site, told, earlier, worst_rows(files, told), history.calibrations)
        _write_first_pages(files, site, everything, history)

    until_settled(files, write)


def _nights_now(files: Files) -> list[Manifest]:
    """All nights; of the newest, the alerts with what people have said of them since."""
    everything = nights(files)
    return [*everything[:-1], *(with_silences(one, silences(files)) for one in everything[-1:])]


def write_pages(
    files: Files, manifest: Manifest, earlier: Sequence[Manifest], history: History
) -> None:
    """Write a night's pages alone, those of the run that speaks for it."""
    site = files.at("dashboard")
    write_assets(site)
    told = run_of(files, manifest.date) or manifest
    write_night(site, told, earlier, worst_rows(files, told), history.calibrations)


def refresh_dashboard(files: Files) -> History:
    """Write the calibrations anew, and what tells of them; return them with their drift.

    The overview links to them, and the newest night says how far its judge agrees with people.
    """
    site = files.at("dashboard")
    write_assets(site)

    def write() -> History:
        everything, history = _nights_now(files), load_history(files)
        for newest in everything[-1:]:
            rows = worst_rows(files, newest)
            write_night(site, newest, everything[:-1], rows, history.calibrations)
        _write_first_pages(files, site, everything, history)
        return history

    return until_settled(files, write)


def refresh_builds(files: Files) -> None:
    """Write the page of the index builds anew, and the overview, which links to it."""
    site = files.at("dashboard")
    write_assets(site)

    def write() -> None:
        _write_first_pages(files, site, _nights_now(files), load_history(files))

    until_settled(files, write)


def _write_first_pages(
    files: Files, site: Files, everything: Sequence[Manifest], history: History
) -> str:
    dataset = everything[-1].dataset if everything else None
    calibrations = write_calibrations(site, history, dataset)
    builds = write_builds(site, load_gates(files), load_undecided(files), dataset)
    return write_overview(site, everything, calibrations, builds)


def rebuild_dashboard(files: Files, site: Files) -> str:
    """Write the whole site of a store anew; return the path of its first page."""
    everything, history = _nights_now(files), load_history(files)
    write_assets(site)
    for number, manifest in enumerate(everything):
        rows = worst_rows(files, manifest)
        write_night(site, manifest, everything[:number], rows, history.calibrations)
    return _write_first_pages(files, site, everything, history)


def worst_rows(files: Files, manifest: Manifest) -> list[ScoredRow]:
    """The rows that the manifest names as worst, each once, with all their scores."""
    ref = ref_of(manifest)
    wanted: dict[int, set[int]] = {}
    for row in manifest.worst:
        wanted.setdefault(row.shard, set()).add(row.position)
    names = [summary.metric for summary in manifest.metrics]
    found = scored_rows(files, ref, names, wanted)
    places = dict.fromkeys((row.shard, row.position) for row in manifest.worst)
    return [found[place] for place in places]
