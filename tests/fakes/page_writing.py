"""Writes single pages of a site from records, without a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

from ragmetrics.comparison import build_path
from ragmetrics.dashboard import Shown
from ragmetrics.dashboard.page_writer import write_shared as write_assets
from ragmetrics.dashboard.pages.builds import build_page, builds_page
from ragmetrics.dashboard.pages.calibration import calibration_page
from ragmetrics.dashboard.pages.changes import changes
from ragmetrics.dashboard.pages.night import night_page
from ragmetrics.dashboard.pages.overview import night_list, overview_page
from ragmetrics.dashboard.pages.questions import questions
from ragmetrics.dashboard.pages.rows import write_rows
from ragmetrics.dashboard.question_history import asked_on
from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.dashboard.summaries import summary_page
from ragmetrics.people import History
from ragmetrics.records import Calibration, Comparison, FailedGate, Gate, LearnedModel, Manifest
from ragmetrics.storage import Files

__all__ = [
    "write_assets",
    "write_build",
    "write_builds",
    "write_calibrations",
    "write_changes",
    "write_night",
    "write_overview",
    "write_questions",
]


def write_night(
    site: Files,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    rows: Sequence[KeptRow],
    calibrations: Sequence[Calibration] = (),
    *,
    changed_since: date | None = None,
) -> str:
    """Write the pages of a night but that of its changes; return the path of the first."""
    links = []
    if page := write_rows(site, manifest, rows):
        site.write(f"{manifest.date}/rows.html", page)
        links.append(("Questions of this night", "rows.html"))
    else:
        site.discard(f"{manifest.date}/rows.html")
    if changed_since:
        links.append((f"Compare with {changed_since}", "changes.html"))
    site.write(f"{manifest.date}/summary.html", summary_page(manifest, earlier))
    page = night_page(manifest, earlier, rows, calibrations, links=links)
    return _put(site, f"{manifest.date}/index.html", page)


def write_changes(
    site: Files,
    manifest: Manifest,
    before: Manifest | None,
    found: Comparison | None,
    earlier: Sequence[Manifest] = (),
) -> str:
    """Write what changed since a night; return the page's path."""
    shown = Shown(site, site, [*earlier, manifest], folder=f"{manifest.date}/")
    vars(shown).update(before=before, comparison=found)
    return _put(site, f"{manifest.date}/changes.html", changes.render(shown))


def write_overview(
    site: Files,
    nights: Sequence[Manifest],
    calibrations: str | None = None,
    builds: str | None = None,
    died: Collection[date] = (),
) -> str:
    """Write the first page with links to those that exist; return its path."""
    words = {"Index builds": builds, "Judge calibration": calibrations}
    links = [(title, path) for title, path in words.items() if path]
    if nights:
        site.write("nights.js", night_list(nights))
    return _put(site, "index.html", overview_page(nights, links, died))


def write_questions(
    site: Files, nights: Sequence[Manifest], rows: Mapping[date, Sequence[KeptRow]]
) -> str:
    """Write the page of all questions, with the kept rows of some nights; return its path."""
    asked = {
        night.date: asked_on(night, rows[night.date]) for night in nights if night.date in rows
    }
    return _put(site, "questions.html", questions.render(Shown(site, site, nights, asked=asked)))


def write_builds(
    site: Files, gates: Iterable[Gate], undecided: Iterable[FailedGate] = (), dataset: str = ""
) -> str | None:
    """Write the page of all builds; return its path, or None without one."""
    page = builds_page(gates, undecided, dataset)
    return _put(site, "builds.html", page) if page else None


def write_build(site: Files, gate: Gate, found: Comparison | None) -> str:
    """Write the page of one build; return its path."""
    return _put(site, build_path(gate.build), build_page(gate, found))


def write_calibrations(
    site: Files, history: History, dataset: str = "", learned: Sequence[LearnedModel] = ()
) -> str | None:
    """Write the page of the calibrations; return its path, or None without one."""
    page = calibration_page(history, dataset, learned)
    return _put(site, "calibration.html", page) if page else None


def _put(site: Files, path: str, page: bytes | None) -> str:
    assert page is not None
    site.write(path, page)
    return path
