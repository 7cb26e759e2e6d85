"""The site: what others call to write a night, the overview, and what all pages share.

index.html, nights.js                   all nights; a night's page finds the next one in their list
glossary.html                           what the words and numbers mean
calibration.html                        judges against labelled rows, where there are any
builds.html, builds/BUILD.html          index builds and their verdicts, where there are any
compare/A--B.html                       what somebody compared: compare_page.py
made-of.json                            what the pages of builds and judges were made of
2026-11-19/index.html                   one night
2026-11-19/rows.html, rows-1.js ...     its rows: rows_page.py
2026-11-19/changes.html                 against the night before: changes_page.py
2026-11-19/summary.html                 the night on one page, for e-mail
assets/                                 shared by all pages; nothing is fetched from elsewhere
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.model import Calibration, Manifest
from ragmetrics.report import assets
from ragmetrics.report.builds_page import write_builds
from ragmetrics.report.calibration_page import write_calibrations
from ragmetrics.report.glossary import write_glossary
from ragmetrics.report.night_page import night_page
from ragmetrics.report.overview_page import write_overview
from ragmetrics.report.row_selection import KeptRow
from ragmetrics.report.rows_page import write_rows
from ragmetrics.report.summary_lines import SUMMARY, summary_markdown, summary_page
from ragmetrics.storage import Files

__all__ = [
    "summary_markdown",
    "write_assets",
    "write_builds",
    "write_calibrations",
    "write_night",
    "write_overview",
]


def write_assets(site: Files) -> None:
    """Write what all pages share: style, scripts and the glossary, where the site lacks them."""
    assets.write_assets(site)
    write_glossary(site)


def write_night(
    site: Files,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    rows: Sequence[KeptRow],
    calibrations: Sequence[Calibration] = (),
    *,
    pages: Mapping[str, str] | None = None,
    raw: str = "",
) -> str:
    """Write one night's pages; return the path of the first, relative to the site.

    `earlier` are the nights before, oldest first; `rows` those of this one that are shown.
    `calibrations` are those of any judge: what they say of the night's own is shown beside its
    name. `pages` are the night's other pages, by what a link to them says, as `changes.html` by
    "What changed"; `raw` is where the night's scores lie.
    """
    write_rows(site, manifest, rows)
    site.write(f"{manifest.date}/{SUMMARY}", summary_page(manifest, earlier))
    path = f"{manifest.date}/index.html"
    site.write(path, night_page(manifest, earlier, rows, calibrations, pages, raw))
    return path
