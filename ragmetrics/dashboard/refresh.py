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
from dataclasses import replace
from datetime import date
from itertools import pairwise

from ragmetrics.dashboard.page import Shown
from ragmetrics.dashboard.page_writer import write_scope, write_shared
from ragmetrics.dashboard.pages.overview import RECENT
from ragmetrics.dashboard.prometheus import write_metrics
from ragmetrics.dashboard.question_history import NIGHTS, asked_on
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.render_cache import (
    MADE_OF,
    StoreSnapshot,
    render_until_stable,
    take_snapshot,
)
from ragmetrics.errors import InputError
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

    def numbers(whole: Shown) -> list[int]:
        dates = [night.date for night in whole.nights]
        own = [number for number, day in enumerate(dates) if day == manifest.date]
        return [*own, *_following(whole.nights, [manifest.date]), *_unwritten(whole)]

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

    def numbers(whole: Shown) -> list[int]:
        own = [n for n, night in enumerate(whole.nights) if night.date in nights]
        return [*own, *_following(whole.nights, published)]

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
    nights = _nights_now(files, RunIndex(files), now)
    whole = Shown(files, site, nights, history, now)
    write_shared(site, nights)
    site.discard(MADE_OF)
    for number in range(len(nights)):
        tell(number + 1, len(nights))
        _write_night(whole, number)
    return _write_first_pages(whole)


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
    """What the pages of the site, or those of the night of a `day`, show of a store now.

    Raises InputError where the store has no such night.
    """
    now = take_snapshot(files)
    nights = _nights_now(files, RunIndex(files), now)
    whole = Shown(files, site, nights, load_history(files), now)
    if day is None:
        return _of_site(whole)
    dates = [night.date for night in nights]
    if day not in dates:
        newest = f"; the newest is {dates[-1]}" if dates else ""
        raise InputError(f"{files.uri()}: there is no night {day}{newest}")
    return _of_night(whole, dates.index(day))


def is_shown(files: Files, night: Manifest) -> bool:
    """Whether the page of a night was written after its manifest."""
    written = files.glob(RunRef.of(night).manifest)
    return _is_shown(files.at("dashboard"), night, written[0] if written else None)


def _following(nights: Sequence[Manifest], published: Collection[date]) -> list[int]:
    """Numbers of the unpublished nights whose previous night was published."""
    return [
        number
        for number, (before, night) in enumerate(pairwise(nights), 1)
        if before.date in published and night.date not in published
    ]


def _unwritten(whole: Shown) -> list[int]:
    """Numbers of the recent nights whose page is missing or older than their manifest."""
    written = {info.path: info for info in whole.now.runs}
    numbers = range(max(0, len(whole.nights) - RECENT), len(whole.nights))

    def shown(number: int) -> bool:
        night = whole.nights[number]
        return _is_shown(whole.site, night, written.get(RunRef.of(night).manifest))

    found = whole.site.side_by_side(shown, numbers)
    return [number for number, is_there in zip(numbers, found, strict=True) if not is_there]


def _write_night(whole: Shown, number: int, *, compare: bool = True) -> None:
    """Write the pages of a night, with or without those that only `compare` it."""
    shown = _of_night(whole, number)
    write_scope(shown, "night", compare=compare)
    if number >= len(whole.nights) - NIGHTS:
        whole.asked[shown.night.date] = asked_on(shown.night, shown.rows)


def _of_night(whole: Shown, number: int) -> Shown:
    """What the pages of a night show."""
    night = whole.nights[number]
    if night is not whole.night:
        (night,) = Runs(whole.files).in_full([night])
        night = redacted(night, night.redacts or whole.hide)
    nights = [*across_change(whole.nights[:number], night.bridge), night]
    return replace(whole, nights=nights, folder=f"{night.date}/", links=[])


def _of_site(whole: Shown) -> Shown:
    """What the pages of the site show."""
    bridge = whole.night.bridge if whole.nights else None
    return replace(whole, nights=across_change(whole.nights, bridge), links=[])


def _write_first_pages(whole: Shown) -> str:
    """Write the overview and the pages beside it; return the path of the overview."""
    if whole.nights:
        write_metrics(whole.site, whole.night)
    return write_scope(_of_site(whole), "site")


def _write(
    files: Files,
    numbers: Callable[[Shown], Iterable[int]],
    known: Callable[[RunIndex], Sequence[FileInfo] | None] = lambda _: None,
    *,
    newest: bool = False,
) -> Shown:
    """Write the first pages and the nights of some `numbers`, until the store is stable; return
    what they show.

    `known` are the runs that are listed already. `newest` writes the newest night too, but for the
    page of its changes.
    """
    site, index = files.at("dashboard"), RunIndex(files)

    def write(now: StoreSnapshot) -> Shown:
        nights = _nights_now(files, index, now)
        whole = Shown(files, site, nights, load_history(files), now)

        def pages() -> None:
            write_shared(site, nights)
            chosen = dict.fromkeys(numbers(whole))
            for number in chosen:
                _write_night(whole, number)
            last = len(nights) - 1
            if newest and nights and last not in chosen:
                _write_night(whole, last, compare=False)
            _write_first_pages(whole)

        do_all(pages, lambda: index.keep(now.runs))
        return whole

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
