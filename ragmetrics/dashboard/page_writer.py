"""Writes the pages of the registry: those of a night, of the site, and those of every folder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from ragmetrics.dashboard.page import INDEX, PAGES, Page, Scope, Shown
from ragmetrics.dashboard.templating import write_assets
from ragmetrics.errors import InputError, StoreError
from ragmetrics.plugins import TookTooLong, in_time
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, is_missing
from ragmetrics.text import shorten

RENDER_SECONDS = 30.0
"""Longest time that a page of another package may take."""
log = logging.getLogger(__name__)


def write_shared(site: Files, nights: Sequence[Manifest] = (), *, charts: bool = True) -> None:
    """Write what every folder of pages needs and lacks: style, scripts and the pages of a folder;
    Plotly only if a page has charts. The pages that the last of the `nights` names are loaded.
    """
    write_assets(site, charts=charts)
    for page in _pages("folder", nights):
        content = page.render(Shown(site, site, ()))
        if content and site.find(page.file) != content:
            site.write(page.file, content)


def write_scope(shown: Shown, scope: Scope, *, compare: bool = True) -> str:
    """Write the pages of a night or of the site; return the path of the first one.

    The first page is the last to be written, and links to the others. Without `compare`, pages that
    only compare nights stay as they are.
    """
    for page in _pages(scope, shown.nights):
        stays = page.compares and not compare
        there = shown.site.exists(_path(page, shown)) if stays else _write(page, shown)
        if there and (words := page.words(shown)):
            shown.links.append((words, page.file))
    return f"{shown.folder}{INDEX}"


def _pages(scope: Scope, nights: Sequence[Manifest]) -> list[Page]:
    """The bundled pages of a scope, and those of other packages that the last night names; the
    first page comes last.
    """
    pages = [*PAGES.bundled.values()]
    for name in nights[-1].settings.get("pages", ()) if nights else ():
        try:
            pages.append(PAGES.find(name))
        except InputError as error:
            log.warning("a page is not written: %s", error)
    of_scope = (page for page in dict.fromkeys(pages) if page.scope == scope)
    return sorted(of_scope, key=lambda page: (page.is_first, page.place or 0, page.name))


def _write(page: Page, shown: Shown) -> bool:
    """Write a page; return whether there is one."""
    if page.shows is None:
        return _written(page, shown)
    return shown.cache.unless_made(page.file, page.shows(shown), partial(_written, page, shown))


def _written(page: Page, shown: Shown) -> bool:
    path, is_ours = _path(page, shown), page.name in PAGES.bundled_names
    try:
        content = page.render(shown) if is_ours else _of_others(page, shown)
    except StoreError as error:  # its scores are gone from the store: the page stays as it is
        if not is_missing(error):
            raise
        log.warning("%s: %s is not written: %s", shown.night.date, page.file, error)
        return shown.site.exists(path)
    if content is None:
        shown.site.discard(path)
    else:
        shown.site.write(path, content)
    return content is not None


def _of_others(page: Page, shown: Shown) -> bytes | None:
    """A page of another package; None, with a warning, if it cannot be made."""
    try:
        content = in_time(partial(page.render, shown), RENDER_SECONDS)
    except TookTooLong:
        problem = f"it took over {RENDER_SECONDS:g} s"
    except Exception as error:
        problem = shorten(repr(error))
    else:
        if content is None or isinstance(content, bytes):
            return content
        problem = f"it is {type(content).__name__}, not bytes"
    log.warning("%s: %s is not written: %s", shown.night.date, page.file, problem)
    return None


def _path(page: Page, shown: Shown) -> str:
    return f"{shown.folder}{page.file}"
