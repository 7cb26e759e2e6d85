"""The dashboard of a store: which of its pages are written anew, by what the store has now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import pairwise

from ragmetrics.alerts import silences, with_silences
from ragmetrics.calibration import History, load_history
from ragmetrics.comparison import LoadScores, cached_load, compare_with_night_before, night_before
from ragmetrics.errors import StoreError
from ragmetrics.model import Gate, Manifest
from ragmetrics.report.builds_page import BUILDS, CHANGES, shown_gates, write_build, write_changes
from ragmetrics.report.calibration_page import CALIBRATION_PAGE as CALIBRATIONS
from ragmetrics.report.prometheus import write_metrics
from ragmetrics.report.redacting import redacted, redacted_history, redacted_row
from ragmetrics.report.render_cache import PATH as MADE_OF
from ragmetrics.report.render_cache import (
    RenderCache,
    StoreSnapshot,
    render_until_stable,
    take_snapshot,
)
from ragmetrics.report.row_loader import load_rows
from ragmetrics.report.row_selection import KeptRow
from ragmetrics.report.site import (
    write_assets,
    write_builds,
    write_calibrations,
    write_night,
    write_overview,
)
from ragmetrics.scoring import load_scores
from ragmetrics.storage import (
    BUILD_PAGES,
    FileInfo,
    Files,
    RunIndex,
    build_path,
    do_all,
    gate_path,
    in_full,
    is_missing,
    load_compared,
    load_failed_gates,
    load_gates,
    outlines,
    path_of,
    ref_of,
    remove_file,
    run_of,
    side_by_side,
)

HEALED = 14
"""Nights back for which pages are looked for that a run could not write."""
log = logging.getLogger(__name__)


def write_dashboard(files: Files, manifest: Manifest) -> Manifest:
    """Write a night's pages, the overview and the month's history anew, as the store is now; return
    the newest night as it is shown.

    The pages are those of the run that speaks for the night, which may be another one by now. Of a
    night that is not the newest, those of the night after it are written too: they hold that one
    against this one. So are those that a run of the last two weeks could not write. Raises one
    StoreError with everything that could not be written now.
    """
    site, known = files.at("dashboard"), RunIndex(files)

    def write(now: StoreSnapshot) -> Manifest:
        everything = _nights_now(files, known, now.runs)

        def pages() -> None:
            history = load_history(files)
            own = [number for number, one in enumerate(everything) if one.date == manifest.date]
            following = _following(everything, [manifest.date])
            write_assets(site)
            for number in dict.fromkeys((*own, *following)):
                _write_night(files, site, number, everything, history)
            for number in _unwritten(site, everything, now.runs):
                _write_night(files, site, number, everything, history)
            _write_first_pages(files, site, everything, history, now)

        do_all(pages, lambda: known.keep(now.runs))
        return everything[-1] if everything else manifest

    return render_until_stable(files, write, known.listed(manifest.date))


def _unwritten(site: Files, everything: Sequence[Manifest], runs: Sequence[FileInfo]) -> list[int]:
    """Of the last nights, those by number whose page is missing, or older than their manifest: a
    run could not write it.
    """
    written = {info.path: info for info in runs}
    numbers = range(max(0, len(everything) - HEALED), len(everything))

    def shown(number: int) -> bool:
        night = everything[number]
        return _is_shown(site, night, written.get(path_of(ref_of(night))))

    found = side_by_side(site, shown, numbers)
    return [number for number, is_there in zip(numbers, found, strict=True) if not is_there]


def is_shown(files: Files, night: Manifest) -> bool:
    """Whether the page of a night was written after its manifest."""
    written = files.glob(path_of(ref_of(night)))
    return _is_shown(files.at("dashboard"), night, written[0] if written else None)


def _is_shown(site: Files, night: Manifest, written: FileInfo | None) -> bool:
    pages = site.glob(f"{night.date}/index.html")
    if not pages or written is None:
        return bool(pages)
    page, manifest = pages[0].modified, written.modified
    return page is None or manifest is None or page >= manifest


def write_pages(
    files: Files, manifest: Manifest, earlier: Sequence[Manifest], history: History
) -> None:
    """Write a night's pages alone, those of the run that speaks for it."""
    site = files.at("dashboard")
    write_assets(site)
    told = run_of(files, manifest.date) or manifest
    hide = told.redacts
    told, *before = (redacted(one, hide) for one in (told, *earlier))
    _write_told(files, site, told, before, history)


def refresh_dashboard(files: Files, published: Collection[date] = ()) -> History:
    """Write the calibrations anew, and what tells of them; return them with their drift.

    The overview links to them, and the newest night says how far its judge agrees with people. Of
    the nights that were `published` alone, those after them are written too.
    """
    site, months = files.at("dashboard"), RunIndex(files)

    def write(now: StoreSnapshot) -> History:
        everything, history = _nights_now(files, months, now.runs), load_history(files)

        def pages() -> None:
            following, newest = _following(everything, published), len(everything) - 1
            write_assets(site)
            for number in following:
                _write_night(files, site, number, everything, history)
            if everything and newest not in following:
                _write_night(files, site, newest, everything, history, changes=False)
            _write_first_pages(files, site, everything, history, now)

        do_all(pages, lambda: months.keep(now.runs))
        return history

    return render_until_stable(files, write)


def refresh_builds(files: Files) -> None:
    """Write the page of the index builds anew, and the overview, which links to it."""
    site, months = files.at("dashboard"), RunIndex(files)

    def write(now: StoreSnapshot) -> None:
        everything = _nights_now(files, months, now.runs)

        def pages() -> None:
            write_assets(site)
            _write_first_pages(files, site, everything, load_history(files), now)

        do_all(pages, lambda: months.keep(now.runs))

    render_until_stable(files, write)


def rebuild_dashboard(
    files: Files, site: Files, tell: Callable[[int, int], None] = lambda *_: None
) -> str:
    """Write the whole site of a store anew; return the path of its first page.

    `tell` is given the number of each night before it is written, and how many there are.
    """
    now = take_snapshot(files)
    everything = _nights_now(files, RunIndex(files), now.runs)
    history = load_history(files, newest=None)  # a page of long ago tells of those of its time
    write_assets(site)
    remove_file(site, MADE_OF)
    for number in range(len(everything)):
        tell(number + 1, len(everything))
        _write_night(files, site, number, everything, history)
    return _write_first_pages(files, site, everything, history, now)


def _following(everything: Sequence[Manifest], published: Collection[date]) -> list[int]:
    """Of all nights those, by number, that come after a published one, against which they are held,
    and are not among these themselves.
    """
    dates = [one.date for one in everything]
    return [
        number
        for number, (before, day) in enumerate(pairwise(dates), 1)
        if before in published and day not in published
    ]


def _nights_now(files: Files, months: RunIndex, runs: Sequence[FileInfo]) -> list[Manifest]:
    """All nights in outline; the newest in full, its alerts with what people have said since."""
    everything = outlines(files, months=months, runs=runs)
    newest = in_full(files, everything[-1:])
    newest = [with_silences(one, silences(files)) for one in newest]
    hide = any(one.redacts for one in newest)
    return [redacted(one, hide or one.redacts) for one in (*everything[:-1], *newest)]


def _write_night(
    files: Files,
    site: Files,
    number: int,
    everything: Sequence[Manifest],
    history: History,
    *,
    changes: bool = True,
) -> None:
    """Write the pages of one of all nights; of these the newest alone is in full already."""
    told = everything[number]
    if told is not everything[-1]:
        (told,) = in_full(files, [told])
        told = redacted(told, told.redacts or everything[-1].redacts)
    _write_told(files, site, told, everything[:number], history, changes=changes)


def _write_told(
    files: Files,
    site: Files,
    told: Manifest,
    earlier: Sequence[Manifest],
    history: History,
    *,
    changes: bool = True,
) -> None:
    """Write the pages of a night, that of its `changes` since the night before among them."""
    before = night_before(told, earlier)
    load = cached_load(_loader(files), told, before)
    if changes:
        _write_changes(files, site, told, before, earlier, load)
    rows, pages = _rows(files, told, earlier, load), _other_pages(site, told, before)
    raw = files.uri(ref_of(told).folder("scores"))
    write_night(site, told, earlier, rows, history.calibrations, pages=pages, raw=raw)


def _write_changes(
    files: Files,
    site: Files,
    told: Manifest,
    before: Manifest | None,
    earlier: Sequence[Manifest],
    load: LoadScores,
) -> None:
    """Write what changed in a night since the one before it; where the scores of either are gone
    from the store, the page stays what it is.
    """
    try:
        found = compare_with_night_before(files, before, told, load) if before else None
    except StoreError as error:
        if not is_missing(error):
            raise
        log.warning("%s: what changed is not told: %s", told.date, error)
        return
    shown = redacted(found, told.redacts) if found else None
    write_changes(site, told, before, shown, earlier)


def _rows(
    files: Files, told: Manifest, earlier: Sequence[Manifest], load: LoadScores
) -> list[KeptRow]:
    """The rows of a night that are shown."""
    rows = load_rows(files, told, earlier, load)
    return [redacted_row(one) for one in rows] if told.redacts else rows


def _other_pages(site: Files, told: Manifest, before: Manifest | None) -> dict[str, str]:
    """The pages that a night has beside its own, by what links to them say."""
    changes = before is not None and site.exists(f"{told.date}/{CHANGES}")
    return {f"What changed since {before.date}": CHANGES} if before and changes else {}


def _loader(files: Files) -> LoadScores:
    """Reads scores from the store."""
    return lambda night, metric: load_scores(files, ref_of(night), metric)


def _write_first_pages(
    files: Files, site: Files, everything: Sequence[Manifest], history: History, now: StoreSnapshot
) -> str:
    dataset, made = everything[-1].dataset if everything else None, RenderCache(site)
    beside = (dataset, _hides(everything))
    calibrations = made.unless_made(
        CALIBRATIONS,
        now.calibrations,
        beside,
        lambda: write_calibrations(site, redacted_history(history, _hides(everything)), dataset),
    )
    builds = made.unless_made(
        BUILDS,
        now.gates,
        beside,
        lambda: _write_builds(files, site, everything, now, made),
    )
    if everything:
        write_metrics(site, everything[-1])
    return write_overview(site, everything, calibrations, builds, _died(files, everything))


def _died(files: Files, everything: Sequence[Manifest]) -> list[date]:
    """Of the two weeks up to the newest night, the days that have no night, though a run had begun
    on them.
    """
    known = {one.date for one in everything}
    if not known:
        return []
    days = (max(known) - timedelta(days=ago) for ago in range(1, 15))
    lacking = [day for day in days if min(known) < day and day not in known]
    return [day for day in lacking if files.below(f"rows/dt={day}")]


def _hides(everything: Sequence[Manifest]) -> bool:
    """Whether texts are kept out of all pages that are of no night: as the newest night has it. A
    gate that ran with the setting is redacted in any case.
    """
    return bool(everything) and everything[-1].redacts


def _write_builds(
    files: Files, site: Files, everything: Sequence[Manifest], now: StoreSnapshot, made: RenderCache
) -> str | None:
    """Write the page of all index builds, and before it those of the builds that are new to it."""
    dataset = everything[-1].dataset if everything else None
    hide = _hides(everything)
    gates = shown_gates(redacted(gate, hide) for gate in load_gates(files))
    infos = {info.path: info for info in now.gates}
    pages = {
        build_path(gate.build): (info, partial(_write_build, files, site, gate, hide))
        for gate in gates
        if (info := infos.get(gate_path(gate.build)))  # else it came since: the next round's
    }
    made.each_unless_made(BUILD_PAGES, pages, (dataset, hide))
    return write_builds(
        site, gates, (redacted(one, hide) for one in load_failed_gates(files)), dataset
    )


def _write_build(files: Files, site: Files, gate: Gate, hide: bool) -> str:
    found = load_compared(files, gate.build)
    return write_build(site, gate, redacted(found, hide) if found else None)
