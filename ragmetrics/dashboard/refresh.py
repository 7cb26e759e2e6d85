"""Writes the pages of a store's dashboard that depend on what the store has now.

index.html, nights.js                   all nights; a night's page finds the next one in their list
questions.html, questions.js            the questions of the newest nights
made-of.json                            the files that the pages of builds and judges show
metrics.prom                            the newest night for Prometheus
2026-11-19/                             the pages of one night
assets/                                 shared by all pages; no page loads anything from elsewhere

The pages themselves are in `pages/`, one file each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

from ragmetrics.dashboard.page import Shown
from ragmetrics.dashboard.page_writer import write_scope, write_shared
from ragmetrics.dashboard.pages.overview import RECENT
from ragmetrics.dashboard.prometheus import write_metrics
from ragmetrics.dashboard.question_history import NIGHTS, QuestionHistory, asked_on
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.render_cache import (
    MADE_OF,
    StoreSnapshot,
    render_until_stable,
    take_snapshot,
)
from ragmetrics.people import History, load_history
from ragmetrics.records import Manifest, across_change
from ragmetrics.rules import known_silences, with_silences
from ragmetrics.storage import FileInfo, Files, RunIndex, RunRef, Runs, do_all


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
    write_shared(site, dashboard.nights)
    site.discard(MADE_OF)
    for number in range(len(dashboard.nights)):
        tell(number + 1, len(dashboard.nights))
        dashboard.write_night(number)
    return dashboard.write_first_pages()


def write_pages(
    files: Files, manifest: Manifest, earlier: Sequence[Manifest], history: History
) -> None:
    """Write the pages of one night only, those of its current run."""
    site = files.at("dashboard")
    shown = Runs(files).current(manifest.date) or manifest
    write_shared(site, [shown])
    hide = shown.redacts
    nights = [redacted(night, hide) for night in (*earlier, shown)]
    write_scope(Shown(files, site, nights, history, folder=f"{shown.date}/"), "night")


def shown_now(files: Files, site: Files, day: date | None = None) -> Shown:
    """What the pages of the site, or those of the night of a `day`, show of a store now."""
    now = take_snapshot(files)
    nights = _nights_now(files, RunIndex(files), now)
    dashboard = _Dashboard(files, site, nights, load_history(files), now)
    if day is None:
        return dashboard.shown()
    return dashboard.of_night([night.date for night in nights].index(day))


def is_shown(files: Files, night: Manifest) -> bool:
    """Whether the page of a night was written after its manifest."""
    written = files.glob(RunRef.of(night).manifest)
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
    asked: dict[date, QuestionHistory] = field(default_factory=dict)
    """The questions of the nights that were written."""

    @property
    def hide(self) -> bool:
        """Whether pages that belong to no night hide texts: as the newest night does.

        A gate that ran with the setting is redacted in any case.
        """
        return bool(self.nights) and self.nights[-1].redacts

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
        numbers = range(max(0, len(self.nights) - RECENT), len(self.nights))

        def shown(number: int) -> bool:
            night = self.nights[number]
            return _is_shown(self.site, night, written.get(RunRef.of(night).manifest))

        found = self.site.side_by_side(shown, numbers)
        return [number for number, is_there in zip(numbers, found, strict=True) if not is_there]

    def write_night(self, number: int, *, compare: bool = True) -> None:
        """Write the pages of a night, with or without those that only `compare` it."""
        shown = self.of_night(number)
        write_scope(shown, "night", compare=compare)
        if number >= len(self.nights) - NIGHTS:
            self.asked[shown.night.date] = asked_on(shown.night, shown.rows)

    def of_night(self, number: int) -> Shown:
        """What the pages of a night show."""
        night = self.nights[number]
        if night is not self.nights[-1]:
            (night,) = Runs(self.files).in_full([night])
            night = redacted(night, night.redacts or self.hide)
        nights = [*across_change(self.nights[:number], night.bridge), night]
        return Shown(self.files, self.site, nights, self.history, self.now, f"{night.date}/")

    def shown(self) -> Shown:
        """What the pages of the site show."""
        bridge = self.nights[-1].bridge if self.nights else None
        nights = across_change(self.nights, bridge)
        return Shown(self.files, self.site, nights, self.history, self.now, asked=self.asked)

    def write_first_pages(self) -> str:
        """Write the overview and the pages beside it; return the path of the overview."""
        if self.nights:
            write_metrics(self.site, self.nights[-1])
        return write_scope(self.shown(), "site")


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
            write_shared(site, nights)
            chosen = dict.fromkeys(numbers(dashboard))
            for number in chosen:
                dashboard.write_night(number)
            last = len(nights) - 1
            if newest and nights and last not in chosen:
                dashboard.write_night(last, compare=False)
            dashboard.write_first_pages()

        do_all(pages, lambda: index.keep(now.runs))
        return dashboard

    return render_until_stable(files, write, known(index))


def _nights_now(files: Files, index: RunIndex, now: StoreSnapshot) -> list[Manifest]:
    """All nights in outline; the newest in full, with the silences that people have set since."""
    nights = Runs(files).outlines(months=index, runs=now.runs)
    newest = [with_silences(one, known_silences(files)) for one in Runs(files).in_full(nights[-1:])]
    hide = any(one.redacts for one in newest)
    return [redacted(night, hide or night.redacts) for night in (*nights[:-1], *newest)]


def _is_shown(site: Files, night: Manifest, written: FileInfo | None) -> bool:
    pages = site.glob(f"{night.date}/index.html")
    if not pages or written is None:
        return bool(pages)
    page, manifest = pages[0].modified, written.modified
    return page is None or manifest is None or page >= manifest
