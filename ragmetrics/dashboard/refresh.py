"""The dashboard of a store: writes the pages that depend on what the store has now.

index.html, nights.js                   all nights; a night's page finds the next one in their list
glossary.html                           the terms
calibration.html                        judges compared with labelled rows, if there are any
builds.html, builds/BUILD.html          index builds and their verdicts, if there are any
compare/A--B.html                       comparisons on request: comparison_pages.py
made-of.json                            the files that the pages of builds and judges show
metrics.prom                            the newest night for Prometheus
2026-11-19/index.html                   one night
2026-11-19/rows.html, rows-1.js ...     its rows
2026-11-19/changes.html                 the night compared with the night before
2026-11-19/summary.html                 the night on one page, for e-mail
assets/                                 shared by all pages; no page loads anything from elsewhere
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import pairwise

from ragmetrics.comparison import (
    BUILD_PAGES,
    LoadScores,
    build_path,
    cached_load,
    compare_with_night_before,
    gate_path,
    load_compared,
    load_failed_gates,
    load_gates,
    load_whatif,
    night_before,
)
from ragmetrics.dashboard.calibration_page import CALIBRATION_PAGE, write_calibrations
from ragmetrics.dashboard.comparison_pages import (
    BUILDS,
    CHANGES,
    shown_gates,
    write_build,
    write_builds,
    write_changes,
)
from ragmetrics.dashboard.night_page import write_night
from ragmetrics.dashboard.overview import write_overview
from ragmetrics.dashboard.prometheus import write_metrics
from ragmetrics.dashboard.redacting import redacted, redacted_history, redacted_row
from ragmetrics.dashboard.render_cache import (
    MADE_OF,
    RenderCache,
    StoreSnapshot,
    render_until_stable,
    take_snapshot,
)
from ragmetrics.dashboard.row_loader import load_rows
from ragmetrics.dashboard.templating import write_assets
from ragmetrics.errors import StoreError
from ragmetrics.people import History, load_history
from ragmetrics.records import Gate, Manifest, WhatIf
from ragmetrics.rules import known_silences, with_silences
from ragmetrics.scoring import load_scores
from ragmetrics.storage import (
    FileInfo,
    Files,
    RunIndex,
    all_learned,
    do_all,
    in_full,
    is_missing,
    learned_files,
    outlines,
    path_of,
    ref_of,
    remove_file,
    run_of,
    side_by_side,
)

_RECENT = 14
"""The newest nights, in days. Among them, missing pages are written again."""
log = logging.getLogger(__name__)


def write_dashboard(files: Files, manifest: Manifest) -> Manifest:
    """Write a night's pages, the overview and the month's history; return the newest night as the
    pages show it.

    The pages show the night's current run, which may differ from the manifest's. The pages of the
    following night are written too, as they compare that night with this one. So are the pages
    that a run of the last two weeks failed to write. Raises one StoreError with all failures.
    """

    def numbers(dashboard: _Dashboard) -> list[int]:
        dates = [night.date for night in dashboard.nights]
        own = [number for number, day in enumerate(dates) if day == manifest.date]
        return [*own, *dashboard.following([manifest.date]), *dashboard.unwritten()]

    nights = _write(files, numbers, lambda index: index.listed(manifest.date)).nights
    return nights[-1] if nights else manifest


def refresh_dashboard(
    files: Files, published: Collection[date] = (), *, nights: Collection[date] = ()
) -> History:
    """Write the calibrations, and the pages that mention them; return them with their drift.

    The overview links to the calibrations, and the newest night says how far its judge agrees with
    people. If nights were `published` by themselves, the nights after them are written too. So are
    the `nights` themselves.
    """

    def numbers(one: _Dashboard) -> list[int]:
        own = [n for n, night in enumerate(one.nights) if night.date in nights]
        return [*own, *one.following(published)]

    return _write(files, numbers, newest=True).history


def refresh_builds(files: Files) -> None:
    """Write the pages of the index builds, and the overview, which links to them."""
    _write(files, lambda _: ())


def rebuild_dashboard(
    files: Files, site: Files, tell: Callable[[int, int], None] = lambda *_: None
) -> str:
    """Write the whole site of a store; return the path of its first page.

    `tell` receives the number of each night before it is written, and the number of nights.
    """
    # Every calibration, as the page of an old night shows those of its time.
    history = load_history(files, newest=None)
    now = take_snapshot(files)
    dashboard = _Dashboard(files, site, _nights_now(files, RunIndex(files), now), history, now)
    write_assets(site)
    remove_file(site, MADE_OF)
    for number in range(len(dashboard.nights)):
        tell(number + 1, len(dashboard.nights))
        dashboard.write_night(number)
    return dashboard.write_first_pages()


def write_pages(
    files: Files, manifest: Manifest, earlier: Sequence[Manifest], history: History
) -> None:
    """Write the pages of one night only, those of its current run."""
    site = files.at("dashboard")
    write_assets(site)
    shown = run_of(files, manifest.date) or manifest
    hide = shown.redacts
    shown, *before = (redacted(one, hide) for one in (shown, *earlier))
    _write_night(files, site, shown, before, history)


def is_shown(files: Files, night: Manifest) -> bool:
    """Whether the page of a night was written after its manifest."""
    written = files.glob(path_of(ref_of(night)))
    return _is_shown(files.at("dashboard"), night, written[0] if written else None)


@dataclass(frozen=True)
class _Dashboard:
    """A site, and the content of the store at one moment, which it is to show."""

    files: Files
    site: Files
    nights: Sequence[Manifest]
    """All nights, oldest first: outlines, and the newest one in full."""
    history: History
    now: StoreSnapshot

    @property
    def hide(self) -> bool:
        """Whether pages that belong to no night hide texts: as the newest night does.

        A gate that ran with the setting is redacted in any case.
        """
        return bool(self.nights) and self.nights[-1].redacts

    @property
    def dataset(self) -> str | None:
        return self.nights[-1].dataset if self.nights else None

    def following(self, published: Collection[date]) -> list[int]:
        """Numbers of the unpublished nights whose previous night was published."""
        return [
            number
            for number, (before, night) in enumerate(pairwise(self.nights), 1)
            if before.date in published and night.date not in published
        ]

    def unwritten(self) -> list[int]:
        """Numbers of the recent nights whose page is missing or older than their manifest."""
        written = {info.path: info for info in self.now.runs}
        numbers = range(max(0, len(self.nights) - _RECENT), len(self.nights))

        def shown(number: int) -> bool:
            night = self.nights[number]
            return _is_shown(self.site, night, written.get(path_of(ref_of(night))))

        found = side_by_side(self.site, shown, numbers)
        return [number for number, is_there in zip(numbers, found, strict=True) if not is_there]

    def write_night(self, number: int, *, changes: bool = True) -> None:
        """Write the pages of a night, with or without the page of its `changes`."""
        night = self.nights[number]
        if night is not self.nights[-1]:
            (night,) = in_full(self.files, [night])
            night = redacted(night, night.redacts or self.hide)
        earlier = self.nights[:number]
        _write_night(self.files, self.site, night, earlier, self.history, changes=changes)

    def write_first_pages(self) -> str:
        """Write the overview and the pages beside it; return the path of the overview."""
        cache = RenderCache(self.site)
        beside = (self.dataset, self.hide)
        history = redacted_history(self.history, self.hide)
        calibrations = cache.unless_made(
            CALIBRATION_PAGE,
            [*self.now.calibrations, *learned_files(self.files)],
            beside,
            lambda: write_calibrations(self.site, history, self.dataset, all_learned(self.files)),
        )
        builds = cache.unless_made(
            BUILDS, self.now.gates, beside, lambda: self._write_builds(cache)
        )
        if self.nights:
            write_metrics(self.site, self.nights[-1])
        return write_overview(self.site, self.nights, calibrations, builds, self._died())

    def _write_builds(self, cache: RenderCache) -> str | None:
        """Write the pages of the index builds that are new, then the page of all builds."""
        gates = shown_gates(redacted(gate, self.hide) for gate in load_gates(self.files))
        infos = {info.path: info for info in self.now.gates}
        pages = {
            build_path(gate.build): (info, partial(self._write_build, gate))
            for gate in gates
            if (info := infos.get(gate_path(gate.build)))  # a newer gate waits for the next round
        }
        cache.each_unless_made(BUILD_PAGES, pages, (self.dataset, self.hide))
        failed = (redacted(gate, self.hide) for gate in load_failed_gates(self.files))
        return write_builds(self.site, gates, failed, self.dataset)

    def _write_build(self, gate: Gate) -> str:
        found = load_compared(self.files, gate.build)
        return write_build(self.site, gate, redacted(found, self.hide) if found else None)

    def _died(self) -> list[date]:
        """The days of the last two weeks on which a run began and no night was published."""
        known = {night.date for night in self.nights}
        if not known:
            return []
        days = (max(known) - timedelta(days=ago) for ago in range(1, _RECENT + 1))
        lacking = [day for day in days if min(known) < day and day not in known]
        return [day for day in lacking if self.files.below(f"rows/dt={day}")]


def _write(
    files: Files,
    numbers: Callable[[_Dashboard], Iterable[int]],
    known: Callable[[RunIndex], Sequence[FileInfo] | None] = lambda _: None,
    *,
    newest: bool = False,
) -> _Dashboard:
    """Write the first pages and the nights of some `numbers`, until the store is stable; return
    what they show.

    `known` are the runs that are listed already. `newest` writes the newest night too, but for the
    page of its changes.
    """
    site, index = files.at("dashboard"), RunIndex(files)

    def write(now: StoreSnapshot) -> _Dashboard:
        nights = _nights_now(files, index, now)
        dashboard = _Dashboard(files, site, nights, load_history(files), now)

        def pages() -> None:
            write_assets(site)
            chosen = dict.fromkeys(numbers(dashboard))
            for number in chosen:
                dashboard.write_night(number)
            last = len(nights) - 1
            if newest and nights and last not in chosen:
                dashboard.write_night(last, changes=False)
            dashboard.write_first_pages()

        do_all(pages, lambda: index.keep(now.runs))
        return dashboard

    return render_until_stable(files, write, known(index))


def _nights_now(files: Files, index: RunIndex, now: StoreSnapshot) -> list[Manifest]:
    """All nights in outline; the newest in full, with the silences that people have set since."""
    nights = outlines(files, months=index, runs=now.runs)
    newest = [with_silences(one, known_silences(files)) for one in in_full(files, nights[-1:])]
    hide = any(one.redacts for one in newest)
    return [redacted(night, hide or night.redacts) for night in (*nights[:-1], *newest)]


def _is_shown(site: Files, night: Manifest, written: FileInfo | None) -> bool:
    pages = site.glob(f"{night.date}/index.html")
    if not pages or written is None:
        return bool(pages)
    page, manifest = pages[0].modified, written.modified
    return page is None or manifest is None or page >= manifest


def _write_night(
    files: Files,
    site: Files,
    night: Manifest,
    earlier: Sequence[Manifest],
    history: History,
    *,
    changes: bool = True,
) -> None:
    """Write the pages of a night, with or without the page of its `changes`."""
    before = night_before(night, earlier)

    load = cached_load(lambda one, metric: load_scores(files, ref_of(one), metric), night, before)
    if changes:
        _write_changes(files, site, night, before, earlier, load)
    rows = load_rows(files, night, earlier, load)
    if night.redacts:
        rows = [redacted_row(row) for row in rows]
    has_changes = before is not None and site.exists(f"{night.date}/{CHANGES}")
    write_night(
        site,
        night,
        earlier,
        rows,
        history.calibrations,
        changed_since=before.date if before and has_changes else None,
        raw=files.uri(ref_of(night).folder("scores")),
        whatif=_whatif(files, night),
    )


def _whatif(files: Files, night: Manifest) -> WhatIf | None:
    """What would mend the night; None where nobody asked, or the night was run again since."""
    found = load_whatif(files, night.date)
    if found is None or found.run != night.run:
        return None
    return redacted(found, night.redacts)


def _write_changes(
    files: Files,
    site: Files,
    night: Manifest,
    before: Manifest | None,
    earlier: Sequence[Manifest],
    load: LoadScores,
) -> None:
    """Write what changed in a night since the one before it.

    If the scores of either are gone from the store, the page stays as it is.
    """
    try:
        found = compare_with_night_before(files, before, night, load) if before else None
    except StoreError as error:
        if not is_missing(error):
            raise
        log.warning("%s: the page of changes is not written: %s", night.date, error)
        return
    shown = redacted(found, night.redacts) if found else None
    write_changes(site, night, before, shown, earlier)
